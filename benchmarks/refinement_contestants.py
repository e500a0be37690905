"""The contestants of the refinement benchmark: one run each of the selection and refinement classes on a surface."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from bestprompt.latent import SoftSpace
from bestprompt.refinement import (
    BudgetSplit,
    RefinementStage,
    Refiner,
    RefinerConfig,
    confirming,
    cumulative_uncertainty,
)
from bestprompt.run.confirmation import ENOUGH, confirmed
from bestprompt.selection import Selector, SelectorConfig, grown
from bestprompt.types import REFINED, Observation, Proposal, SoftPromptSet
from refinement_surfaces import Surface, candidate_set

BATCH, PILOT = 4, 24
SPLITS: dict[str, BudgetSplit | None] = {
    "selection only": None,
    "rule": BudgetSplit("rule"),
    "M-UCB-r (tail of 20)": BudgetSplit("tail", additional=20),
    "share 10 %": BudgetSplit("share", share=0.1),
    "share 20 %": BudgetSplit("share", share=0.2),
    "share 40 %": BudgetSplit("share", share=0.4),
    "PSK-EI direct": BudgetSplit("direct"),
}


@dataclass
class Course:
    """How a run went: the true score of its choice, and what refinement did."""

    value: float
    best_of_set: float
    optimum: float
    added: int = 0
    refined_calls: int = 0
    winner_refined: bool = False
    uncertainty: float = 0.0
    predicted: list[tuple[float, float, float]] = field(default_factory=list)


def run(problem: Surface, name: str, n: int, budget: int, config: RefinerConfig | None = None) -> Course:
    """One run of contestant ``name`` with ``budget`` evaluations."""
    split = SPLITS[name]
    direct = split is not None and split.kind == "direct"
    texts, X = candidate_set(problem, 8 if direct else n)
    best_of_set = max(problem.truth(text) for text in candidate_set(problem, n)[0])
    space = SoftSpace.fit(X)
    common = problem.item_sd > 0
    settings = SelectorConfig(
        budget=budget if split is None else split.selecting_until(budget),
        seed=problem.seed,
        pairs="common" if common else "independent",
        examples=tuple(range(8)),
        surrogate="average",
    )
    selector = Selector(space.to_soft(X), settings)
    state, original, asked, added = selector.initial(), len(texts), -1, []
    stage = None
    if split is not None:
        config = replace(
            config or RefinerConfig(), mode="paper" if direct else "default", seed=problem.seed, common=common
        )
        config = replace(config, kriging=replace(config.recipe, capacity=128))  # padding only: half the rows to compute
        stage = RefinementStage(Refiner(problem, lambda _text, _parent: "accepted", config), split)
    while len(state) < budget:
        if len(state) >= selector.config.budget:
            settings = replace(settings, budget=budget)
            selector = Selector(selector.Z, settings)
        proposals: list[Proposal] = []
        if stage is not None and len(state) >= PILOT and stage.split.due(len(state), budget, asked):
            asked = len(state)
            look = stage.look(selector, state, X, texts)
            if look.turn == "refine" and look.suggestion is not None:
                added.append(look.suggestion)
                texts, X = [*texts, look.suggestion.text], np.vstack([X, look.suggestion.vector])
                selector = Selector(np.vstack([selector.Z, space.to_soft(X[-1:])]), settings)
                state = grown(state)
                proposals = [Proposal(len(texts) - 1, r) for r in range(min(look.first, budget - len(state)))]
        if not proposals and len(added) and not direct:
            set_only = np.arange(len(texts)) < original
            leader, incumbent = selector.choice(state), selector.choice(state, set_only)
            if leader >= original:
                proposals = confirming(state, leader, incumbent, budget - len(state), ENOUGH)
        if not proposals:
            proposals = selector.ask(state, min(BATCH, budget - len(state)))
        scores = [
            Observation(p.candidate, p.replication, problem.score(texts[p.candidate], p.replication)) for p in proposals
        ]
        state = selector.tell(state, scores)
    # The paper's direct search takes the highest observed mean; the others what a run would return.
    sources = ("latent",) * original + (REFINED,) * len(added)
    grown_set = SoftPromptSet(tuple(texts), selector.Z, X, np.full(len(texts), -1), sources)
    if direct:
        choice = int(np.argmax(np.where(state.counts > 0, state.means, -1.0)))
    else:
        choice = confirmed(selector, state, grown_set)[0].candidate
    course = Course(problem.truth(texts[choice]), best_of_set, problem.best, len(added))
    course.refined_calls = int(state.counts[original:].sum())
    course.winner_refined = choice >= original
    course.uncertainty = float(cumulative_uncertainty([s.std for s in added])[-1]) if added else 0.0
    course.predicted = [(s.mean, s.std, problem.truth(s.text)) for s in added]
    return course
