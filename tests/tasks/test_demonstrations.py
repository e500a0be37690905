from bestprompt.tasks import can_be_shown, demonstrated
from bestprompt.types import Pair

PAIRS = [Pair("I was charged twice.", "billing"), Pair("It crashed.", ("technical", "tech"))]


def test_pairs_stand_behind_the_prompt_as_plain_text() -> None:
    assert demonstrated("Name the team.", PAIRS) == (
        "Name the team.\n\nExamples:\n\nInput: I was charged twice.\nOutput: billing\n\n"
        "Input: It crashed.\nOutput: technical\n\nInput:"
    )


def test_a_frame_of_ones_own_is_used_for_the_pairs_too() -> None:
    assert demonstrated("Name the team.", PAIRS[:1], "{prompt}\n\nTicket: {input}\nTeam:") == (
        "Name the team.\n\nExamples:\n\nTicket: I was charged twice.\nTeam: billing"
    )
    assert demonstrated("Name it.", PAIRS[:1], "{prompt}\n<ticket>{input}</ticket>").endswith(
        "<ticket>I was charged twice.</ticket>\nbilling"
    )


def test_where_a_prompt_has_a_place_for_the_input_the_pairs_stand_before_it() -> None:
    shown = "Examples:\n\nInput: I was charged twice.\nOutput: billing\n\n"
    assert demonstrated("Route: {input}", PAIRS[:1]) == f"{shown}Route: {{input}}"
    long = "# Role\r\nYou route.\r\n\r\nTicket:\r\n{input}\r\n\r\nBe brief."
    assert demonstrated(long, PAIRS[:1]) == f"# Role\r\nYou route.\r\n\r\n{shown}Ticket:\r\n{{input}}\r\n\r\nBe brief."


def test_a_pair_with_a_placeholder_cannot_be_shown() -> None:
    assert can_be_shown(PAIRS[0])
    assert not can_be_shown(Pair("Fill {input} in.", "a"))
