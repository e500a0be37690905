"""How beliefs are formed and how the next evaluation is chosen."""
