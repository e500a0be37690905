"""Programs of other tools as tasks: texts there and back, and a budget that counts evaluations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bestprompt.errors import ConfigError, LMError
from bestprompt.integrations.programs import Evaluated, ProgramModel, choose, joined, numbered, parted
from bestprompt.run.settings import Settings

TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\u2060"), min_size=1).filter(
    lambda text: bool(text.strip()) and "===" not in text
)


@given(st.dictionaries(st.sampled_from(["a", "b.c", "the third"]), TEXTS, min_size=1))
def test_texts_come_back_as_they_were(candidate):
    stripped = {name: text.strip() for name, text in candidate.items()}
    assert parted(joined(candidate), list(candidate)) == stripped


def test_the_placeholder_of_a_run_is_no_placeholder_in_a_program():
    assert parted(joined({"a": "Answer {input} now."}), ["a"]) == {"a": "Answer {input} now."}
    assert "{input}" not in joined({"a": "Answer {input} now."})


def test_a_text_that_looks_like_a_heading_is_refused():
    with pytest.raises(ConfigError, match="separates texts"):
        joined({"a": "x\n=== b ===\ny", "b": "z"})


class Adding:
    """Scores an example by whether the texts name it; counts evaluations."""

    def __init__(self) -> None:
        self.made = 0

    def evaluate(self, candidate, examples):
        self.made += len(examples)
        return [Evaluated(float(sum(map(len, candidate.values())) > 6), f"example {n}") for n in examples]


def program_model(program, pairs, **options):
    return ProgramModel(program, ("a", "b"), pairs[1], name="adding", fingerprint="adding:1", **options)


def test_a_program_with_two_components_is_judged_within_its_budget():
    program, pairs = Adding(), numbered([(f"question {n}", str(n)) for n in range(12)])
    chosen, found = choose(
        program_model(program, pairs, deterministic=True, batch_size=4),
        pairs[0],
        [{"a": "x", "b": "y"}, {"a": "longer", "b": "text {input}"}],
        name="adding",
        metric="length",
        budget=20,
    )
    assert chosen == {"a": "longer", "b": "text {input}"}
    assert program.made == found.calls <= 20
    assert "=== a ===" in found.prompt


def test_inputs_that_repeat_are_told_apart_and_empty_ones_have_a_name():
    pairs, numbers = numbered([("same", "1"), ("same", "2"), ("", "")])
    assert [pair.input for pair in pairs] == ["same", "same (#2)", "(nothing)"]
    assert list(numbers.values()) == [0, 1, 2]


def test_inventing_texts_for_several_components_is_refused():
    pairs = numbered([("a", "b"), ("c", "d")])
    latent = Settings.model_validate({"search": {"source": "latent"}})
    model = program_model(Adding(), pairs)
    with pytest.raises(ConfigError, match="2 components"):
        choose(model, pairs[0], [{"a": "x", "b": "y"}], name="n", metric="m", budget=4, config=latent)


def test_an_error_of_the_program_stops_in_words_and_costs_what_was_made():
    class Broken:
        def evaluate(self, candidate, examples):
            return [LMError("no answer", retryable=False, systemic=True) for _ in examples]

    pairs = numbered([("a", "b")])
    with pytest.raises(LMError, match="no answer"):
        choose(program_model(Broken(), pairs), pairs[0], [{"a": "x", "b": "y"}], name="n", metric="m", budget=4)
