"""What a settings file may say about a language model, and what opens a model of one kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator
from pydantic_core import PydanticCustomError

from bestprompt.types import LanguageModel

_HARMLESS = ("api-version",)  # what a query may hold without asking


class ModelSettings(BaseModel):
    """Which language model answers, and how it samples."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    kind: str = Field("embedded", description="the back end, a name of back_ends.BACK_ENDS")
    path: Path | None = Field(None, description="embedded: a GGUF file; the default weights when left out")
    threads: int | None = Field(None, ge=1, description="embedded: processor threads; all cores when left out")
    name: str | None = Field(None, description="openai: the model's name at the endpoint")
    allow_query: tuple[str, ...] = Field((), description="openai: what a query in base_url may hold; no credential")
    base_url: str | None = Field(None, description="openai: any compatible URL; the vendor's when left out")
    api: Literal["chat", "completions"] = Field("chat", description="openai: chat, or the legacy completions call")
    api_key_env: str = Field("OPENAI_API_KEY", description="openai: the environment variable that holds the key")
    timeout: float = Field(60.0, gt=0, le=86_400)
    max_retries: int = Field(4, ge=0)
    concurrency: int = Field(8, ge=1, le=4096)
    requests_per_second: float | None = Field(None, gt=0)
    tokens_per_second: float | None = Field(None, gt=0)
    requests_per_minute: float | None = Field(None, gt=0)
    tokens_per_minute: float | None = Field(None, gt=0)
    temperature: float = Field(0.0, ge=0, le=2)
    top_p: float = Field(1.0, gt=0, le=1)
    cache: Path | None = Field(None, description="a file that keeps answers; runs that name the same one share them")
    options: dict[str, bool | int | float | str] | None = Field(
        None, description="further settings of a back end that no other one has"
    )

    @field_validator("api_key_env")
    @classmethod
    def _names_a_variable(cls, value: str, info: ValidationInfo) -> str:
        """The name is recorded with the run, so it must not be the key itself."""
        if not _from_record(info) and not re.fullmatch(r"[A-Z_][A-Z0-9_]{0,63}", value):
            raise PydanticCustomError(
                "secret", 'the name of an environment variable, such as "OPENAI_API_KEY", and not the key itself'
            )
        return value

    @field_validator("base_url")
    @classmethod
    def _no_secret(cls, value: str | None, info: ValidationInfo) -> str | None:
        """Settings are recorded with the run, so a URL must not carry a credential."""
        try:
            parts = urlsplit(value or "")
            parts.port  # noqa: B018  looked at, because only then is it checked
        except ValueError:  # whose text may hold a credential
            raise PydanticCustomError("secret", "not a URL: host or port cannot be right") from None
        names = {name for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
        if parts.username or parts.password or any("key" in name or "token" in name for name in names):
            raise PydanticCustomError("secret", "a URL must hold no credential; put it into an environment variable")
        unknown = sorted(names - {*_HARMLESS, *info.data.get("allow_query", ())})
        if not _from_record(info) and (unknown or parts.fragment or (parts.query and not names)):
            raise PydanticCustomError(
                "secret",
                "a URL with a query may carry a credential, and is recorded. If it does not, name what it may hold: "
                "allow_query = [{names}]",
                # What has no value may be the credential itself.
                {"names": ", ".join(f'"{name}"' for name, _ in parse_qsl(parts.query) if name in unknown)},
            )
        return value

    @field_validator("options")
    @classmethod
    def _no_secret_option(cls, value: Mapping[str, object] | None) -> Mapping[str, object] | None:
        for name, given in (value or {}).items():
            if isinstance(given, str) and looks_secret(name):
                raise PydanticCustomError("secret", "no credential; put it into an environment variable")
        return value


class WorkerSettings(BaseModel):
    """Workers that are alike: how many, what they need of a machine, and how their model differs from ``[model]``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    count: int = Field(1, ge=1)
    cpus: float = Field(1.0, ge=0)
    gpus: float = Field(0.0, ge=0)
    resources: dict[str, float] | None = Field(None, description="resources of ray start that bind them to machines")
    model: dict[str, bool | int | float | str] | None = Field(None, description="keys of [model] that differ")


class RaySettings(BaseModel):
    """Whether, and where, the model is held by workers of a Ray cluster."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str = Field("auto", description="of the cluster: auto, HOST:PORT, or local for one on this machine alone")
    workers: int = Field(1, ge=1, description="workers with the model of [model], each with so many cpus and gpus")
    cpus: float = Field(1.0, ge=0)
    gpus: float = Field(0.0, ge=0)
    worker: tuple[WorkerSettings, ...] = Field((), description="workers that differ, instead")

    @property
    def all_alike(self) -> WorkerSettings:
        """The workers where none differs."""
        return WorkerSettings(count=self.workers, cpus=self.cpus, gpus=self.gpus)


def looks_secret(name: str) -> bool:
    """Whether a setting of that name would hold a credential."""
    return any(word in name.lower() for word in ("key", "token", "secret", "password", "credential"))


def _from_record(info: ValidationInfo) -> bool:
    """Whether these are the settings of a run that began under earlier rules, and goes on."""
    return bool(info.context and info.context.get("recorded"))


@dataclass(frozen=True, slots=True)
class BackEnd:
    """How a model of one kind is opened.

    Attributes:
        open: Opens the model that settings describe.
        needs: Settings that must not be left out.
    """

    open: Callable[[ModelSettings], LanguageModel]
    needs: tuple[str, ...] = ()
