"""The language model's word on readings: in context where that is possible, alone otherwise."""

from collections.abc import Sequence

import numpy as np
import pytest

from bestprompt.search.context_fluency import CEILING, ENOUGH, FEWEST, MARGIN, MOST, MOST_CHARACTERS, context_fluency
from bestprompt.search.filters import _REFERENCE, fluency_floor
from bestprompt.search.growth import READINGS, Growth, Rules, choose_readings
from bestprompt.types import FloatArray

EXAMPLES = tuple(f"Sort the words by rule {number}." for number in "abcdefghijklmn")
TYPICAL = -4.0


class Model:
    """A model whose answer is written down; keeps what it was asked."""

    def __init__(self, values: dict[str, float]) -> None:
        self.values, self.texts, self.contexts = values, list[str](), set[str]()

    def mean_logprob(self, texts: Sequence[str], contexts: Sequence[str] | None = None) -> FloatArray:
        self.texts += texts
        self.contexts |= set(contexts or ())
        return np.array([self.values.get(text.strip(), TYPICAL) for text in texts])


def test_the_floor_is_what_the_examples_reach_after_each_other() -> None:
    model = Model({"Better.": -1.0})
    in_context = context_fluency(model.mean_logprob, EXAMPLES)
    assert [text.strip() for text in model.texts] == list(EXAMPLES[MOST // 2 : MOST])
    assert in_context.floor == pytest.approx(TYPICAL + MARGIN)
    assert in_context.context.splitlines() == list(EXAMPLES[:MOST])
    better, typical = in_context.margins(["Better.", "As good as an example."])
    assert better == pytest.approx(-1.0 - TYPICAL - MARGIN)
    assert typical == pytest.approx(-MARGIN)
    assert in_context.context in model.contexts


def test_examples_that_foretell_each_other_do_not_raise_the_floor_without_limit() -> None:
    assert context_fluency(Model(dict.fromkeys(EXAMPLES, -0.5)).mean_logprob, EXAMPLES).floor == CEILING


def test_answers_are_remembered() -> None:
    model = Model({})
    in_context = context_fluency(model.mean_logprob, EXAMPLES)
    in_context.margins(["Once.", "Once."])
    in_context.margins(["Once."])
    assert model.texts.count("Once.\n") == 1


@pytest.mark.parametrize("length", [150, 1000])
def test_a_context_stays_short(length: int) -> None:
    examples = tuple(f"{letter} " * (length // 2) for letter in "abcdefgh")
    context = context_fluency(Model({}).mean_logprob, examples).context
    assert len(context) <= MOST_CHARACTERS
    assert bool(context) == (length == 150)


@pytest.mark.parametrize("examples", [EXAMPLES[: FEWEST - 1], EXAMPLES])
def test_without_context_the_corpus_sets_the_floor(examples: tuple[str, ...]) -> None:
    def alone(texts: Sequence[str]) -> FloatArray:
        return np.array([-3.92 if text in _REFERENCE else -5.0 for text in texts])

    fluency = alone if len(examples) >= FEWEST else Model(dict.fromkeys(_REFERENCE, -3.92) | {"Some text.": -5.0})
    fluency = fluency.mean_logprob if isinstance(fluency, Model) else fluency
    in_context = context_fluency(fluency, examples)
    assert in_context.context == ""
    assert in_context.enough == 0.0
    assert in_context.margins(["Some text."])[0] == pytest.approx(-5.0 - fluency_floor("Some text."))


def _grown() -> Growth:
    starts = list(EXAMPLES[:4])
    return Growth(starts, np.zeros((4, 2)), [-1] * 4, [0] * 4)


FIRST, SECOND, THIRD, FOURTH = (
    f"{start} the words by {end}."
    for start, end in (("Sort", "length"), ("Sort all", "letter"), ("Order", "rule c"), ("Please sort", "rule b"))
)
FLOOR = TYPICAL + MARGIN


@pytest.mark.parametrize(
    ("values", "taken", "asked"),
    [
        ({FIRST: FLOOR + ENOUGH, SECOND: FLOOR + 9}, FIRST, 1),  # good enough: no further question
        ({FIRST: FLOOR + 0.1, SECOND: FLOOR + 0.3, THIRD: FLOOR + 0.2}, SECOND, READINGS),  # the best of those asked
        ({FIRST: FLOOR - 0.3, SECOND: FLOOR - 0.1, THIRD: FLOOR - 0.2, FOURTH: 0.0}, None, READINGS),
    ],
)
def test_the_reading_that_follows_best_is_taken(values: dict[str, float], taken: str | None, asked: int) -> None:
    model, readings = Model(values), [[FIRST, SECOND, THIRD, FOURTH]]
    chosen, ends = choose_readings(readings, np.array([0]), _grown(), Rules("default", model.mean_logprob))
    assert chosen == ({} if taken is None else {0: taken})
    assert ends == ["not fluent" if taken is None else "accepted"]
    assert sum(text.strip() in readings[0] for text in model.texts) == asked


def test_a_lenient_set_takes_what_lies_just_below_the_floor() -> None:
    growth, model = _grown(), Model({FIRST: FLOOR - 0.1, SECOND: -99.0, THIRD: -99.0})
    growth.leniency = 0.2
    rules = Rules("default", model.mean_logprob)
    assert choose_readings([[FIRST, SECOND, THIRD]], np.array([0]), growth, rules)[0] == {0: FIRST}


def test_two_points_never_take_the_same_reading() -> None:
    model = Model(dict.fromkeys([FIRST, SECOND, THIRD], FLOOR + 1.0))
    readings = [[FIRST, SECOND], [FIRST, THIRD]]
    chosen, _ = choose_readings(readings, np.array([0, 0]), _grown(), Rules("default", model.mean_logprob))
    assert chosen == {0: FIRST, 1: THIRD}
