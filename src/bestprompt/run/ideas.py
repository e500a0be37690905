"""Prompts that a model writes while a run goes on, beside those found in the latent space: who looks outside the set.

At each look every source says what a call to its next proposal is expected to gain (``proposals/worth.py``; the refiner
by its own prediction). The one that promises most takes the turn, if that is more than the best call inside the set.
Only then is a model asked, and only for one prompt. What it was shown, what that cost and what came of it is recorded
with the look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, replace

import numpy as np

from bestprompt.execution import Price, Spend, Writer, spent_on_ideas
from bestprompt.ledger import Ledger
from bestprompt.proposals import SOURCES, Context, Refused, Shown, Source, propose, request_for
from bestprompt.proposals.worth import Worth, own_scores, worth
from bestprompt.refinement.stage import FIRST_EVALUATIONS
from bestprompt.rng import stream
from bestprompt.run.confirmation import ENOUGH
from bestprompt.run.explorer import Explorer
from bestprompt.run.outside import OutsideLook, given_up
from bestprompt.run.plan import mean_spend
from bestprompt.search.filters import near_duplicate, plain
from bestprompt.search.placing import placed
from bestprompt.selection import SelectionState, Selector
from bestprompt.selection.core.views import View
from bestprompt.selection.strategies.rank import value_of_next_call
from bestprompt.types import ADDED, FloatArray, NewCandidate, Pair, SoftPromptSet, Usage

# Answers that a writer is shown at most, of each how many are wrong ones, and the share of all pairs that may be shown.
SHOWN, WRONG, SHARE = 5, 0.6, 0.2
# What the calls that are left must promise together, if each gained as much as one to the next proposal. They gain less
# and less, so that this is no forecast; but the same gain per call is worth going on for where many calls are left.
PROMISE = 0.1
# Calls without which a new prompt cannot be judged: its own, those of the comparison with the best of the set, and as
# many in case these show that another prompt is that.
CALLS_LEFT = 3 * ENOUGH


class EvaluationCosts:
    """By what evaluations needed so far.

    Args:
        ledger: The record.
        limits: Of the run; what is not limited costs nothing.
    """

    def __init__(self, ledger: Ledger, limits: Spend) -> None:
        self._ledger, self._limits = ledger, limits

    def displaced(self, spend: Spend, state: SelectionState) -> float:
        """By the scarcest of what is limited."""
        each = mean_spend(self._ledger, state) or Spend(1.0)
        names = [name for name in ("calls", "tokens", "dollars") if math.isfinite(getattr(self._limits, name))]
        return max((getattr(spend, name) / each_ for name in names if (each_ := getattr(each, name)) > 0), default=0.0)


class Ideas:
    """Looks outside the set with a model's pen and, where the set has latent vectors, with the refiner.

    Args:
        writer: The model that writes, on the record and within the run's budget.
        price: What it charges.
        ledger: The record, for the answers that were given.
        pairs: Number, as in the record → pair.
        costs: What an evaluation is worth.
        seed: Of the run.
        explorer: Who looks in the latent space, if anybody does.
        sources: The ways to ask.
    """

    def __init__(
        self,
        writer: Writer,
        price: Price,
        ledger: Ledger,
        pairs: Sequence[Pair],
        costs: EvaluationCosts,
        seed: int,
        explorer: Explorer | None = None,
        sources: Sequence[Source] = SOURCES,
    ) -> None:
        self._writer, self._price, self._ledger, self._pairs = writer, price, ledger, pairs
        self._costs, self._seed, self._explorer, self._sources = costs, seed, explorer, sources
        self._references = tuple(right for pair in pairs for right in set(pair.references))

    def look(
        self, candidates: SoftPromptSet, selector: Selector, state: SelectionState, past: Sequence[OutsideLook] = ()
    ) -> tuple[OutsideLook, NewCandidate | None]:
        """One look after the looks ``past``, and the candidate it adds, if any."""
        if self._explorer is not None:
            found, new = self._explorer.look(candidates, selector, state, past)
        else:
            found, new = OutsideLook(len(state), "select", value_of_next_call(selector.view(state)), 0.0), None
        contexts, worths = self._worths(candidates, selector, state, past)
        values = {name: each.value for name, each in worths.items()}
        if self._explorer is not None:
            values[found.source] = found.refinement_value
        found = replace(found, worths=values)
        best = max(worths, key=lambda name: worths[name].value, default=None)
        least = PROMISE / max(selector.config.budget - len(state), 1)
        rivals = (found.selection_value, found.refinement_value, least)
        if best is None or worths[best].value <= max(rivals):
            return found, new
        return self._written(best, worths[best], contexts[best], candidates, state, past, found)

    # ------------------------------------------------------------------------------------------------------ internals
    def _worths(
        self, candidates: SoftPromptSet, selector: Selector, state: SelectionState, past: Sequence[OutsideLook]
    ) -> tuple[dict[str, Context], dict[str, Worth]]:
        """What each source that has something to go by would see, and what its proposal is worth."""
        view, common = selector.view(state), selector.config.pairs == "common"
        remaining = selector.config.budget - len(state)
        leader = selector.choice(state)
        if given_up(past) or remaining < CALLS_LEFT or self._open_question(candidates, view, state, leader):
            return {}, {}
        data = own_scores(state, view.noise, common)
        answers = self._answers(state, leader) if common and state.rotation.items is not None else []
        contexts: dict[str, Context] = {}
        worths: dict[str, Worth] = {}
        for source in self._sources:
            own = [look for look in past if look.source == source.name]
            context = self._context(candidates, view.mean, leader, state, answers, len(own))
            request = request_for(source, context, self._seed)
            if request is None:
                continue
            most = Spend.of(Usage(1, self._writer.max_prompt_tokens(request), request.max_tokens), self._price)
            # At first the most that it may cost, then what it did.
            price = float(np.mean([look.cost for look in own])) if own else self._costs.displaced(most, state)
            made = [prediction for look in own if (prediction := look.uncorrected) is not None]
            refused = sum(look.refused is not None for look in own)
            noise = float(view.noise[leader])
            contexts[source.name] = context
            worths[source.name] = worth(
                float(view.mean[leader]), noise, data, made, refused, price, remaining - math.ceil(price), ENOUGH
            )
        return contexts, worths

    def _open_question(self, candidates: SoftPromptSet, view: View, state: SelectionState, leader: int) -> bool:
        """Whether the leader, or an added prompt that may yet lead, has met too few pairs to be returned.

        One at a time: such a prompt is better evaluated than followed by the next.
        """
        enough = min(ENOUGH, state.rotation.items or ENOUGH)
        hopeful = view.mean + np.sqrt(np.diag(view.covariance)) >= view.mean[leader]
        added = [n for n, source in enumerate(candidates.sources) if source in ADDED and hopeful[n]]
        return any(state.items_met(n) < enough for n in (leader, *added))

    def _written(
        self,
        name: str,
        value: Worth,
        context: Context,
        candidates: SoftPromptSet,
        state: SelectionState,
        past: Sequence[OutsideLook],
        before: OutsideLook,
    ) -> tuple[OutsideLook, NewCandidate | None]:
        source = next(each for each in self._sources if each.name == name)
        made = propose(source, context, self._writer, self._seed)
        known = sum((Spend(*look.spend) for look in past), Spend())
        used = spent_on_ideas(self._ledger) - known  # with what failed, or was lost when a process died
        cost = math.ceil(self._costs.displaced(used, state) - 1e-9)
        look = replace(
            before,
            turn="refine",
            refinement_value=value.value,
            source=name,
            spend=astuple(used),
            cost=cost,
            prompt=None,
            mean=value.mean,
            std=value.std,
            improvement=None,
            candidate=None,
            bias=value.correction.bias,
            inflation=value.correction.inflation,
            barred=(),
            first=FIRST_EVALUATIONS,
        )
        if isinstance(made, Refused):
            return replace(look, refused=made.reason, first=0), None
        inherited = (state.rotation.closed_to(parent) for parent in made.parents)
        barred = made.items.union(*inherited)
        autoencoder = None if self._explorer is None else self._explorer.autoencoder
        new = placed(candidates, made.prompt, made.parents[0], name, autoencoder)
        number = len(candidates.prompts)
        return replace(look, prompt=made.prompt, candidate=number, barred=tuple(sorted(barred))), new

    def _context(
        self,
        candidates: SoftPromptSet,
        means: FloatArray,
        leader: int,
        state: SelectionState,
        answers: Sequence[Shown],
        number: int,
    ) -> Context:
        failed, passed = self._choice(answers, state, leader, number)
        return Context(
            candidates.prompts, leader, _second(candidates.prompts, means, state, leader), failed, passed, number,
            self._references,
        )  # fmt: skip

    def _answers(self, state: SelectionState, leader: int) -> list[Shown]:
        """What the leader answered, as far as the run has been told: one answer for each item."""
        mine = state.candidates == leader
        items = dict(zip(state.replications[mine].tolist(), state.items[mine].tolist(), strict=True))
        entries = (e for e in self._ledger.entries() if e.final and e.candidate == leader)
        told = {e.replication: e for e in entries if e.replication in items}
        shown = {
            items[r]: Shown(items[r], self._pairs[e.pair], e.output or "", e.score or 0.0)
            for r, e in sorted(told.items())
        }
        return [shown[item] for item in sorted(shown)]

    def _choice(
        self, answers: Sequence[Shown], state: SelectionState, leader: int, number: int
    ) -> tuple[tuple[Shown, ...], tuple[Shown, ...]]:
        """Wrong and right answers to show; none where too few pairs would be left to judge by."""
        items = state.rotation.items or 0
        closed = len(state.rotation.closed_to(leader))
        most = min(SHOWN, int(SHARE * items), items - closed - max(ENOUGH, math.ceil(items / 2)))
        if most < 2 or not answers:
            return (), ()
        order = stream(self._seed, "shown", len(state), number).permutation(len(answers))
        shuffled = [answers[i] for i in order]
        wrong = sorted((each for each in shuffled if each.score < 1.0), key=lambda each: each.score)
        failed = tuple(wrong[: max(1, round(WRONG * most))])
        best = max((each.score for each in shuffled), default=0.0)
        passed = [each for each in shuffled if each.score == best > 0.0 and each not in failed]
        return failed, tuple(passed[: most - len(failed)])


def _second(prompts: Sequence[str], means: FloatArray, state: SelectionState, leader: int) -> int | None:
    """The best evaluated prompt that is worded otherwise than the leader."""
    order = np.argsort(-np.where(state.counts > 0, means, -np.inf), kind="stable").tolist()
    own = [plain(prompts[leader])]
    others = (n for n in order if n != leader and state.counts[n] and not near_duplicate(plain(prompts[n]), own))
    return next(others, None)
