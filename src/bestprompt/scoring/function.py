"""Any Python function as a score."""

from __future__ import annotations

import hashlib
import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from bestprompt.errors import ConfigError, TaskError
from bestprompt.types import Pair, Scored, Usage


@dataclass(frozen=True)
class FunctionScorer:
    """``function(output, pair)`` returns the score.

    Attributes:
        function: Gives a number in [0, 1]; anything else stops the run with an error that shows the output.
        name: Identifies the function in the record of a run; by default its module, name and source text.
    """

    kind: ClassVar[str] = "function"
    function: Callable[[str, Pair], float]
    name: str = ""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise ConfigError(f"scorer function: {self.function!r} cannot be called")

    @property
    def fingerprint(self) -> str:
        """The given name, or the function's name and a hash of what can be read of its source and constants."""
        if self.name:
            return f"{self.kind}:{self.name}"
        target = self.function if inspect.isroutine(self.function) else type(self.function)
        try:
            source = inspect.getsource(target)
        except (OSError, TypeError):  # typed at a prompt, or written in C
            source = ""
        # Two lambdas on one line share their source; the values in their code tell them apart.
        values = getattr(getattr(self.function, "__code__", None), "co_consts", ())
        told_apart = repr([value for value in values if isinstance(value, str | int | float)])
        digest = hashlib.sha256((source + told_apart).encode()).hexdigest()[:12]
        return f"{self.kind}:{target.__module__}.{target.__qualname__}:{digest}"

    def score(self, outputs: Sequence[str], pairs: Sequence[Pair]) -> list[Scored]:
        """One call of the function per output."""
        return [self._checked(output, pair) for output, pair in zip(outputs, pairs, strict=True)]

    def _checked(self, output: str, pair: Pair) -> Scored:
        returned = self.function(output, pair)
        try:
            value = float(returned)
        except (TypeError, ValueError):
            value = math.nan
        if not 0 <= value <= 1:
            label = self.name or getattr(self.function, "__name__", type(self.function).__name__)
            raise TaskError(
                f"the score function {label} returned {returned!r} for the output {output[:80]!r}; "
                "a score must be a number from 0 to 1"
            )
        return Scored(value)

    def max_usage(self, pair: Pair, max_output_tokens: int) -> Usage:
        """Nothing that we can count."""
        return Usage()
