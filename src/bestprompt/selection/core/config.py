"""Every setting of a selection run, and whether they can be used together.

Notation (paper symbol → name):
    T         evaluations allowed                  → ``budget``
    R         warm-up evaluations per candidate    → ``replications``
    β_t, γ    bonus of M-UCB                       → ``beta``, ``gamma``
    g*        variances of all candidates          → ``variance``
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import get_args

from bestprompt.choices import (
    AVERAGED,
    RECORDED,
    SURROGATES,
    Edition,
    Mode,
    NextItem,
    Pairs,
    Policy,
    Repeats,
    SelectionMethod,
    TuningName,
    Units,
    VarianceName,
    Warmup,
    wrong_part,
)
from bestprompt.errors import ConfigError
from bestprompt.selection.core.rotation import BLOCK, IN_ORDER, Rotation

CHOICES: dict[str, object] = {
    "mode": Mode,
    "pairs": Pairs,
    "policy": Policy,
    "repeats": Repeats,
    "next_item": NextItem,
    "units": Units,
    "edition": Edition,
    "warmup": Warmup,
    "tuning": TuningName,
    "variance": VarianceName,
}


@dataclass(frozen=True, kw_only=True)
class SelectorConfig(SelectionMethod):
    """Every setting of a selection run: the method, and the problem it is used on.

    Attributes:
        budget: Evaluations allowed, T.
        pairs: ``"common"`` when replication r is the same item for every candidate, else ``"independent"``.
        items: How many items there are, where that is known.
        repeats: What follows once a candidate has met all of them: nothing (``"never"``, where the same question has
            the same answer), other answers to the same questions (``"same-item"``), or answers that count as if there
            were further items (``"new-item"``).
        next_item: Whether a candidate is asked the common item that tells most about it (``"most-telling"``, see
            :mod:`bestprompt.selection.strategies.next_item`) or the next one in the rotation (``"in-turn"``). Named
            surrogates, which know no items, always take them in turn.
        units: ``"alike"`` where a distance means the same along every coordinate, as between our own soft prompts;
            ``"unknown"`` coordinates are brought to one spread unless they look like principal components
            (:mod:`bestprompt.selection.core.units`).
        edition: ``"second"`` where paper mode keeps to the letter; ``"first"`` for runs recorded before it did.
        repeat_every: Of so many evaluations of a candidate the last asks the item of the first again; 0 for never.
        block: Common items that are rotated together, each candidate beginning at another; 1 is one order for all.
        seed: Seed of every random choice.
        examples: Candidates evaluated first, e.g. the user's own prompts.
        incumbent: The candidate in use today, if any.
        costs: What one call with each candidate costs, in any unit; ties go to the cheapest.
    """

    budget: int = field(kw_only=False)
    pairs: Pairs = "independent"
    items: int | None = None
    repeats: Repeats = "same-item"
    next_item: NextItem = "most-telling"
    units: Units = "unknown"
    edition: Edition = "second"
    block: int = BLOCK
    repeat_every: int = 0
    seed: int = 0
    examples: tuple[int, ...] = ()
    incumbent: int | None = None
    costs: tuple[float, ...] | None = None

    @property
    def named(self) -> bool:
        """Whether one surrogate is fitted; in paper mode, without another name, it is the network."""
        return self.surrogate not in AVERAGED or (self.surrogate == "auto" and self.mode == "paper")

    @property
    def rotation(self) -> Rotation:
        """In which order candidates meet the items; independent pairs have none, and the paper knows of no rotation."""
        if self.pairs == "independent":
            return IN_ORDER
        block = self.block if self.mode == "default" else 1
        return Rotation(block, self.items, self.repeats, self.repeat_every, self.asks_what_tells_most)

    @property
    def asks_what_tells_most(self) -> bool:
        """Whether items are chosen; not where some are repeated on purpose, which has an order of its own."""
        return self.next_item == "most-telling" and self.pairs == "common" and self.repeat_every == 0

    def check(self, n_candidates: int) -> None:
        """Raises ``ConfigError`` when a setting cannot be used with ``n_candidates`` candidates."""
        for name, choice in CHOICES.items():
            if getattr(self, name) not in get_args(choice):
                allowed = ", ".join(get_args(choice))
                raise ConfigError(f"selection: {name} must be one of {allowed}, not {getattr(self, name)!r}")
        for name in ("surrogate", "acquisition", "maximizer"):
            part = getattr(self, name)
            if isinstance(part, str) and part.startswith(RECORDED):
                raise ConfigError(
                    f"selection: this run has an object as its {name} ({part.removeprefix(RECORDED)}), which a record "
                    "cannot hold: hand the same object in again, by bestprompt.optimize with the run's folder as ledger"
                )
            if wanted := wrong_part(name, part):
                raise ConfigError(f"selection: {name} must be {wanted}, not {part!r}")
        one = f"of the {n_candidates} candidates, counted from 0"
        surrogates = f"{', '.join(SURROGATES)} or an object"
        named = f"go with a surrogate {surrogates}"
        rules = {
            "budget": (self.budget >= 1, "be a positive whole number"),
            "surrogate": (self.mode == "default" or self.named, f"be {surrogates} in paper mode"),
            "acquisition": (self.acquisition == "auto" or self.named, named),
            "maximizer": (self.maximizer == "auto" or self.named, named),
            "maximizer_options": (not self.maximizer_options or self.maximizer == "reinforce", "go with reinforce"),
            "tuning": (
                self.tuning == "grid" or (self.named and self.beta is None and self.gamma is None),
                f"be grid where nothing is tuned; otherwise {named}, without beta and gamma",
            ),
            "surrogate_options": (
                not self.surrogate_options or (self.named and isinstance(self.surrogate, str)),
                "go with a surrogate that is named, not with an object",
            ),
            "draws": (
                self.draws is None or (self.draws >= 2 and self.named and isinstance(self.surrogate, str)),
                "be at least 2, and go with a surrogate that is named, not with an object",
            ),
            "variance": (self.variance == "kriging" or self.mode == "paper", "go with mode paper"),
            "beta": (self.beta is None or (self.named and self.beta >= 0.0), f"not be negative, and {named}"),
            "gamma": (
                self.gamma is None or (self.gamma >= 0.0 and (self.mode == "paper" or self.beta is not None)),
                "not be negative, and go with beta or with mode paper",
            ),
            "items": (self.items is None or self.items >= 1, "be a positive whole number"),
            "repeat_every": (self.repeat_every == 0 or self.repeat_every >= 2, "be 0 or at least 2"),
            "block": (self.block >= 1, "be at least 1"),
            "warmup": (self.warmup != "examples" or len(self.examples) > 0, "not be examples where there are none"),
            "warmup_fraction": (0.0 < self.warmup_fraction <= 1.0, "lie between 0 and 1"),
            "replications": (self.replications >= 1, "be at least 1"),
            "delta": (self.delta >= 0.0, "not be negative"),
            "costs": (
                self.costs is None or (len(self.costs) == n_candidates and all(map(math.isfinite, self.costs))),
                f"be {n_candidates} finite numbers, one per candidate",
            ),
            "incumbent": (self.incumbent is None or 0 <= self.incumbent < n_candidates, f"be one {one}"),
            "examples": (all(0 <= e < n_candidates for e in self.examples), f"be some {one}"),
            "stop_at": (self.stop_at is None or 0.0 < self.stop_at < 1.0, "lie between 0 and 1"),
            "stop_gain": (self.stop_gain is None or self.stop_gain >= 0.0, "not be negative"),
            "stop_loss": (self.stop_loss is None or self.stop_loss > 0.0, "be positive"),
            "incumbent_check": (
                self.incumbent_check is None or not self.named,
                "go with mode default and surrogate auto or none",
            ),
            "gain_per_call": (self.gain_per_call is None or self.gain_per_call > 0.0, "be positive"),
        }
        for name, (met, rule) in rules.items():
            if not met:
                raise ConfigError(f"selection: {name} must {rule}, not {getattr(self, name)!r}")
