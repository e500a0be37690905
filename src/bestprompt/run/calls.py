"""Every call of a run as columns: what was asked of whom, what came back, how it was read, what it took."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bestprompt.ledger import WRITTEN, Entry, Ledger
from bestprompt.types import Pair

COLUMNS = (
    "purpose", "candidate", "prompt", "source", "model", "pair", "input", "expected", "replication", "attempt",
    "request", "answer", "read", "score", "status", "error", "calls", "prompt_tokens", "completion_tokens", "dollars",
    "seconds", "time",
)  # fmt: skip


def calls(folder: str | Path) -> dict[str, list[Any]]:
    """The calls of the run in ``folder``, oldest first, as columns of equal length; also while it runs.

    ``pandas.DataFrame(bp.calls(folder))``, ``polars.DataFrame(...)`` and ``pyarrow.table(...)`` take it as it is. Calls
    that wrote candidates stand first, with the purpose ``"writing"``, or ``"idea"`` while the run went on.
    ``expected`` is a list of right answers; it and ``input`` are empty for runs that began before pairs were recorded.
    """
    with Ledger.read(Path(folder)) as ledger:
        facts = ledger.facts()
        model, author = facts.get("lm"), facts.get("writer")
        stored, added = ledger.candidates(), ledger.added_candidates()
        models = stored.models if stored else ()
        prompts = [*(stored.prompts if stored else ()), *(new.prompt for new in added)]
        sources = [*(stored.sources if stored else ()), *(new.source for new in added)]
        pairs = ledger.pairs()
        rows = [
            _written(payload, author or model if payload.get("idea") else model) for payload in ledger.payloads(WRITTEN)
        ]
        rows += [
            _evaluated(entry, prompts, sources, models[entry.candidate] if models else model, pairs.get(entry.pair))
            for entry in ledger.entries()
        ]
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def _evaluated(entry: Entry, prompts: list[str], sources: list[str], model: Any, pair: Pair | None) -> dict[str, Any]:
    return {
        "purpose": "evaluation",
        "candidate": entry.candidate,
        "prompt": prompts[entry.candidate],
        "source": sources[entry.candidate],
        "model": model,
        "pair": entry.pair,
        "input": pair.input if pair else None,
        "expected": list(pair.references) if pair else None,
        "replication": entry.replication,
        "attempt": entry.attempt,
        "request": _spoken(entry.request),
        "answer": entry.output,
        "read": entry.extracted,
        "score": entry.score,
        "status": entry.status,
        "error": entry.error,
        "calls": entry.usage.calls,
        "prompt_tokens": entry.usage.prompt_tokens,
        "completion_tokens": entry.usage.completion_tokens,
        "dollars": entry.cost,
        "seconds": entry.latency,
        "time": datetime.fromtimestamp(entry.created, UTC).isoformat(timespec="milliseconds"),
    }


def _written(payload: dict[str, Any], model: Any) -> dict[str, Any]:
    return {
        "purpose": "idea" if payload.get("idea") else "writing",
        "model": model,
        "request": _spoken(payload["request"]),
        "answer": payload["output"],
        "status": payload["status"],
        "error": payload["error"],
        **payload["usage"],
        "dollars": payload["spend"]["dollars"],
    }


def _spoken(request: Any) -> str:
    """The messages of a request as a text."""
    messages = request["messages"]
    if len(messages) == 1:
        return str(messages[0]["content"])
    return "\n\n".join(f"{message['role']}: {message['content']}" for message in messages)
