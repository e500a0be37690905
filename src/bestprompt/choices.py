"""What a user chooses about selection, in one place: settings must know it before anything that is slow to load.

A part that is chosen by name (surrogate, acquisition, maximiser) is looked up in one table: name → ``module:class``. A
new part is a new file and one line here. Wherever a name may stand, an object with the part's contract may stand too
(:mod:`bestprompt.types` has the contracts, :mod:`bestprompt.testing` holds a part to them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Annotated, Literal

from pydantic import ConfigDict, Field

from bestprompt.errors import ConfigError
from bestprompt.types import Acquisition, Maximizer, Surrogate

Mode = Literal["default", "paper"]
Edition = Literal["first", "second"]
Pairs = Literal["common", "independent"]
Repeats = Literal["never", "same-item", "new-item"]
NextItem = Literal["most-telling", "in-turn"]
Units = Literal["unknown", "alike"]
Policy = Literal["auto", "random"]
Warmup = Literal["auto", "examples", "random", "space-filling"]
TuningName = Literal["grid", "ranges"]
VarianceName = Literal["kriging", "linear", "pooled"]
SimilarityName = Literal["mixed", "words", "letters"]
RefinementMode = Literal["off", "default", "m-ucb-r", "psk-ei"]
IfUndecided = Literal["pass", "fail"]

# r1, r2 for the similarity "mixed". Measured: for 90 % of the bundled tasks' example prompts the most similar example
# of another task lies below 0.45, also the median of two paraphrases of the grammar; above 0.95 little differs.
DEFAULT_BOUNDS = (0.45, 0.95)
DEFAULT_DIM = 50  # D, soft prompts' coordinates at most

SURROGATES = {
    "gp": "bestprompt.surrogates.gp:GaussianProcess",
    "gp-rank": "bestprompt.surrogates.gp:FiniteRankGP",
    "blr": "bestprompt.surrogates.linear:BayesianLinearRegression",
    "bnn": "bestprompt.surrogates.bnn:BayesianNeuralNetwork",
    "vae": "bestprompt.surrogates.vae:VariationalAutoencoder",
}
ACQUISITIONS = {
    "m-ucb": "bestprompt.acquisition.functions:ModifiedUCB",
    "ucb": "bestprompt.acquisition.functions:UCB",
    "ei": "bestprompt.acquisition.functions:ExpectedImprovement",
    "thompson": "bestprompt.acquisition.functions:Thompson",
    "top-two": "bestprompt.acquisition.functions:TopTwoThompson",
}
MAXIMIZERS = {
    "argmax": "bestprompt.acquisition.batches:Exhaustive",
    "reinforce": "bestprompt.acquisition.batches:Sampled",
}
RECORDED = "object:"  # how the record of a part that was an object begins
# Not surrogates but the default strategy: kernels averaged (``average`` is an older name of it), or without structure.
AVERAGED = ("auto", "average", "none")


def names_of(kind: str) -> tuple[str, ...]:
    """The names that a ``"surrogate"``, ``"acquisition"`` or ``"maximizer"`` may have in the settings."""
    return {
        "surrogate": (*AVERAGED, *SURROGATES),
        "acquisition": ("auto", *ACQUISITIONS),
        "maximizer": ("auto", *MAXIMIZERS),
    }[kind]


def wrong_part(kind: str, part: object) -> str | None:
    """What a ``kind`` of part must be, where ``part`` is neither one of the names nor such an object; else ``None``."""
    names = names_of(kind)
    ability = "fit" if kind == "surrogate" else "__call__"
    if part in names if isinstance(part, str) else hasattr(part, ability):
        return None
    return f"one of {', '.join(names)}, or an object with {ability}"


def named_class(kind: str, table: Mapping[str, str], name: str) -> type:
    """The class that ``table`` holds under ``name``.

    Raises:
        ConfigError: There is no such name.
    """
    if name not in table:
        raise ConfigError(f"{kind} {name!r} is unknown: choose one of {', '.join(table)}")
    module, _, attribute = table[name].partition(":")
    found: type = getattr(import_module(module), attribute)
    return found


def name_of(part: object) -> str:
    """How a part is recorded: its name, or the fingerprint of an object.

    Raises:
        ConfigError: An object without a ``fingerprint``, which a record could not tell from another.
    """
    if isinstance(part, str):
        return part
    fingerprint = getattr(part, "fingerprint", None)
    if not isinstance(fingerprint, str) or not fingerprint:
        raise ConfigError(
            f"{type(part).__name__} needs a fingerprint to be recorded: a text that names the part and its settings"
        )
    return RECORDED + fingerprint


@dataclass(frozen=True, kw_only=True)
class IncumbentCheck:
    """What must be settled about a new prompt beside the one in use, for a run that asks nothing else.

    Attributes:
        probability: How sure "worse" or "not worse" must be.
        margin: A new prompt that scores less by no more than this is not worse.
        if_undecided: Whether a new prompt about which neither could be settled passes or fails; what cannot change the
            decision any more is not asked.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    probability: Annotated[float, Field(gt=0.5, lt=1)] = 0.95
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.0
    if_undecided: IfUndecided = "pass"


@dataclass(frozen=True, kw_only=True)
class SelectionMethod:
    """How candidates are evaluated and the winner chosen, whatever the candidates and the budget.

    A settings file (:class:`bestprompt.run.setting_tables.SelectionSettings`) and the selector
    (:class:`bestprompt.selection.SelectorConfig`) share these fields by inheritance.

    Attributes:
        mode: ``"default"``, or ``"paper"`` for the published procedure to the letter.
        surrogate: ``"auto"`` averages Gaussian process kernels, a linear one and the unstructured model by their
            evidence (above 2000 candidates it is ``"gp-rank"``); ``"none"`` leaves all structure out; a name of
            ``SURROGATES``, or an object, fits that surrogate and chooses by ``acquisition``.
        surrogate_options: Keyword arguments of a named surrogate, e.g. ``{"inference": "hmc"}``.
        draws: Posterior draws of a named surrogate, K; ``None`` leaves it at the surrogate's own number, 100.
        acquisition: What a surrogate's next evaluation maximises; ``"auto"`` is M-UCB. The averaged kernels have
            duels instead (:mod:`bestprompt.selection.strategies.rank`) and take no other.
        maximizer: ``"argmax"`` looks at all candidates, ``"reinforce"`` is PR-M-UCB; ``"auto"`` takes the latter where
            there are thousands.
        maximizer_options: Keyword arguments of ``"reinforce"``
            (:class:`bestprompt.acquisition.maximize.Reinforce`).
        tuning: Whether M-UCB's bonus is tuned over a ``"grid"`` or over continuous ``"ranges"``. In paper mode only the
            latter tunes it, once after the warm-up (the paper's appendix); else it is that of the paper's experiments.
        policy: ``"auto"``, or ``"random"`` for the paper's baseline, which evaluates candidates at random.
        warmup: How warm-up candidates are found (:mod:`bestprompt.selection.core.warmup`).
        warmup_fraction: Share of the candidates warmed up in paper mode where no examples are given.
        replications: Warm-up evaluations per warm-up candidate in paper mode, R.
        variance: How paper mode spreads the variances of the warm-up over all candidates, g*.
        beta: Multiplier b of M-UCB's b sqrt(2 ln t), or plain UCB's β; ``None`` is 1 in paper mode, 1.5 for plain UCB,
            and tuned on the kriging twin, with the count bonus, where M-UCB runs in default mode.
        gamma: Scale c of the count bonus: c / sqrt(m), 2 unless given, in paper mode; where β is given in default mode,
            in units of the scores' spread and 0.1 unless given.
        delta: The difference in score that matters.
        stop_at: Stop when the recommended candidate is within ``delta`` of the best with this probability; ``None``
            never stops for this reason.
        stop_loss: Stop when the expected shortfall of the recommended candidate falls below this; ``None`` never.
        stop_gain: Stop when all questions that were not asked yet, or all calls that are left where questions never
            end, are expected to gain less than this; ``None`` or 0 never.
        gain_per_call: Stop when a further call is expected to gain less score than this; ``None`` never.
        incumbent_check: Stop when it is settled whether the new prompt is worse than the incumbent, or when that will
            not be settled; ``None`` where nothing is checked.
    """

    mode: Mode = "default"
    surrogate: str | Surrogate = "auto"
    surrogate_options: Mapping[str, object] = field(default_factory=dict)
    draws: Annotated[int, Field(ge=2)] | None = None
    acquisition: str | Acquisition = "auto"
    maximizer: str | Maximizer = "auto"
    maximizer_options: Mapping[str, object] = field(default_factory=dict)
    tuning: TuningName = "grid"
    policy: Policy = "auto"
    warmup: Warmup = "auto"
    warmup_fraction: Annotated[float, Field(gt=0, le=1)] = 0.05
    replications: Annotated[int, Field(ge=1)] = 5
    variance: VarianceName = "kriging"
    beta: Annotated[float, Field(ge=0)] | None = None
    gamma: Annotated[float, Field(ge=0)] | None = None
    delta: Annotated[float, Field(ge=0, lt=1)] = 0.02
    stop_at: Annotated[float, Field(gt=0.5, lt=1)] | None = None
    stop_loss: Annotated[float, Field(gt=0)] | None = None
    stop_gain: Annotated[float, Field(ge=0)] | None = None
    gain_per_call: Annotated[float, Field(gt=0)] | None = None
    incumbent_check: IncumbentCheck | None = None
