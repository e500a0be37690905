"""The append-only record of a run."""

from bestprompt.ledger.ledger import EXTENDED, LOOK, WRITTEN, Entry, Ledger

__all__ = ["EXTENDED", "LOOK", "WRITTEN", "Entry", "Ledger"]
