"""What a run starts from: the incumbent, the task's examples, files, and what the caller gives as candidates."""

from __future__ import annotations

from collections.abc import Sequence

from bestprompt.errors import ConfigError
from bestprompt.run.settings import Settings
from bestprompt.search import CandidateSource
from bestprompt.tasks import DEFAULT_TEMPLATE, Task, read_prompt_file
from bestprompt.types import SoftPromptSet

_TELLING, _MOST_LOOKED_UP = 12, 2_000_000  # letters of an input that no prompt has by chance; lookups before a run

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
    prompts = dict.fromkeys((p.strip() for p in (*incumbent, *task.examples)), "example")
    for read in map(read_prompt_file, settings.search.files):
        for prompt, source in zip(read.prompts, read.sources, strict=True):
            prompts.setdefault(prompt, source)
    for prompt in given_texts(candidates):
        prompts.setdefault(prompt.strip(), "file")
    if not prompts:
        raise ConfigError(
            f"Task {task.name} has no prompts to choose from. Name a file of them with --prompts, or add some under "
            "[task] examples."
        )
    return prompts


def notes_on_prompts(task: Task, settings: Settings) -> list[str]:
    """What a user should know of the prompts before anything is spent: how files were read, what repeats, braces."""
    read = [read_prompt_file(path) for path in settings.search.files]
    notes = [note for each in read for note in each.notes]
    known = {prompt.strip() for prompt in task.examples}
    again = [prompt for each in read for prompt in each.prompts if prompt in known]
    if again:
        notes.append(f"also among the task's examples, and counted once: {', '.join(f'“{p[:60]}”' for p in again[:3])}")
    prompts = [*task.examples, *(p for each in read for p in each.prompts), settings.selection.incumbent or ""]
    if known_pairs := _holding_pairs(prompts, task):
        some = "one prompt holds" if known_pairs == 1 else f"{known_pairs} prompts hold"
        notes.append(f"{some} pairs of your data, with the right answer: of these the score says little")
    if filling := sum("{input}" in prompt for prompt in prompts):
        twice = "" if task.template == DEFAULT_TEMPLATE else ", and the template adds it once more"
        notes.append(f"{filling} prompt{'s' * (filling > 1)} with {{input}}: the input is put in there{twice}")
    return notes


def _holding_pairs(prompts: Sequence[str], task: Task) -> int:
    """How many prompts hold the input of a pair that judges them, and its answer: other optimisers put some there."""
    telling = [pair for pair in task.pairs if len(pair.input) >= _TELLING]
    if len(prompts) * len(telling) > _MOST_LOOKED_UP:
        return 0
    return sum(
        any(pair.input in p and pair.reference in p.split(pair.input, 1)[1] for pair in telling) for p in prompts
    )


def _ready(candidates: SoftPromptSet, settings: Settings) -> dict[str, str]:
    if not candidates.prompts:
        raise ConfigError("The given set of candidates is empty.")
    incumbent = settings.selection.incumbent
    if incumbent is not None and incumbent.strip() not in candidates.prompts:
        raise ConfigError("selection.incumbent is not in the given set of candidates. Build the set with it.")
    if settings.search.rewrites:
        raise ConfigError("search.rewrites cannot add to a given set of candidates. Give their texts instead.")
    if settings.search.demos:
        raise ConfigError("search.demos cannot add to a given set of candidates. Give their texts instead.")
    return dict(zip(candidates.prompts, candidates.sources, strict=True))
