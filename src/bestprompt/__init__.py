"""bestprompt: the best prompt for a language model with the fewest calls, and how sure that is."""

__version__ = "0.1.0"
