"""Of a long prompt one sentence of prose moves; everything else is the same, byte for byte."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bestprompt.errors import SearchError
from bestprompt.latent.prose import is_prose, prose_sentences
from bestprompt.latent.sentences import former_varied_sentence, varied_sentence, varied_sentences

SYSTEM_PROMPT = (Path(__file__).parent / "data" / "system_prompt.md").read_text(encoding="utf-8")
KEPT = "Sort all of these words now."  # an instruction, where it is none


def short(text: str) -> bool:
    return len(text.split()) <= 20


def test_the_prose_of_a_system_prompt() -> None:
    assert len(SYSTEM_PROMPT.splitlines()) >= 40
    assert [each.text for each in prose_sentences(SYSTEM_PROMPT)] == [
        "You are the first reader of the support desk of a small software company.",
        "Your colleagues rely on what you write, so take care with every ticket.",
        "Read the ticket between the tags:",
        "Decide which team should answer the ticket.",
        "Answer with the name of that team and nothing else.",
        "Stay friendly, also with angry customers.",
        "Translate tickets in other languages for yourself before you decide.",
        "Keep in mind that customers read your answer, e.g. in their inbox.",
    ]


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_an_instruction_of_a_system_prompt_moves(line_end: str) -> None:
    prompt = SYSTEM_PROMPT.replace("\n", line_end)
    before, varied, after = varied_sentence(prompt, short)
    assert varied == "Decide which team should answer the ticket."
    assert before + varied + after == prompt.strip()


@pytest.mark.parametrize(
    "structure",
    [
        f"```\n{KEPT}\n```",
        f"~~~text\n{KEPT}\n~~~",
        f"# {KEPT}",
        f"{KEPT[:-1]}\n=====",
        f"| {KEPT} | x |\n| --- | --- |",
        f"> {KEPT}",
        f"    {KEPT}",
        f'{{\n  "a": [\n    "{KEPT}"\n  ]\n}}',
        f"<example>\n{KEPT}\n</example>",
        f"Input: {KEPT}",
        f"Q: {KEPT}\nA: {KEPT}",
        KEPT.replace("words", "{input}"),
        KEPT.replace("words", "{{ words }}"),
        KEPT.replace("words", "<words>"),
        KEPT.replace("words", "`words`"),
        KEPT.replace("words", "[WORDS]"),
        KEPT.replace("words", "${WORDS}"),
        KEPT.replace("words", "http://host/words"),
        KEPT.replace("words", "words 🛟"),
        "Sort all of these words and then\nput them in order.",
        "Sort all of these words, for which the list of letters is used\nAfterwards they are in order.",
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_structure_never_moves(structure: str, line_end: str) -> None:
    prompt = f"Here.\n\n{structure}\n\nName the team.\n\n{structure}".replace("\n", line_end)
    before, varied, after = varied_sentence(prompt, short)
    assert varied == "Name the team."
    assert before + varied + after == prompt.strip()


@pytest.mark.parametrize(
    "marker", ["- ", "* ", "+ ", "• ", "1. ", "12) ", "a) ", "(b) ", "  - ", "- [ ] ", "**Tone**: ", "- Step 2: "]
)
def test_the_marker_of_a_list_stays(marker: str) -> None:
    prompt = f"Rules\n\n{marker}Name the team in one word.  \n{marker}{{kept}}\n"
    before, varied, after = varied_sentence(prompt, short)
    assert varied == "Name the team in one word."
    assert before.endswith(f"\n{marker}")
    assert after.startswith("  \n")


@pytest.mark.parametrize(
    ("prompt", "varied"),
    [
        ("Translate the word into French: {input}", "Translate the word into French:"),
        ("Use e.g. a dictionary.\nSort the words of the list.", "Use e.g. a dictionary."),
        ('Say "yes" or "no".\nDecide whether it is true.', "Decide whether it is true."),
        ("Do this:\nSort the words of the list.", "Sort the words of the list."),
        ("You are kind.\nYour task is to name the team.", "Your task is to name the team."),
    ],
)
def test_which_sentence_is_worth_varying(prompt: str, varied: str) -> None:
    assert varied_sentence(prompt, short)[1] == varied


def test_prompts_get_a_sentence_of_their_own_where_they_have_one() -> None:
    first, second = "Sort the words.\nBe brief and kind.", "Sort the words.\nName the first of them."
    assert [varied for _, varied, _ in varied_sentences([first, second, first], short)] == [
        "Sort the words.",
        "Name the first of them.",
        "Be brief and kind.",
    ]


@pytest.mark.parametrize(
    "prompt",
    [
        "{input}",
        "```\nSort the words.\n```",
        "a {b} c",
        "<examples>\n```json\n</examples>\nSort the words.",
        "{\n```\n}\nSort the words.",
    ],
)
def test_a_prompt_without_prose_is_refused(prompt: str) -> None:
    with pytest.raises(SearchError, match="without placeholders"):
        varied_sentence(prompt, short)


def test_runs_that_began_before_move_what_they_moved() -> None:
    assert former_varied_sentence("Sort {input}.", short) == ("", "Sort {input}.", "")
    assert (
        former_varied_sentence("# Sort the words.\nName the team.", lambda text: "\n" not in text)[1]
        == "Name the team."
    )


pieces = st.sampled_from([
    "# Title", "## Rules 🛟", "- Name the team.", "1. Say it in one word.", "* [ ] **Note**: Stay kind.", "```json",
    "```", "~~~", '{"a": "Sort it."}', "{", "}", "| a | b |", "| --- | --- |", "> Sort it.", "    code()", "\tcode()",
    "<examples>", "</examples>", "<ticket>{input}</ticket>", "Input: x", "Output: y", "{{ name }}", "${X} %s @you",
    "You are kind, e.g. now.   ", "Decide which team", "should answer. Then stop.", "", "   ", "Was ist das?",
    "é e\u0301", "→ Say so.", "Sort the words; then, if you can, name the first one of them.", "a_b c*d", "---",
    "=====", "…",
])  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(pieces, min_size=1, max_size=40), st.sampled_from(["\n", "\r\n", "\r"]))
def test_whatever_a_prompt_is_made_of_all_but_one_sentence_of_prose_is_kept(lines: list[str], line_end: str) -> None:
    prompt = line_end.join(lines)
    for each in prose_sentences(prompt):
        assert prompt[each.start : each.end] == each.text == each.text.strip()
        assert is_prose(each.text)
        assert not set(each.text) & set("{}`<>|\r\n")
    try:
        before, varied, after = varied_sentence(prompt, short)
    except SearchError:
        return
    assert before + varied + after == prompt.strip()
    assert varied_sentence(varied, short) == ("", varied, "")
    # Fences that are open where the sentence begins would make code of it.
    opened = [
        line for line in before.replace("\r\n", "\n").replace("\r", "\n").split("\n") if line[:3] in ("```", "~~~")
    ]
    assert _closed(opened)


def _closed(fences: list[str]) -> bool:
    inside = ""
    for fence in fences:
        if not inside:
            inside = fence[:3]
        elif fence.rstrip() == inside:
            inside = ""
    return not inside


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_split_or_refused(text: str) -> None:
    for each in prose_sentences(text):
        assert text[each.start : each.end] == each.text
    try:
        before, varied, after = varied_sentence(text, short)
    except SearchError:
        return
    assert before + varied + after == text.strip()
