"""What a run starts from: the incumbent, the task's examples, files, and what the caller gives as candidates."""

from __future__ import annotations

from collections.abc import Sequence

from bestprompt.errors import ConfigError
from bestprompt.run.settings import Settings
from bestprompt.search import CandidateSource
from bestprompt.tasks import Task, read_prompts
from bestprompt.types import SoftPromptSet

Given = Sequence[str] | SoftPromptSet | CandidateSource
"""Candidates as a caller may give them: texts, a ready set, or an object that proposes them."""


def given_texts(candidates: Given) -> list[str]:
    """The prompts among ``candidates`` that are there already; a source has not been asked yet."""
    if isinstance(candidates, SoftPromptSet):
        return list(candidates.prompts)
    return [] if isinstance(candidates, CandidateSource) else list(candidates)


def source_fingerprint(candidates: Given) -> str | None:
    """What identifies the source of candidates, if they come from one."""
    return candidates.fingerprint if isinstance(candidates, CandidateSource) else None


def given_prompts(task: Task, settings: Settings, candidates: Given = ()) -> dict[str, str]:
    """The prompts a run starts from → where each comes from: the incumbent, the task's examples, files and arguments.

    Raises:
        ConfigError: If there is none, or a ready set cannot be used as it is.
    """
    if isinstance(candidates, SoftPromptSet):
        return _ready(candidates, settings)
    incumbent = [settings.selection.incumbent] if settings.selection.incumbent else []
    listed = [*(read_prompts(settings.search.file) if settings.search.file else []), *given_texts(candidates)]
    prompts = dict.fromkeys((p.strip() for p in (*incumbent, *task.examples)), "example")
    for prompt in listed:
        prompts.setdefault(prompt.strip(), "file")
    if not prompts:
        raise ConfigError(
            f"Task {task.name} has no example prompts. Add some under [task] examples, or name a [search] file."
        )
    return prompts


def _ready(candidates: SoftPromptSet, settings: Settings) -> dict[str, str]:
    if not candidates.prompts:
        raise ConfigError("The given set of candidates is empty.")
    incumbent = settings.selection.incumbent
    if incumbent is not None and incumbent.strip() not in candidates.prompts:
        raise ConfigError("selection.incumbent is not in the given set of candidates. Build the set with it.")
    if settings.search.rewrites:
        raise ConfigError("search.rewrites cannot add to a given set of candidates. Give their texts instead.")
    return dict(zip(candidates.prompts, candidates.sources, strict=True))
