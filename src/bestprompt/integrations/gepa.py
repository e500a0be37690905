"""Candidates of GEPA, judged: by the adapter that a GEPA user has, within a hard budget of evaluations.

    from bestprompt.integrations import gepa as judged
    found = judged.optimize([{"system_prompt": "…"}, …], adapter, valset, budget=200)
    found.candidate, found.recommendation.verdict

    result = gepa.optimize(seed_candidate=…, trainset=…, adapter=adapter, …)
    found = judged.judge(result, adapter, fresh_examples, budget=200)      # better than the seed? how sure?

``adapter`` is anything with GEPA's ``evaluate(batch, candidate, capture_traces)``; GEPA itself is needed for what an
adapter imports, not here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from bestprompt.errors import ConfigError, LMError
from bestprompt.integrations.programs import Candidate, Evaluated, ProgramModel, choose, in_words, numbered
from bestprompt.run.observer import Observer
from bestprompt.run.result import Recommendation
from bestprompt.run.settings import Settings


class Adapter(Protocol):
    """What of GEPA's ``GEPAAdapter`` is used."""

    def evaluate(self, batch: list[Any], candidate: dict[str, str], capture_traces: bool = False) -> Any:
        """The program with these texts on a batch: ``outputs`` and ``scores``, one for each example."""
        ...


class ResultOfGEPA(Protocol):
    """What of ``GEPAResult`` is used: its candidates, the seed first."""

    @property
    def candidates(self) -> list[dict[str, str]]: ...


@dataclass(frozen=True, slots=True)
class Judged:
    """The candidate to use, and how sure that is."""

    candidate: dict[str, str]
    recommendation: Recommendation


def optimize(
    seed_candidates: Sequence[Candidate],
    adapter: Adapter,
    valset: Sequence[Any],
    budget: int,
    *,
    incumbent: Candidate | None = None,
    score_range: tuple[float, float] = (0.0, 1.0),
    deterministic: bool = True,
    batch_size: int = 8,
    seed: int = 0,
    ledger: str | Path | None = None,
    config: Settings | str | Path | None = None,
    observer: Observer | None = None,
) -> Judged:
    """The best of ``seed_candidates``, evaluated by ``adapter.evaluate``.

    Args:
        seed_candidates: Mappings from component names to texts, all with the same names.
        adapter: A GEPA adapter.
        valset: Examples, as the adapter takes them.
        budget: Evaluations allowed: one is one candidate on one example, as GEPA counts metric calls.
        incumbent: The candidate in use, which stays unless another is better with a probability of at least .9; the
            first of ``seed_candidates`` if left out.
        score_range: The lowest and the highest score there may be.
        deterministic: Whether an example gets the same score again (temperature 0, or a cache). Then no question is
            asked twice; else further answers are further evidence.
        batch_size: Examples handed to the adapter together.
        seed: Decides every random choice.
        ledger: Folder of the run; one that is there is continued.
        config: Settings, e.g. to search for further candidates where there is one component.
        observer: Is told how the run goes.
    """
    given = [dict(each) for each in ([incumbent] if incumbent is not None else []) + list(seed_candidates)]
    if not given or not valset:
        raise ConfigError("Judging needs candidates and examples, at least one of each.")
    names = tuple(given[0])
    for candidate in given:
        if set(candidate) != set(names):
            raise ConfigError(f"All candidates need the components {', '.join(names)}; one has {', '.join(candidate)}.")
    pairs, numbers = numbered([_in_words(each) for each in valset])
    name = type(adapter).__name__
    model = ProgramModel(
        _Evaluating(adapter, list(valset)),
        names,
        numbers,
        name=name,
        fingerprint=f"gepa:{type(adapter).__module__}.{type(adapter).__qualname__}",
        range=score_range,
        deterministic=deterministic,
        batch_size=batch_size,
    )
    chosen, found = choose(
        model,
        pairs,
        [{name: each[name] for name in names} for each in given],
        name=name,
        metric=name,
        budget=budget,
        seed=seed,
        ledger=ledger,
        config=config,
        observer=observer,
    )
    return Judged(chosen, found)


def judge(result: ResultOfGEPA, adapter: Adapter, valset: Sequence[Any], budget: int, **options: Any) -> Judged:
    """The best of the candidates that GEPA found, its seed being the incumbent; ``options`` are those of ``optimize``.

    Examples that GEPA has not seen make the statement about examples like these; on its own validation set the
    candidates that it kept have been chosen for their luck there.
    """
    return optimize(result.candidates, adapter, valset, budget, **options)


class _Evaluating:
    """An adapter on a list of examples; see :class:`bestprompt.integrations.programs.Program`."""

    def __init__(self, adapter: Adapter, examples: list[Any]) -> None:
        self._adapter, self._examples = adapter, examples

    def evaluate(self, candidate: Candidate, examples: Sequence[int]) -> list[Evaluated | LMError]:
        """One call of the adapter. GEPA's adapters do not raise for single examples: what they raise holds for all."""
        batch = [self._examples[number] for number in examples]
        try:
            found = self._adapter.evaluate(batch, dict(candidate), capture_traces=False)
        except Exception as error:
            return [LMError(f"the adapter raised {type(error).__name__}: {error}") for _ in batch]
        if not len(found.scores) == len(found.outputs) == len(batch):
            short = f"{len(found.scores)} scores and {len(found.outputs)} outputs for {len(batch)} examples"
            return [LMError(f"the adapter returned {short}", retryable=False, systemic=True) for _ in batch]
        return [Evaluated(float(s), _shown(output)) for s, output in zip(found.scores, found.outputs, strict=True)]


def _in_words(example: Any) -> tuple[str, str]:
    """(input, expected) of an example, whose type is the adapter's affair."""
    if isinstance(example, Mapping):
        expected = next((example[key] for key in ("answer", "expected", "output", "label") if key in example), "")
        return (str(example["input"]) if "input" in example else in_words(example)), str(expected)
    return str(example), ""


def _shown(output: Any) -> str:
    return in_words(output) if isinstance(output, Mapping) and output else str(output)
