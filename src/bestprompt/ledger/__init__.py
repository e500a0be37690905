"""The append-only record of a run."""

from bestprompt.ledger.files import being_written, holds_a_run
from bestprompt.ledger.ledger import (
    EXTENDED,
    FINISHED,
    LOOK,
    PLANNED,
    REFINING,
    TURNED_AWAY,
    WRITTEN,
    Entry,
    Intent,
    Ledger,
)

__all__ = [
    "EXTENDED",
    "FINISHED",
    "LOOK",
    "PLANNED",
    "REFINING",
    "TURNED_AWAY",
    "WRITTEN",
    "Entry",
    "Intent",
    "Ledger",
    "being_written",
    "holds_a_run",
]
