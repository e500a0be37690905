"""Settings: a TOML file or keyword arguments → checked, frozen values.

One file describes a run. Its ``[task]`` table belongs to :mod:`bestprompt.tasks`, ``[model]`` to :mod:`bestprompt.lm`;
the others are in :mod:`bestprompt.run.setting_tables`. An unknown key is refused, with the nearest valid name, because
a misspelt setting that is ignored costs money.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, get_args

from pydantic import Field, ValidationError, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from bestprompt.choices import Mode, RefinementMode
from bestprompt.errors import ConfigError
from bestprompt.lm.back_ends import fault_in
from bestprompt.lm.settings import ModelSettings, RaySettings
from bestprompt.run.setting_faults import explain, where
from bestprompt.run.setting_tables import (
    BudgetSettings,
    IdeaSettings,
    PriceSettings,
    RefinementSettings,
    SearchSettings,
    SelectionSettings,
    Strict,
)


class Settings(Strict):
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
    prices: dict[str, PriceSettings] = Field(default_factory=dict)
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
