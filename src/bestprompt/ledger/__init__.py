"""The append-only record of a run."""

from bestprompt.ledger.ledger import EXTENDED, LOOK, Entry, Ledger

__all__ = ["EXTENDED", "LOOK", "Entry", "Ledger"]
