"""A refined prompt is returned only if it did better than the best of the set on enough shared pairs."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.run.confirmation import ENOUGH, _compared, confirmed
from bestprompt.selection import SelectionState, Selector, SelectorConfig, grown
from bestprompt.selection.core.rotation import Rotation
from bestprompt.selection.core.state import empty_state, fold
from bestprompt.types import REFINED, Observation, SoftPromptSet

SOURCES = ("example", "example", REFINED)


def told(selector: Selector, scores: dict[int, list[float]], shift: int = 0) -> SelectionState:
    """Each candidate's scores on replications 0, 1, …; the refined one's begin at ``shift``."""
    rounds = [Observation(n, r + (shift if n == 2 else 0), v) for n, row in scores.items() for r, v in enumerate(row)]
    return selector.tell(selector.initial(), rounds)


def setting(pairs: str) -> tuple[Selector, SoftPromptSet]:
    Z = np.array([[0.0], [1.0], [0.5]])
    selector = Selector(Z, SelectorConfig(budget=200, pairs=pairs))  # type: ignore[arg-type]
    return selector, SoftPromptSet(("a", "b", "c"), Z, np.zeros((3, 2)), np.array([-1, -1, 0]), SOURCES)


def decide(
    scores: dict[int, list[float]], pairs: str = "common", shift: int = 0, compare: bool = True
) -> tuple[int, int]:
    selector, candidates = setting(pairs)
    choice, (comparison,) = confirmed(selector, told(selector, scores, shift), candidates, compare)
    assert (comparison.candidate, comparison.incumbent) == (2, 0)
    return choice.candidate, comparison.shared


GOOD, FAIR, POOR = [1.0] * 20, [1.0, 0.0] * 10, [0.0] * 20


def test_better_on_shared_pairs_is_returned() -> None:
    assert decide({0: FAIR, 1: POOR, 2: GOOD}) == (2, 20)


def test_worse_is_not() -> None:
    assert decide({0: GOOD, 1: POOR, 2: FAIR}) == (0, 20)


@pytest.mark.parametrize("pairs", ["common", "independent"])
def test_a_few_lucky_answers_are_no_evidence(pairs: str) -> None:
    assert decide({0: FAIR, 1: POOR, 2: [1.0] * (ENOUGH - 1)}, pairs) == (0, ENOUGH - 1)


@pytest.mark.parametrize("pairs", ["common", "independent"])
def test_the_standard_error_belongs_to_the_comparison(pairs: str) -> None:
    selector, candidates = setting(pairs)
    _, (found,) = confirmed(selector, told(selector, {0: FAIR, 1: POOR, 2: GOOD}), candidates)
    assert found.difference == 0.5
    assert found.error == pytest.approx(np.std(FAIR, ddof=1) / np.sqrt(20))


def test_pairs_that_only_one_has_met_do_not_count() -> None:
    assert decide({0: FAIR, 1: POOR, 2: GOOD}, shift=18) == (0, 2)
    # On easy pairs both are always right: a higher mean over other pairs is no reason.
    even = {0: [1.0] * 12 + [0.0] * 8, 1: POOR, 2: [1.0] * 12}
    assert decide(even) == (0, 12)


def test_independent_pairs_compare_all_evaluations() -> None:
    assert decide({0: FAIR, 1: POOR, 2: GOOD}, "independent", shift=100) == (2, 20)


def test_direct_search_returns_what_ranks_first() -> None:
    assert decide({0: [1.0, *POOR], 1: POOR, 2: [1.0] * 3}, compare=False) == (2, 3)


def test_pairs_that_an_author_was_shown_do_not_make_the_incumbent_look_better() -> None:
    """The incumbent is right on half of 20 pairs; the child never meets 8 of the 10 wrong ones, which were shown."""
    barred = frozenset(range(8))
    state = grown(empty_state(1, Rotation(1, 20, "never")), barred=barred)
    told = [Observation(0, r, float(r >= 10)) for r in range(20)]
    as_good = {r: float(r % 2) for r in range(8, 20)}  # right on half of what it meets, whatever the incumbent does
    better = dict.fromkeys(range(8, 20), 1.0)
    for answers, expected in ((as_good, False), (better, True)):
        after = fold(state, [*told, *(Observation(1, r, score) for r, score in answers.items())])
        found = _compared(after, 1, 0, common=True)
        assert found.shared == 12
        assert found.incumbent_score == 0.5
        assert found.better is expected
        assert abs(found.score - (0.5 if answers is as_good else 0.9)) < 0.12
