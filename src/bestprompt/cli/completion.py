"""What the shell offers after TAB: tasks, runs, the values of settings. No engine is loaded for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import get_args

from bestprompt.choices import MAXIMIZERS, SURROGATES, IfUndecided, Mode, RefinementMode, SimilarityName

_DATA_FILES = (".toml", ".csv", ".tsv", ".jsonl", ".ndjson", ".json")


def tasks(incomplete: str) -> list[str]:
    """Bundled tasks, files that may hold one, and folders on the way to them."""
    from bestprompt.tasks.library import names

    start = Path(incomplete)
    folder = start if incomplete.endswith("/") else start.parent
    beside = sorted(folder.iterdir()) if folder.is_dir() else []
    files = [f"{p}/" if p.is_dir() else str(p) for p in beside if p.is_dir() or p.suffix.lower() in _DATA_FILES]
    return _starting(incomplete, (*names(), *files))


def runs(incomplete: str) -> list[str]:
    """Folders that hold a run, the newest first: those under ``runs`` and under what was typed so far."""
    typed = Path(incomplete)
    roots = {Path("runs"), typed, typed.parent}
    found = {path.parent for root in roots for pattern in ("ledger.db", "*/ledger.db") for path in root.glob(pattern)}
    return _starting(incomplete, map(str, sorted(found, key=_age)))


def _age(folder: Path) -> float:
    return -(folder / "ledger.db").stat().st_mtime


def _among(values: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    def complete(incomplete: str) -> list[str]:
        return _starting(incomplete, values())

    return complete


def _starting(incomplete: str, values: Iterable[str]) -> list[str]:
    return [value for value in values if value.startswith(incomplete)]


def _scorer_kinds() -> Iterable[str]:
    from bestprompt.scoring import KINDS

    return ("auto", *KINDS)


scorers = _among(_scorer_kinds)
if_undecided = _among(lambda: get_args(IfUndecided))
modes = _among(lambda: get_args(Mode))
refinements = _among(lambda: get_args(RefinementMode))
similarities = _among(lambda: get_args(SimilarityName))
surrogates = _among(lambda: ("auto", "none", *SURROGATES))
maximizers = _among(lambda: ("auto", *MAXIMIZERS))
formats = _among(lambda: ("prompt", "csv", "jsonl", "parquet", "promptfoo"))
