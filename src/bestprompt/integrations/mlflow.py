"""Runs in MLflow: settings as parameters, scores over calls, the outcome, the prompt and the report.

    log_run("runs/mine")                                  # a run that has ended, or as far as it is

    with mlflow.start_run():
        rec = bp.optimize(task, lm, ledger="runs/mine", observer=LiveScores())   # scores while it goes on
        log_run("runs/mine", scores=False)

What is logged comes from the run's record, in which no key is.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from bestprompt.errors import MissingExtraError
from bestprompt.ledger import Entry, Ledger
from bestprompt.report import write_report
from bestprompt.run import standing
from bestprompt.run.observer import Observer, Silent
from bestprompt.run.result import Recommendation

try:
    import mlflow
    from mlflow.entities import Metric, Param, RunTag
except ImportError:
    raise MissingExtraError("Logging to MLflow", "mlflow") from None

_LONGEST = 500  # characters of a parameter or a tag that every store takes
_AT_ONCE = 500  # metrics in one request, of at most a thousand
_OUTCOME = (
    "score", "probability_best", "probability_within_delta", "probability_beats_incumbent", "expected_loss",
    "value_of_more", "calls", "tokens", "dollars",
)  # fmt: skip


def log_run(folder: str | Path, *, scores: bool = True) -> str:
    """Logs the run in ``folder`` to MLflow's active run, or to a new one; returns the id of that.

    Args:
        folder: Of the run; it may be going on.
        scores: Whether to log the scores call by call: not where :class:`LiveScores` has done that.
    """
    with Ledger.read(Path(folder)) as ledger, _active_run() as run_id, tempfile.TemporaryDirectory() as scratch:
        facts, found, client = ledger.facts(), standing(ledger), mlflow.MlflowClient()
        flat = {"task": facts["task"], "model": facts["lm"], "version": facts["version"], **_flat(facts["settings"])}
        client.log_batch(run_id, params=[Param(key, str(value)[:_LONGEST]) for key, value in flat.items()])
        client.log_batch(
            run_id,
            metrics=_outcome(found),
            tags=[RunTag("verdict", found.verdict[:_LONGEST]), RunTag("stopped_because", found.stopped_because)],
        )
        if scores:
            course = [metric for each in _course(ledger) for metric in each]
            for start in range(0, len(course), _AT_ONCE):
                client.log_batch(run_id, metrics=course[start : start + _AT_ONCE])
        prompt, report = Path(scratch) / "prompt.txt", Path(scratch) / "report.html"
        prompt.write_text(found.prompt_to_use + "\n", encoding="utf-8")
        write_report(report, ledger, found)
        for path in (prompt, report):
            client.log_artifact(run_id, str(path))
        client.log_dict(run_id, found.as_dict(), "result.json")
    return run_id


class LiveScores:
    """An observer that logs each score as it comes, and passes all it is told on to another one.

    Args:
        observer: Who else is told.
    """

    def __init__(self, observer: Observer | None = None) -> None:
        told = observer or Silent()
        self.stage, self.advance, self.warn = told.stage, told.advance, told.warn
        self._told, self._course, self._lock = told, _Course(), Lock()
        # Which run is active is known in this thread alone, and answers come in others.
        self._run_id, self._client = (mlflow.active_run() or mlflow.start_run()).info.run_id, mlflow.MlflowClient()

    def evaluated(self, entry: Entry) -> None:
        """Logs its score, and the mean so far, at the number of calls."""
        with self._lock:
            metrics = self._course.after(entry)
        if metrics:
            self._client.log_batch(self._run_id, metrics=metrics)
        self._told.evaluated(entry)


class _Course:
    """The scores so far, by calls."""

    def __init__(self) -> None:
        self._calls = self._count = 0
        self._sum = 0.0

    def after(self, entry: Entry) -> list[Metric]:
        """What is to be logged after one more entry of the record."""
        self._calls += entry.usage.calls
        if not entry.final or entry.score is None:
            return []
        self._count, self._sum = self._count + 1, self._sum + entry.score
        values = {"single_score": entry.score, "mean_score_so_far": self._sum / self._count}
        return [Metric(name, value, int(1000 * entry.created), self._calls) for name, value in values.items()]


def _course(ledger: Ledger) -> Iterator[list[Metric]]:
    course = _Course()
    return (course.after(entry) for entry in ledger.entries())


def _outcome(found: Recommendation) -> list[Metric]:
    plain = found.as_dict()
    low, high = found.interval
    values = {name: plain[name] for name in _OUTCOME} | {"score_low": low, "score_high": high}
    return [Metric(name, float(value), 0, found.calls) for name, value in values.items() if value is not None]


def _flat(tables: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """Settings with dotted names, those that are not set left out."""
    found: dict[str, Any] = {}
    for key, value in tables.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{above}{key}.")
        elif value not in (None, [], ""):
            found[f"{above}{key}"] = value
    return found


@contextmanager
def _active_run() -> Iterator[str]:
    active = mlflow.active_run()
    if active is not None:
        yield active.info.run_id
        return
    with mlflow.start_run() as begun:
        yield begun.info.run_id
