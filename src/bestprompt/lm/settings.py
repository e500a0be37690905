"""What a settings file may say about a language model, and what opens a model of one kind."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import parse_qs, urlsplit

from pydantic import BaseModel, ConfigDict, Field, field_validator
from pydantic_core import PydanticCustomError

from bestprompt.types import LanguageModel


class ModelSettings(BaseModel):
    """Which language model answers, and how it samples."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str = Field("embedded", description="the back end, a name of back_ends.BACK_ENDS")
    path: Path | None = Field(None, description="embedded: a GGUF file; the default weights when left out")
    threads: int | None = Field(None, ge=1, description="embedded: processor threads; all cores when left out")
    name: str | None = Field(None, description="openai: the model's name at the endpoint")
    base_url: str | None = Field(None, description="openai: any compatible URL; the vendor's when left out")
    api: Literal["chat", "completions"] = Field("chat", description="openai: chat, or the legacy completions call")
    api_key_env: str = Field("OPENAI_API_KEY", description="openai: the environment variable that holds the key")
    timeout: float = Field(60.0, gt=0)
    max_retries: int = Field(4, ge=0)
    concurrency: int = Field(8, ge=1, le=256)
    requests_per_second: float | None = Field(None, gt=0)
    tokens_per_second: float | None = Field(None, gt=0)
    temperature: float = Field(0.0, ge=0, le=2)
    top_p: float = Field(1.0, gt=0, le=1)
    options: dict[str, bool | int | float | str] | None = Field(
        None, description="further settings of a back end that no other one has"
    )

    @field_validator("base_url")
    @classmethod
    def _no_secret(cls, value: str | None) -> str | None:
        """Settings are recorded with the run, so a URL must not carry a credential."""
        parts = urlsplit(value or "")
        if parts.username or parts.password or any("key" in name or "token" in name for name in parse_qs(parts.query)):
            raise PydanticCustomError("secret", "a URL must hold no credential; put it into an environment variable")
        return value

    @field_validator("options")
    @classmethod
    def _no_secret_option(cls, value: Mapping[str, object] | None) -> Mapping[str, object] | None:
        for name, given in (value or {}).items():
            if isinstance(given, str) and any(word in name for word in ("key", "token", "secret", "password")):
                raise PydanticCustomError("secret", "no credential; put it into an environment variable")
        return value


@dataclass(frozen=True, slots=True)
class BackEnd:
    """How a model of one kind is opened.

    Attributes:
        open: Opens the model that settings describe.
        needs: Settings that must not be left out.
    """

    open: Callable[[ModelSettings], LanguageModel]
    needs: tuple[str, ...] = ()
