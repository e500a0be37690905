"""Which source deserves the next proposal: gain per call, learnt from what earlier proposals did."""

from __future__ import annotations

import numpy as np

from bestprompt.kriging.inputs import Observed
from bestprompt.proposals.worth import Worth, worth
from bestprompt.refinement.calibration import Prediction


def seen(*scores: float) -> Observed:
    n = len(scores)
    return Observed(np.zeros((n, 1)), np.arange(n), np.array(scores), np.full(n, 0.01))


def of(*scores: float, best: float = 0.6, refused: int = 0, price: float = 1.0, remaining: int = 100) -> Worth:
    past = [Prediction(n, 0.6, 0.15) for n in range(len(scores))]
    return worth(best, 0.2, seen(*scores), past, refused, price, remaining)


def test_what_disappointed_is_worth_less_and_what_did_well_more() -> None:
    assert of(0.3, 0.3, 0.3).value < of(0.5).value < of().value < of(0.7, 0.7).value


def test_calls_of_the_author_count() -> None:
    assert of(price=5.0).value < of(price=1.0).value
    assert of(refused=3).value < of().value
    assert of(0.6, refused=3).value > of(refused=4).value


def test_nothing_can_be_better_than_all_right() -> None:
    assert of(best=1.0).value == 0.0


def test_a_hopeless_source_is_worth_hardly_anything() -> None:
    assert of(0.1, 0.1, 0.1, 0.1).value < 0.2 * of().value
