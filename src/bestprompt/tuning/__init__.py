"""Choosing the acquisition bonus by simulation, before any call is paid for."""
