"""The append-only record of a run."""

from bestprompt.ledger.files import being_written, holds_a_run
from bestprompt.ledger.ledger import Ledger
from bestprompt.ledger.rows import (
    EXTENDED,
    FINISHED,
    LOOK,
    PAUSED,
    PLANNED,
    REFINING,
    ROUND,
    TURNED_AWAY,
    WRITTEN,
    Entry,
    Intent,
)
from bestprompt.ledger.soundness import check_content, reading

__all__ = [
    "EXTENDED",
    "FINISHED",
    "LOOK",
    "PAUSED",
    "PLANNED",
    "REFINING",
    "ROUND",
    "TURNED_AWAY",
    "WRITTEN",
    "Entry",
    "Intent",
    "Ledger",
    "being_written",
    "check_content",
    "holds_a_run",
    "reading",
]
