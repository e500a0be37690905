"""Acquisitions by name, and what a named one is made from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bestprompt.choices import ACQUISITIONS, named_class
from bestprompt.types import Acquisition


@dataclass(frozen=True, slots=True)
class Occasion:
    """All that a named acquisition may be made from, at one point of a run.

    Attributes:
        seed: Of the run.
        paper: Whether the paper is followed to the letter.
        beta: As the user gave it.
        gamma: As the user gave it.
        scale: Typical distance of a score from the mean of all.
        best: The highest posterior mean among the evaluated candidates; found when asked for.
        tuned: M-UCB with the bonus tuned on the kriging twin, where it was.
    """

    seed: int
    paper: bool
    beta: float | None
    gamma: float | None
    scale: float
    best: Callable[[], float]
    tuned: Acquisition | None = None


class MadeForOccasion(Protocol):
    """What the table of acquisitions holds: classes that make themselves."""

    @classmethod
    def on(cls, occasion: Occasion) -> Acquisition:
        """The acquisition for this point of the run."""
        ...


def make_acquisition(part: str | Acquisition, occasion: Occasion) -> Acquisition:
    """The acquisition of that name for this ``occasion``; an object is used as it is.

    Raises:
        ConfigError: Unknown name.
    """
    if not isinstance(part, str):
        return part
    kind: type[MadeForOccasion] = named_class("acquisition", ACQUISITIONS, part)
    return kind.on(occasion)
