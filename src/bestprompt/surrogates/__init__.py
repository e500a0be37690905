"""Surrogates: beliefs about the score of every candidate from the evaluations so far (``base.make_surrogate``)."""
