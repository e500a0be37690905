"""Kriging: Gaussian-process prediction of scores and of their noise from soft prompts."""
