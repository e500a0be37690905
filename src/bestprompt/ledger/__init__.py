"""The append-only record of a run."""

from bestprompt.ledger.ledger import Entry, Ledger

__all__ = ["Entry", "Ledger"]
