"""The append-only record of a run."""

from bestprompt.ledger.ledger import EXTENDED, FINISHED, LOOK, PLANNED, REFINING, WRITTEN, Entry, Ledger

__all__ = ["EXTENDED", "FINISHED", "LOOK", "PLANNED", "REFINING", "WRITTEN", "Entry", "Ledger"]
