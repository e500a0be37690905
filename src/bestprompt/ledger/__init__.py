"""The append-only record of a run."""

from bestprompt.ledger.files import holds_a_run
from bestprompt.ledger.ledger import (
    EXTENDED,
    FINISHED,
    LOOK,
    PAUSED,
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
    "PAUSED",
    "PLANNED",
    "REFINING",
    "TURNED_AWAY",
    "WRITTEN",
    "Entry",
    "Intent",
    "Ledger",
    "holds_a_run",
]
