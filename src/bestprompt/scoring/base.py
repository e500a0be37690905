"""What every scorer shares: identity by content, the best over several references, and a range check."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from bestprompt.types import Pair, Scored, Usage


def content_hash(value: Any) -> str:
    """Sixteen hexadecimal digits that depend on the content of ``value`` only (JSON-like values, dataclasses)."""

    def plain(item: Any) -> Any:
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            return {"": type(item).__name__} | {f.name: getattr(item, f.name) for f in dataclasses.fields(item)}
        if isinstance(item, (set, frozenset)):
            return sorted(item)
        if hasattr(item, "fingerprint"):
            return item.fingerprint
        if hasattr(item, "items"):
            return dict(item)
        raise TypeError(f"cannot fingerprint a {type(item).__name__}")

    text = json.dumps(value, sort_keys=True, default=plain, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclasses.dataclass(frozen=True)
class TextScorer(ABC):
    """A scorer that needs no model: each output is judged alone, against the best of its references.

    Subclasses are frozen dataclasses; their fields are their settings, and the fingerprint covers all of them.
    """

    kind: ClassVar[str]

    @property
    def fingerprint(self) -> str:
        """Kind and settings."""
        return f"{self.kind}:{content_hash(self)}"

    @abstractmethod
    def score_one(self, output: str, pair: Pair) -> Scored:
        """The score of one output."""

    def score(self, outputs: Sequence[str], pairs: Sequence[Pair]) -> list[Scored]:
        """One score in [0, 1] per output."""
        return [self.score_one(output, pair) for output, pair in zip(outputs, pairs, strict=True)]

    def max_usage(self, pair: Pair, max_output_tokens: int) -> Usage:
        """Nothing: no model is called."""
        return Usage()
