"""A source of candidates of the user's own, in place of the search stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class CandidateSource(Protocol):
    """Proposes candidate prompts; given to ``bestprompt.optimize`` as ``candidates``.

    Attributes:
        fingerprint: Identifies the source and its settings; recorded with the run, and must be equal to continue it.
    """

    @property
    def fingerprint(self) -> str: ...

    def propose(self, prompts: Sequence[str], n: int, seed: int) -> Sequence[str]:
        """Up to ``n`` further prompts, made from ``prompts`` or not; equal arguments give equal proposals.

        It is asked once per run, before anything is evaluated. Repetitions are dropped.
        """
        ...
