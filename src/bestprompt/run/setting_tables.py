"""The tables of a settings file besides ``[task]`` and ``[model]``: keys, bounds and defaults."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    SerializationInfo,
    ValidationInfo,
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
from bestprompt.types import Acquisition, Maximizer, Surrogate


class Strict(BaseModel):
    """A table without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class BudgetSettings(Strict):
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


class PriceSettings(Strict):
    """Dollars per million tokens of one model."""

    input: float = Field(0.0, ge=0)
    output: float = Field(0.0, ge=0)


class SearchSettings(Strict):
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


class RefinementSettings(Strict):
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


class IdeaSettings(Strict):
    """Whether a model writes further prompts while the run goes on."""

    mode: Literal["auto", "on", "off"] = Field(
        "auto", description="on: whenever a call to it is worth more than one in the set; auto: where the budget allows"
    )
