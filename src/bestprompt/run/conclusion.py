"""From what the loop ends with, and the record, to what is recommended: in words and plain values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from textwrap import shorten

import numpy as np

from bestprompt.execution import Spend, spent
from bestprompt.ledger import Ledger
from bestprompt.run.confirmation import ENOUGH, Comparison
from bestprompt.run.demonstrations import demonstrations_in_words, shown_by
from bestprompt.run.held_out import held_out_result, rival_of
from bestprompt.run.leaderboard import answer_costs, cheaper_in_words, ranked
from bestprompt.run.outside import OutsideLook
from bestprompt.run.record import limits
from bestprompt.run.result import (
    LoopResult,
    Recommendation,
    RefinedPrompt,
    Refinement,
    ShortlistedPrompt,
    SourceRecord,
)
from bestprompt.run.settings import Settings
from bestprompt.run.sources import winning_source
from bestprompt.run.variation import variation
from bestprompt.types import ADDED, CROSSED, REFINED, REFLECTED, RESTYLED, WRITTEN_SOURCES

BY: Mapping[str, str] = {
    REFINED: "by refinement",
    REFLECTED: "by reflection on wrong answers",
    RESTYLED: "by rewriting the leader",
    CROSSED: "by crossing the two best",
}


def conclude(result: LoopResult, ledger: Ledger, settings: Settings) -> Recommendation:
    """What a run that ended with ``result`` recommends, together with what only its record tells."""
    candidates, choice = result.candidates, result.choice
    used, entries = spent(ledger), list(ledger.entries())
    rival = rival_of(choice, candidates, settings.selection.incumbent)
    held_out = held_out_result(entries, choice.candidate, rival, candidates.prompts)
    looks_outside = settings.refining != "off" or settings.has_ideas
    refinement = _refinement(result, settings.refining) if looks_outside else None
    rows = tuple(ranked(choice, candidates, answer_costs(entries)))
    sentences = [
        choice.verdict_on(
            f"This prompt on {candidates.models[choice.candidate]}" if candidates.models else "This prompt"
        ),
        *(part.sentence for part in (choice.checked, refinement, held_out) if part),
        winning_source(rows),
        demonstrations_in_words(candidates, choice.candidate),
        cheaper_in_words(rows),
    ]
    return Recommendation(
        prompt=candidates.prompts[choice.candidate],
        score=choice.score,
        interval=choice.interval,
        probability_best=choice.probability_best,
        shortlist=tuple(
            ShortlistedPrompt(
                candidates.prompts[s.candidate], s.probability_best, s.score, int(choice.counts[s.candidate])
            )
            for s in choice.shortlist
        ),
        verdict=" ".join(filter(None, sentences)),
        calls=int(used.calls),
        tokens=int(used.tokens),
        dollars=used.dollars,
        stopped_because=result.reason,
        candidates=candidates,
        choice=choice,
        refinement=refinement,
        variation=variation(entries),
        last_look=held_out,
        leaderboard=rows,
        model=candidates.models[choice.candidate] if candidates.models else None,
        unspent=_unspent(limits(ledger)[-1], used),
        demonstrations=shown_by(candidates, choice.candidate),
    )


def _unspent(limit: Spend, used: Spend) -> int | None:
    return max(int(limit.calls - used.calls), 0) if math.isfinite(limit.calls) else None


def _refinement(result: LoopResult, mode: str) -> Refinement:
    prompts, choice = result.candidates.prompts, result.choice
    added = {look.candidate: look for look in result.looks if look.candidate is not None}
    tried = tuple(
        RefinedPrompt(
            prompt=prompts[c.candidate],
            source=result.candidates.sources[c.candidate],
            parent=prompts[int(result.candidates.parents[c.candidate])],
            predicted=added[c.candidate].mean or 0.0,
            std=added[c.candidate].std or 0.0,
            observed=float(choice.means[c.candidate]),
            evaluations=int(choice.counts[c.candidate]),
            comparison=c,
            returned=c.candidate == choice.candidate,
        )
        for c in result.comparisons
    )
    uncertainty = sum(r.std**2 for r in tried)
    sources = tuple(_source_record(name, result, tried) for name in (REFINED, *WRITTEN_SOURCES) if _asked(name, result))
    return Refinement(mode, tried, result.looks, uncertainty, _refinement_in_words(result), result.skipped, sources)


def _asked(source: str, result: LoopResult) -> list[OutsideLook]:
    """The looks at which ``source`` proposed something, or was asked to."""
    return [look for look in result.looks if look.source == source and (look.prompt is not None or look.written)]


def _source_record(source: str, result: LoopResult, tried: Sequence[RefinedPrompt]) -> SourceRecord:
    looks = _asked(source, result)
    own = [each for each in tried if each.source == source]
    gains = [each.comparison.difference for each in own if each.comparison.shared >= ENOUGH]
    return SourceRecord(
        source,
        len(looks),
        len(own),
        dict(Counter(look.refused for look in looks if look.refused is not None)),
        int(sum(look.spend[0] for look in looks)),
        max(gains, default=None),
        any(each.returned for each in own),
    )


def _refinement_in_words(result: LoopResult) -> str:
    written = [look for look in result.looks if look.written]
    if result.skipped is not None and not written:
        return f"Refinement was skipped: {result.skipped}."
    who = "Looking beyond the set" if written else "Refinement"
    if not result.comparisons:
        looks = len(result.looks)
        times = "once" if looks == 1 else f"{looks} times"
        if written:
            reasons = Counter(look.refused for look in written).most_common(1)[0][0]
            count = f"{len(written)} prompt{'s' if len(written) > 1 else ''}"
            return f"Of {count} that a model wrote none was fit to be tried (most often because {reasons})."
        return f"Refinement looked {times} and tried no prompt." if looks else "Refinement had no turn."
    choice, tried = result.choice, len(result.comparisons)
    # The one that is returned or, if none is, the one that came nearest to it.
    best = max(result.comparisons, key=lambda c: (c.candidate == choice.candidate, choice.estimates[c.candidate]))
    origins = Counter(result.candidates.sources[c.candidate] for c in result.comparisons)
    made = ", ".join(f"{count} {BY[source]}" for source, count in origins.items())
    counted = f"{tried} prompt{'s' if tried > 1 else ''}" + (f" ({made})" if written else "")
    words = f"{who} tried {counted}; the best of them {_compared(best)}"
    if result.candidates.sources[choice.candidate] in ADDED:
        why = (
            "is better than the best prompt of the set" if best.better else "has the highest score, which decides here"
        )
        won = f", found {BY[result.candidates.sources[choice.candidate]]}," if written else ""
        return f"{words}; it{won} {why}."
    kept = shorten(result.candidates.prompts[choice.candidate], 80, placeholder="…")
    few = f" (fewer than {ENOUGH} are no evidence)" if best.shared < ENOUGH and best.difference > 0.0 else ""
    return f"{words}{few}; kept “{kept}”."


def _compared(found: Comparison) -> str:
    """How a refined prompt did beside the best prompt of the set."""
    if not found.shared:
        return "met no pair that the best of the set has met"
    if found.paired:
        met = f"{found.shared} shared pair{'s' if found.shared > 1 else ''}"
    else:
        met = f"{found.shared} {'or more evaluations' if found.shared > 1 else 'evaluation'} each"
    error = f", a difference of {found.difference:+.3f} ± {found.error:.3f}" if np.isfinite(found.error) else ""
    return f"scored {found.score:.3f} against {found.incumbent_score:.3f} on {met}{error}"
