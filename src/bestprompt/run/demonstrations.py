"""The pairs of a run that are shown and judge nobody: set aside before anything is asked, then part of candidates."""

from __future__ import annotations

from bestprompt.errors import ConfigError
from bestprompt.run.settings import Settings
from bestprompt.search.demonstrations import DEMONSTRATIONS, draw_sets, with_demonstrations
from bestprompt.tasks import Task, can_be_shown, demonstrated
from bestprompt.types import Pair, SoftPromptSet

FEWEST = 10  # pairs that must be left to choose on
_LEAST_POOL = 4  # so that there are several sets even of a single pair


def parted(task: Task, settings: Settings) -> tuple[Task, tuple[Pair, ...]]:
    """``task`` without the pairs that demonstrations are drawn from, and these; as it is where none are asked for.

    Raises:
        ConfigError: If too few pairs would be left to choose on.
    """
    size = settings.search.demos
    if not size:
        return task, ()
    pool, pairs = pool_size(size), len(task.pairs)
    judging, shown = task.without(pool, settings.seed, can_be_shown) if pool < pairs else (task, ())
    left = len(judging.held_out(0.0, settings.seed)[0])
    if len(shown) < pool or left < FEWEST:
        most = max((k for k in range(1, size) if pairs - pool_size(k) >= FEWEST), default=0)
        fewer = f", or ask for {most} (--demos {most})" if most else ""
        raise ConfigError(
            f"search.demos = {size} keeps {pool} pairs aside that judge no prompt, and {FEWEST} must be left to choose "
            f"on; there are {pairs}. Give {pool + FEWEST} pairs or more{fewer}."
        )
    return judging, shown


def pool_size(size: int) -> int:
    """How many pairs are set aside for sets of ``size`` demonstrations."""
    return max(2 * size, _LEAST_POOL)


def add_demonstrations(
    candidates: SoftPromptSet, task: Task, pool: tuple[Pair, ...], settings: Settings
) -> SoftPromptSet:
    """``candidates``, and the same prompts with pairs of ``pool``; as they are where the pool is empty."""
    if not pool:
        return candidates
    sets = draw_sets([pair.reference for pair in pool], settings.search.demos, settings.seed)
    return with_demonstrations(
        candidates,
        sets,
        lambda prompt, shown: demonstrated(prompt, [pool[n] for n in shown], task.template),
        settings.seed,
    )


def longest_shown(prompts: list[str], task: Task, pool: tuple[Pair, ...], settings: Settings) -> list[str]:
    """``prompts`` and the longest of them with the longest pairs: what an evaluation may have to send."""
    if not pool:
        return prompts
    longest = sorted(pool, key=lambda pair: len(pair.input) + len(pair.reference))[-settings.search.demos :]
    return [*prompts, demonstrated(max(prompts, key=len), longest, task.template)]


def shown_by(candidates: SoftPromptSet, candidate: int) -> int:
    """How many demonstrations a candidate shows."""
    known = candidates.details.get(DEMONSTRATIONS)
    if known is None:
        return 0
    number = known["of"][candidate % len(known["of"])]  # on several models the candidates of the first come first
    return len(known["sets"][number]) if number >= 0 else 0


def demonstrations_in_words(candidates: SoftPromptSet, winner: int) -> str | None:
    """Which pairs were kept aside, and whether the winner shows some; ``None`` where nobody could."""
    known = candidates.details.get(DEMONSTRATIONS)
    if known is None:
        return None
    shown = shown_by(candidates, winner)
    aside = pool_size(len(known["sets"][0]))
    return (
        f"{aside} pairs were kept aside for demonstrations and judged no prompt; the winner shows "
        f"{f'{shown} of them' if shown else 'none'}."
    )
