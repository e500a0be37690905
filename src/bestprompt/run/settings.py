"""Settings: a TOML file or keyword arguments → checked, frozen values.

One file describes a run. Its ``[task]`` table belongs to :mod:`bestprompt.tasks`; every other table is described here.
An unknown key is refused, with the nearest valid name, because a misspelt setting that is ignored costs money.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SerializationInfo,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from bestprompt.choices import (
    DEFAULT_BOUNDS,
    DEFAULT_DIM,
    RECORDED,
    Mode,
    Pairs,
    RefinementMode,
    SelectionMethod,
    SimilarityName,
    name_of,
    wrong_part,
)
from bestprompt.errors import ConfigError
from bestprompt.lm.back_ends import fault_in
from bestprompt.lm.settings import ModelSettings, RaySettings
from bestprompt.run.setting_faults import explain, where
from bestprompt.types import Acquisition, Maximizer, Surrogate


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class BudgetSettings(_Strict):
    """The most a run may use; the first limit that is reached ends it."""

    calls: int | None = Field(300, ge=1)
    tokens: int | None = Field(None, ge=1)
    dollars: float | None = Field(None, gt=0)

    def limits(self) -> tuple[float, float, float]:
        """(calls, tokens, dollars), ``inf`` where there is none."""
        calls, tokens, dollars = (
            math.inf if limit is None else float(limit) for limit in (self.calls, self.tokens, self.dollars)
        )
        return calls, tokens, dollars


class PriceSettings(_Strict):
    """Dollars per million tokens of one model."""

    input: float = Field(0.0, ge=0)
    output: float = Field(0.0, ge=0)


class SearchSettings(_Strict):
    """Where candidate prompts come from."""

    source: Literal["auto", "latent", "examples"] = Field(
        "auto",
        description="latent: also move the examples through the autoencoder's space; examples: as given; auto: latent "
        "where the examples are sentences it can hold and the budget allows",
    )
    candidates: int = Field(60, ge=1, description="size N of the candidate set")
    file: Path | tuple[Path, ...] | None = Field(
        None, description="further prompts: a text, table or JSON file, a folder of them, or a list of such"
    )
    rewrites: int = Field(
        0, ge=0, description="variants of the examples that the model writes; at most half of the budget goes there"
    )
    demos: int = Field(
        0,
        ge=0,
        le=64,
        description="pairs shown in a prompt: each is also tried with some, taken from pairs that judge no prompt",
    )
    mode: Mode = "default"
    similarity: SimilarityName = Field(
        "mixed", description="how alike a new prompt and its parent are: by shared words, by letters, or by both"
    )
    r1: float = Field(DEFAULT_BOUNDS[0], ge=0, lt=1, description="a new prompt must be more similar than this")
    r2: float = Field(DEFAULT_BOUNDS[1], gt=0, le=1, description="and less similar than this; above r1")
    dimension: int = Field(DEFAULT_DIM, ge=1, description="D, coordinates of a soft prompt, at most")

    @property
    def files(self) -> tuple[Path, ...]:
        """The files of further prompts."""
        return self.file if isinstance(self.file, tuple) else () if self.file is None else (self.file,)

    @model_validator(mode="after")
    def _bounds_in_order(self) -> Self:
        if not self.r1 < self.r2:
            raise PydanticCustomError("bounds", "r1 must be below r2")
        return self


class _Handed:
    """An object on its way through ``model_dump``, which would take a dataclass apart."""

    def __init__(self, part: object) -> None:
        self.part = part


def _part(value: object, info: ValidationInfo) -> object:
    given = value.part if isinstance(value, _Handed) else value
    if isinstance(given, str) and given.startswith(RECORDED):
        return given
    if allowed := wrong_part(str(info.field_name), given):
        raise PydanticCustomError("choice", "choose {allowed}", {"allowed": allowed})
    return given


def _dumped(value: object, info: SerializationInfo) -> object:
    if isinstance(value, str):
        return value
    return name_of(value) if info.mode == "json" else _Handed(value)


_PART = (PlainValidator(_part), PlainSerializer(_dumped))


@dataclass(frozen=True, kw_only=True)
class SelectionSettings(SelectionMethod):
    """``[selection]``: the method, and what only a run decides.

    A surrogate, an acquisition or a maximiser that is an object must have a ``fingerprint``. That is all a record can
    hold of it: to continue the run, hand in the same object again.

    Attributes:
        pairs: ``"common"``: all prompts meet the same items; left out: independent in paper mode, else common.
        repeat_items: Share of calls that ask an item again, to see the model's own randomness.
        batch: Evaluations proposed at a time, where all of them are told before more are asked for.
        in_flight: Evaluations kept under way; others are asked for as soon as any returns. Left out: in lock-step.
        incumbent: The prompt in use now; added to the candidates.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", allow_inf_nan=False)

    surrogate: Annotated[str | Surrogate, *_PART] = "auto"
    acquisition: Annotated[str | Acquisition, *_PART] = "auto"
    maximizer: Annotated[str | Maximizer, *_PART] = "auto"
    stop_gain: Annotated[float, Field(ge=0)] | None = 0.0005
    pairs: Pairs | None = None
    repeat_items: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    batch: Annotated[int, Field(ge=1, le=1024)] = 8
    in_flight: Annotated[int, Field(ge=1, le=4096)] | None = None
    incumbent: str | None = None

    @property
    def pairing(self) -> Pairs:
        """``pairs``, or what the mode implies."""
        return self.pairs or ("independent" if self.mode == "paper" else "common")


class RefinementSettings(_Strict):
    """Whether, and with which part of the budget, prompts outside the candidate set are looked for."""

    mode: RefinementMode | None = Field(
        None,
        description="default: one budget, a rule decides call by call; m-ucb-r: the last calls; psk-ei: direct search, "
        "no candidate set; left out: default where candidates are invented, else off",
    )
    additional: int = Field(
        20,
        ge=1,
        description="m-ucb-r: I; the last calls of the budget, at most half of it; in paper mode calls on top of it",
    )
    share: float | None = Field(
        None, ge=0, lt=1, description="default: a fixed share of the budget instead of the rule"
    )


class IdeaSettings(_Strict):
    """Whether a model writes further prompts while the run goes on."""

    mode: Literal["auto", "on", "off"] = Field(
        "auto", description="on: whenever a call to it is worth more than one in the set; auto: where the budget allows"
    )


class Settings(_Strict):
    """Everything a run depends on besides its task."""

    seed: int = Field(0, ge=0)
    holdout: float = Field(
        0.0, ge=0, lt=1, description="share of the pairs kept aside, on which winner and incumbent are tried at the end"
    )
    output: Path | None = None
    all_zero: Literal["stop", "continue"] = Field(
        "stop", description="what to do if every answer of the pilot scores 0, before the rest of the budget is spent"
    )
    model: ModelSettings = ModelSettings()
    further_models: tuple[ModelSettings, ...] = Field(
        (), description="compared with model: in a file, a second and third table [[model]]"
    )
    judge: ModelSettings | None = None
    writer: ModelSettings | None = Field(
        None, description="the model that writes prompts; left out: the one that answers"
    )
    ray: RaySettings | None = None
    budget: BudgetSettings = BudgetSettings()
    prices: dict[str, PriceSettings] = {}
    search: SearchSettings = SearchSettings()
    selection: SelectionSettings = SelectionSettings()
    refinement: RefinementSettings = RefinementSettings()
    ideas: IdeaSettings = IdeaSettings()

    @property
    def models(self) -> tuple[ModelSettings, ...]:
        """All models that are asked."""
        return (self.model, *self.further_models)

    @field_validator("further_models")
    @classmethod
    def _sampled_alike(cls, value: tuple[ModelSettings, ...], info: ValidationInfo) -> tuple[ModelSettings, ...]:
        first = info.data.get("model", ModelSettings())
        if any((m.temperature, m.top_p) != (first.temperature, first.top_p) for m in value):
            raise PydanticCustomError("models", "all models need the same temperature and top_p")
        return value

    @property
    def refining(self) -> RefinementMode:
        """``refinement.mode``, or what the source of the candidates implies."""
        return self.refinement.mode or ("default" if self.search.source == "latent" else "off")

    @property
    def has_ideas(self) -> bool:
        """Whether a model writes prompts while the run goes on; ``auto`` has to be decided first."""
        return self.ideas.mode == "on"

    def price_of(self, model_name: str) -> PriceSettings:
        """The price of a model; free when the table does not name it."""
        return self.prices.get(model_name, PriceSettings())


# What the published method is made of besides its two modes; refinement happens only where it is asked for.
_PUBLISHED: Mapping[str, object] = {"search.source": "latent", "selection.batch": 1, "ideas.mode": "off"}
_UNASKED: Mapping[str, object] = {"refinement.mode": "off"}


def load_settings(path: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Settings from a TOML file, changed by ``overrides``.

    ``mode = "paper"``, above all tables or among the overrides, is one switch for the published method: both stages in
    paper mode, candidates invented from the examples, one evaluation at a time, and no refinement unless asked for.
    What stands beside it in the file, or in the overrides, still holds; in the overrides it outranks the file.

    Args:
        path: The file, or ``None`` for the defaults. Paths inside it are relative to its folder.
        overrides: Dotted keys and values, e.g. ``{"budget.calls": 100}``; ``None`` values are skipped.

    Raises:
        ConfigError: Naming file, line, key, value and what is allowed.
    """
    tables: dict[str, Any] = read_toml(path) if path else {}
    tables.pop("task", None)
    if isinstance(tables.get("model"), list) and tables["model"]:  # [[model]], several of them
        tables["model"], *tables["further_models"] = tables["model"]
    if path:
        _anchor(tables, path.parent)
    changes = {dotted: value for dotted, value in (overrides or {}).items() if value is not None}
    if "mode" in tables:
        mode = tables.pop("mode")
        _set(tables, {**_switched(mode, path), **(_UNASKED if mode == "paper" else {})}, keep=True)
    if "mode" in changes:
        mode = changes.pop("mode")
        _set(tables, _switched(mode))
        _set(tables, _UNASKED if mode == "paper" else {}, keep=True)
    _set(tables, changes)
    try:
        settings = Settings.model_validate(tables)
    except ValidationError as error:
        raise ConfigError(explain(error, path, Settings)) from None
    others = (("judge", settings.judge), ("writer", settings.writer))
    for key, model in (*(("model", each) for each in settings.models), *others):
        if model is not None and (fault := fault_in(model)):
            name, what = fault
            raise ConfigError(f"{where(path, name)}{key}.{name}{what}")
    return settings


def in_mode(settings: Settings, mode: Mode) -> Settings:
    """``settings`` by the one switch between the published method and ours, as :func:`load_settings` describes it."""
    asked = settings.refinement.mode is not None
    return changed(settings, {**_switched(mode), **(_UNASKED if mode == "paper" and not asked else {})})


def changed(settings: Settings, changes: Mapping[str, object]) -> Settings:
    """``settings`` with other values at dotted keys; ``None`` values are skipped."""
    tables = settings.model_dump()
    _set(tables, {dotted: value for dotted, value in changes.items() if value is not None})
    return Settings.model_validate(tables)


def without_auto(settings: Settings) -> Settings:
    """``settings`` as a run takes them: what nobody has decided (``run/automatic.py``) is left out of it."""
    undecided = {"search.source": (settings.search.source, "examples"), "ideas.mode": (settings.ideas.mode, "off")}
    changes = {key: instead for key, (value, instead) in undecided.items() if value == "auto"}
    return changed(settings, changes) if changes else settings


def _switched(mode: object, path: Path | None = None) -> dict[str, object]:
    """What the switch stands for; refinement apart, which a file may ask for."""
    if mode not in get_args(Mode):
        raise ConfigError(f"{where(path, 'mode')}mode = {mode!r}: choose one of {', '.join(get_args(Mode))}")
    both: dict[str, object] = {"selection.mode": mode, "search.mode": mode}
    return {**both, **(_PUBLISHED if mode == "paper" else {})}


def _set(tables: dict[str, Any], changes: Mapping[str, object], keep: bool = False) -> None:
    """Sets dotted keys in nested tables; with ``keep`` only those that are not there."""
    for dotted, value in changes.items():
        *parents, leaf = dotted.split(".")
        table = tables
        for name in parents:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{name} = {table!r:.60} must be a table, because {dotted} is set in it")
        if not keep or leaf not in table:
            table[leaf] = value


def recorded_settings(facts: Mapping[str, Any]) -> Settings:
    """The settings in a run's record; one from before refinement, or ideas, existed was made without them."""
    tables = {"refinement": {"mode": "off"}, "ideas": {"mode": "off"}, **facts["settings"]}
    return Settings.model_validate(tables, context={"recorded": True})


def read_toml(path: Path) -> dict[str, Any]:
    """The tables of a TOML file."""
    try:
        return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file. Write one with: bestprompt init") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not TOML, not text, a number of thousands of digits, or too deep
        raise ConfigError(f"{path}: not valid TOML: {error}") from None


def _anchor(tables: dict[str, Any], folder: Path) -> None:
    further = tables.get("further_models")
    for model in further if isinstance(further, list) else ():
        _anchor({"model": model}, folder)
    models = ((table, key) for table in ("model", "judge", "writer") for key in ("path", "cache"))
    for table, key in (*models, ("search", "file")):
        value = tables.get(table, {}).get(key) if isinstance(tables.get(table), dict) else None
        if isinstance(value, str):
            tables[table][key] = _placed(value, folder)
        elif isinstance(value, list) and all(isinstance(each, str) for each in value):
            tables[table][key] = [_placed(each, folder) for each in value]


def _placed(path: str, folder: Path) -> str:
    try:
        return str(folder / Path(path).expanduser())
    except RuntimeError:
        raise ConfigError(f"{path}: there is no home folder of that name") from None
