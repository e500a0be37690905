"""Where the results of the torture are kept: one JSON file, and a page made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

FILE = Path(__file__).parents[1] / "results" / "torture.json"


def recorded() -> dict[str, Any]:
    """All results so far."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def record(name: str, result: dict[str, Any]) -> None:
    """Keeps the result of one part in place of its former one."""
    FILE.write_text(json.dumps({**recorded(), name: result}, indent=1) + "\n", encoding="utf-8")
