"""Every setting of a selection run, and whether they can be used together.

Notation (paper symbol → name):
    T         evaluations allowed                  → ``budget``
    R         warm-up evaluations per candidate    → ``replications``
    β_t, γ    bonus of M-UCB                       → ``beta``, ``gamma``
    g*        variances of all candidates          → ``variance``
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, get_args

from bestprompt.choices import (
    AcquisitionName,
    MaximizerName,
    Mode,
    NextItem,
    Pairs,
    Policy,
    Repeats,
    Start,
    SurrogateName,
    TuningName,
    VarianceName,
)
from bestprompt.errors import ConfigError
from bestprompt.selection.rotation import BLOCK, IN_ORDER, Rotation

CHOICES: dict[str, Any] = {
    "mode": Mode,
    "surrogate": SurrogateName,
    "pairs": Pairs,
    "policy": Policy,
    "repeats": Repeats,
    "next_item": NextItem,
    "warmup": Start,
    "acquisition": AcquisitionName,
    "maximizer": MaximizerName,
    "tuning": TuningName,
    "variance": VarianceName,
}


@dataclass(frozen=True, slots=True)
class SelectorConfig:
    """Every setting of a selection run.

    Attributes:
        budget: Evaluations allowed, T.
        mode: ``"default"``, or ``"paper"`` for the published procedure to the letter.
        surrogate: ``"auto"`` averages Gaussian process kernels, a linear one and the unstructured model by their
            evidence, and adds the kernel of a network once that predicts held-out candidates better; ``"average"``
            leaves networks out, ``"none"`` all structure; ``"gp"``, ``"gp-rank"``, ``"blr"``, ``"bnn"`` and ``"vae"``
            fit that surrogate and choose by ``acquisition``.
        pairs: ``"common"`` when replication r is the same item for every candidate, else ``"independent"``.
        items: How many items there are, where that is known.
        repeats: What follows once a candidate has met all of them: nothing (``"never"``, where the same question has
            the same answer), other answers to the same questions (``"same-item"``), or answers that count as if there
            were further items (``"new-item"``).
        next_item: Whether a candidate is asked the common item that tells most about it (``"most-telling"``,
            :mod:`bestprompt.selection.next_item`) or the next one in the rotation (``"in-turn"``). Named surrogates,
            which know no items, always take them in turn.
        repeat_every: Of so many evaluations of a candidate the last asks the item of the first again; 0 for never.
        block: Common items that are rotated together, each candidate beginning at another; 1 is one order for all.
        replications: Warm-up evaluations per warm-up candidate in paper mode, R.
        seed: Seed of every random choice.
        policy: ``"auto"``, or ``"random"`` for the paper's baseline, which evaluates candidates at random.
        warmup: How warm-up candidates are found (:mod:`bestprompt.selection.warmup`).
        warmup_fraction: Share of the candidates warmed up in paper mode where no examples are given.
        examples: Candidates evaluated first, e.g. the user's own prompts.
        incumbent: The candidate in use today, if any.
        costs: What one call with each candidate costs, in any unit; ties go to the cheapest.
        delta: The difference in score that matters.
        stop_probability: Stop when the recommended candidate is within ``delta`` of the best with this probability;
            ``None`` never stops for this reason.
        stop_gain: Stop when all questions that were not asked yet, or all calls that are left where questions never
            end, are expected to gain less than this; ``None`` never.
        stop_loss: Stop when the expected shortfall of the recommended candidate falls below this; ``None`` never.
        price: Score one further call must be expected to gain to be worth making; ``None`` spends the budget.
        acquisition: What a named surrogate's next evaluation maximises; ``"auto"`` is M-UCB. The averaged kernels have
            duels instead (:mod:`bestprompt.selection.rank`) and take no other.
        maximizer: ``"argmax"`` looks at all candidates, ``"reinforce"`` is PR-M-UCB; ``"auto"`` takes the latter where
            there are thousands.
        maximizer_options: Keyword arguments of ``"reinforce"``
            (:class:`bestprompt.acquisition.maximize.Reinforce`).
        tuning: Whether M-UCB's bonus is tuned over a ``"grid"`` or over continuous ``"ranges"``.
        variance: How paper mode spreads the variances of the warm-up over all candidates, g*.
        beta: Multiplier b of M-UCB's b sqrt(2 ln t), or plain UCB's β; ``None`` is 1 in paper mode, 1.5 for plain UCB,
            and tuned on the kriging twin, with the count bonus, where M-UCB runs in default mode.
        gamma: Scale c of the count bonus: c / sqrt(m), 2 unless given, in paper mode; where β is given in default mode,
            in units of the scores' spread and 0.1 unless given.
        surrogate_options: Keyword arguments of a named surrogate.
    """

    budget: int
    mode: Mode = "default"
    surrogate: SurrogateName = "auto"
    pairs: Pairs = "independent"
    items: int | None = None
    repeats: Repeats = "same-item"
    next_item: NextItem = "most-telling"
    block: int = BLOCK
    repeat_every: int = 0
    replications: int = 5
    seed: int = 0
    policy: Policy = "auto"
    warmup: Start = "auto"
    warmup_fraction: float = 0.05
    examples: tuple[int, ...] = ()
    incumbent: int | None = None
    costs: tuple[float, ...] | None = None
    delta: float = 0.02
    stop_probability: float | None = None
    stop_loss: float | None = None
    stop_gain: float | None = None
    price: float | None = None
    acquisition: AcquisitionName = "auto"
    maximizer: MaximizerName = "auto"
    maximizer_options: tuple[tuple[str, object], ...] = ()
    tuning: TuningName = "grid"
    variance: VarianceName = "kriging"
    beta: float | None = None
    gamma: float | None = None
    surrogate_options: tuple[tuple[str, object], ...] = ()

    @property
    def named(self) -> bool:
        """Whether one surrogate is fitted; in paper mode, without another name, it is the network."""
        return self.surrogate not in ("average", "none") and (self.surrogate != "auto" or self.mode == "paper")

    @property
    def rotation(self) -> Rotation:
        """In which order candidates meet the items; independent pairs have none, and the paper knows of no rotation."""
        if self.pairs == "independent":
            return IN_ORDER
        return Rotation(self.block if self.mode == "default" else 1, self.items, self.repeats, self.repeat_every)

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
        one = f"of the {n_candidates} candidates, counted from 0"
        named = "go with a surrogate gp, gp-rank, blr, bnn or vae"
        rules = {
            "budget": (self.budget >= 1, "be a positive whole number"),
            "surrogate": (self.mode == "default" or self.named, "be gp, gp-rank, blr, bnn or vae in paper mode"),
            "acquisition": (self.acquisition == "auto" or self.named, named),
            "maximizer": (self.maximizer == "auto" or self.named, named),
            "maximizer_options": (not self.maximizer_options or self.maximizer == "reinforce", "go with reinforce"),
            "tuning": (
                self.tuning == "grid" or (self.named and self.mode == "default" and self.beta is None),
                f"be grid where nothing is tuned; otherwise {named}, without beta",
            ),
            "surrogate_options": (not self.surrogate_options or self.named, named),
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
            "stop_probability": (
                self.stop_probability is None or 0.0 < self.stop_probability < 1.0,
                "lie between 0 and 1",
            ),
            "stop_gain": (self.stop_gain is None or self.stop_gain > 0.0, "be positive"),
            "stop_loss": (self.stop_loss is None or self.stop_loss > 0.0, "be positive"),
            "price": (self.price is None or self.price > 0.0, "be positive"),
        }
        for name, (met, rule) in rules.items():
            if not met:
                raise ConfigError(f"selection: {name} must {rule}, not {getattr(self, name)!r}")
