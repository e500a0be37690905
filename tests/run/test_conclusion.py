"""What the verdict says about refinement, in words."""

from __future__ import annotations

import pytest

from bestprompt.run.conclusion import _compared
from bestprompt.run.confirmation import Comparison


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (Comparison(3, 0, 0, 0.0, 0.0, float("inf")), "met no pair that the best of the set has met"),
        (Comparison(3, 0, 1, 1.0, 0.0, float("inf")), "scored 1.000 against 0.000 on 1 shared pair"),
        (
            Comparison(3, 0, 12, 0.75, 0.5, 0.125),
            "scored 0.750 against 0.500 on 12 shared pairs, a difference of +0.250 ± 0.125",
        ),
        (Comparison(3, 0, 1, 1.0, 0.0, float("inf"), False), "scored 1.000 against 0.000 on 1 evaluation each"),
        (
            Comparison(3, 0, 9, 0.5, 0.75, 0.2, False),
            "scored 0.500 against 0.750 on 9 or more evaluations each, a difference of -0.250 ± 0.200",
        ),
    ],
)
def test_a_comparison_in_words(found: Comparison, words: str) -> None:
    assert _compared(found) == words
