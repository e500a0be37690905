"""Acquisition functions and their maximisers: which candidate to evaluate next."""
