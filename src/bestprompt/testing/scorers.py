"""What a run relies on in a scorer."""

from __future__ import annotations

from bestprompt.types import Pair, Scorer, Usage


def check_scorer(scorer: Scorer, pair: Pair, right: str, wrong: str) -> None:
    """All that is promised of a scorer, on one pair.

    Args:
        scorer: The part.
        pair: A pair it can judge.
        right: An output that should score more than ``wrong``.
        wrong: The other one.
    """
    assert isinstance(scorer.fingerprint, str)
    assert scorer.fingerprint
    assert scorer.fingerprint == scorer.fingerprint, "it names the scorer, so it must not change"
    outputs = [wrong, right, wrong]
    scores = scorer.score(outputs, [pair] * 3)
    assert len(scores) == 3, "one score per output"
    assert all(0.0 <= score.value <= 1.0 for score in scores), "scores lie in [0, 1]"
    assert scores[1].value > scores[0].value, "the order of the outputs is kept, and right is better than wrong"
    assert scores[0].value == scores[2].value, "equal outputs score alike"
    alone = scorer.score([right], [pair])[0]
    assert alone.value == scores[1].value, "an output is judged by itself, whatever comes with it"
    assert scorer.score([], []) == []
    most = scorer.max_usage(pair, 32)
    assert isinstance(most, Usage)
    assert all(score.usage.calls <= most.calls for score in scores), "max_usage is an upper bound"
