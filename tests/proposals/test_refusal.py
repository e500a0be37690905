"""What a model writes and nobody should pay to evaluate."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bestprompt.proposals import SOURCES, Context, Reflection, Shown
from bestprompt.proposals.refusal import language, refusal
from bestprompt.types import Pair

PROMPTS = ("Is the review positive or negative?", "Decide which of the labels fits the review.")
PAIRS = (
    Pair("The soup was cold and the waiter rude.", "negative"),
    Pair("A lovely evening from start to end.", "positive"),
    Pair("order 7731", "4471"),
    Pair("order 9902", "8815"),
)
SHOWN = tuple(Shown(n, pair, "neutral", 0.0) for n, pair in enumerate(PAIRS))
CONTEXT = Context(
    PROMPTS, 0, 1, SHOWN[:3], SHOWN[3:], references=("positive", "negative", "positive", "negative", "4471")
)
ASK = Reflection().ask(CONTEXT)
assert ASK is not None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("8", "empty"),
        ("negative", None),
        ("Read the review, then answer with positive or negative only.", None),
        ("word " * 2500, "characters"),
        ("Read the review and name it. " * 6, "over and over"),
        ("Find out what the wrong answers have in common and what the prompt leaves open.", "asked"),
        ("Прочитай отзыв и скажи, хороший он или плохой.", "Cyrillic"),
        ("レビューが肯定的か否定的かを答えてください。", "letters"),
        ("Entscheide, ob die Rezension positiv oder negativ ist, und antworte mit einem Wort für das.", "German"),
        ("Say negative when the soup was cold and the waiter rude.", "input"),
        ("Answer 4471 for order 7731 and read the others with care.", "shown"),
        ("Is the review positive or negative", "already"),
        ("Is the review {label} positive or negative in the end, all in all?", "{label}"),
    ],
)  # fmt: skip
def test_reasons(text: str, reason: str | None) -> None:
    found = refusal(text, ASK, CONTEXT)
    assert found is None if reason is None else found is not None and reason in found, found


def test_placeholders_stay() -> None:
    context = replace(CONTEXT, prompts=("Is this review good?\n{input}\nAnswer in a word.", PROMPTS[1]))
    assert refusal("Say whether the review below is a good one.", ASK, context) == "it lost {input}"
    assert refusal("Say whether this one is good or bad, in one word: {input}", ASK, context) is None


def test_prompts_in_several_scripts_allow_each_of_them() -> None:
    context = replace(CONTEXT, prompts=(*PROMPTS, "Хороший отзыв или плохой?"))
    assert refusal("Прочитай отзыв и скажи, какой он.", ASK, context) is None


@pytest.mark.parametrize("short", ["Sort.", "并且", ""])
def test_no_language_where_words_do_not_tell(short: str) -> None:
    assert language(short) is None


def test_what_sources_ask() -> None:
    asks = {source.name: source.ask(CONTEXT) for source in SOURCES}
    assert all(PROMPTS[0] in (ask or "") for ask in asks.values())
    assert PROMPTS[1] in (asks["crossed"] or "")
    shown = [pair.input for pair in PAIRS]
    assert all(text in (asks["reflected"] or "") for text in shown)
    assert not any(text in (asks[name] or "") for name in ("crossed", "restyled") for text in shown)
    nothing = replace(CONTEXT, failed=(), second=None)
    assert [source.ask(nothing) is None for source in SOURCES] == [True, False, True]
    styles = {SOURCES[1].ask(replace(CONTEXT, number=n)) for n in range(6)}
    assert len(styles) == 3
