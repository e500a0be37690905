"""The prompt in what a chatty model replies."""

from __future__ import annotations

import pytest

from bestprompt.proposals.reading import read_prompt

PROMPT = "Write the first letter of the word."
FENCES = "Answer in JSON.\n\n```json\n{}\n```\n\nNothing else."


@pytest.mark.parametrize(
    "reply",
    [
        PROMPT,
        f"  {PROMPT}\n",
        f'"{PROMPT}"',
        f"“{PROMPT}”",
        f"```\n{PROMPT}\n```",
        f"```text\n{PROMPT}\n```\nI hope this helps!",
        f"Here is the improved prompt:\n\n{PROMPT}",
        f'Sure! Here\'s a better version of the prompt:\n\n"{PROMPT}"',
        f"Here is the new prompt:\n```\n{PROMPT}\n```",
        f"New prompt: {PROMPT}",
        f"Prompt: {PROMPT}",
        f"**Improved Prompt:**\n\n{PROMPT}",
        f"<prompt>\n{PROMPT}\n</prompt>",
        f"<think>What went wrong?</think>\n{PROMPT}",
        f"{PROMPT}\n\nExplanation: it now says which letter.",
        f"{PROMPT}\n\nThis prompt is clearer because it names the letter.",
        f"Certainly!\n\n{PROMPT}\n\nLet me know if you need another one.",
    ],
)
def test_what_stands_around_it_is_left_out(reply: str) -> None:
    assert read_prompt(reply, "Which letter?") == PROMPT


@pytest.mark.parametrize("text", [FENCES, "You are a judge.\n\n1. Read.\n2. Say “yes” or “no”.", 'Say "yes" or "no"'])
def test_a_prompt_of_many_lines_stays_whole(text: str) -> None:
    assert read_prompt(text, FENCES) == text
    assert read_prompt(f"Here is the improved prompt:\n\n{text}", FENCES) == text


def test_what_the_parent_begins_with_is_no_greeting() -> None:
    parent = "Instruction: answer in one word."
    assert read_prompt("Instruction: answer in one letter.", parent) == "Instruction: answer in one letter."


@pytest.mark.parametrize("reply", ["", "  \n", "```\n```", '""'])
def test_nothing_is_nothing(reply: str) -> None:
    assert read_prompt(reply, PROMPT).strip('`"\n ') == ""
