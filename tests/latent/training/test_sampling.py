"""The corpus sampler without its models: what is asked for, what is kept, and what survives a kill."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from bestprompt.latent.training.cleaning import clean, normalized
from bestprompt.latent.training.requests import (
    GROUP_BLOCKS,
    GROUP_LABELS,
    KIND_LINES_SHOWN,
    REGISTER_LINES_SHOWN,
    Catalogue,
    block_number,
)
from bestprompt.latent.training.sampling import parse
from bestprompt.latent.training.store import CROWD, FILE_NAME, CorpusFile, CorpusRecord, read, report
from bestprompt.rng import stream


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return Catalogue.load()


def record(text: str, group: str = "big-0") -> CorpusRecord:
    return CorpusRecord(text, "plain", group, "translate")


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        ("1. **Sort the words** from A to Z", "Sort the words from A to Z."),
        ('- "Name the larger animal."', "Name the larger animal."),
        ("how many vowels are there", "How many vowels are there?"),
        ("Label the tweet [happy, sad, angry]", "Label the tweet [happy, sad, angry]"),
        ("Count the “vowels” in it.", 'Count the "vowels" in it.'),
        ("Find the verb. [translate: a song] Give the title.", "Find the verb."),
        ("Which verb is it? polite: Please find the verb.", "Which verb is it?"),
    ],
)
def test_decoration_goes_and_the_instruction_stays(line: str, kept: str) -> None:
    assert clean(line) == kept


@pytest.mark.parametrize(
    "line",
    [
        "Sort them.",  # two words
        "Sort " + "very " * 3 + "long lists.",  # says a word again and again
        "Write " + ", ".join(f"word{i}" for i in range(41)) + ".",
        "Sure, here are some instructions for you.",
        "I'm sorry, but I cannot write that.",
        "The weather was fine on Monday.",  # asks for nothing
        "Write a story about the",
        "You are a teacher.",
        "When does the train leave? []",
        'Answer with "yes or no.',
        "Translate 你好 into English.",
        "Run print(x) = {1: 2} now.",
        "Read the text and the text and the text and the end.",
        "",
    ],
)
def test_what_is_no_instruction_is_dropped(line: str) -> None:
    assert clean(line) is None


def test_registers_without_end_marks() -> None:
    assert clean("Into French, formal tone.", "bare") == "into French, formal tone"
    assert clean("Can I eat this in Rome?", "lower") == "can i eat this in rome"
    assert clean("Go on.", "lower") is None


def test_every_written_example_is_an_instruction_by_our_own_rules(catalogue: Catalogue) -> None:
    for register in catalogue.registers.values():
        assert all(clean(line.partition("] ")[2], register.finish) for line in register.lines)
    for kind in catalogue.kinds.values():
        assert len(kind.lines) >= KIND_LINES_SHOWN
        assert all(clean(line.partition("] ")[2]) for line in kind.lines)
    assert all(clean(group[label]) for group in catalogue.groups.values() for label in GROUP_LABELS)
    assert all(len(register.lines) >= REGISTER_LINES_SHOWN for register in catalogue.registers.values())


def test_any_stretch_of_blocks_is_balanced(catalogue: Catalogue) -> None:
    kinds, turns = len(catalogue.kinds), len(catalogue.registers) + GROUP_BLOCKS
    blocks = [catalogue.block("big", number) for number in range(2 * kinds + 1)]
    for length in (kinds, kinds + kinds // 3, 2 * kinds):
        counts = Counter(block[0].kind for block in blocks[:length])
        assert max(counts.values()) - min(counts[kind] for kind in catalogue.kinds) <= 1
    for start in range(0, kinds, turns):
        registers = Counter(block[0].register for block in blocks[start : start + turns] if block[0].mode == "line")
        assert registers == Counter(dict.fromkeys(catalogue.registers, 1))


def test_requests_are_a_function_of_their_block_and_differ_between_blocks(catalogue: Catalogue) -> None:
    assert catalogue.block("big", 7) == catalogue.block("big", 7)
    requests = [request for number in range(60) for request in catalogue.block("big", number)]
    assert len({request.seed for request in requests}) == len(requests)
    assert {request.seed for request in requests}.isdisjoint(r.seed for r in catalogue.block("small", 7))
    for request in requests:
        assert request.prompt.endswith(request.opening if request.opening is not None else f"[{request.kind}:")
        assert request.prompt == request.prompt.rstrip()  # a blank at the end makes small models write numbers


def test_a_block_shares_its_examples(catalogue: Catalogue) -> None:
    for number in range(15):
        heads = {request.prompt.rpartition(f"[{request.kind}:")[0] for request in catalogue.block("big", number)}
        assert len(heads) == 1


def test_a_group_of_paraphrases_is_read_and_a_lone_line_is_not_a_group(catalogue: Catalogue) -> None:
    request = next(r for number in range(99) for r in catalogue.block("big", number) if r.mode == "group" and r.opening)
    written = " all dates in the letter.\nreworded: List the days in this letter\nshorter: dates\nremark: good ones!"
    records = parse(request, written, {})
    assert [(r.register, r.text) for r in records] == [
        ("plain", f"{request.opening} all dates in the letter."),
        ("reworded", "List the days in this letter."),
    ]
    assert {r.group for r in records} == {request.group}
    assert parse(request, " all dates in the letter.\nshorter: dates", {}) == []
    assert parse(request, " all dates in the letter.\nshorter: Wash the car.", {}) == []


def test_a_model_may_choose_the_subject(catalogue: Catalogue) -> None:
    requests = [request for number in range(30) for request in catalogue.block("big", number)]
    request = next(request for request in requests if request.opening is None and request.register == "plain")
    assert [r.text for r in parse(request, " rivers] Name the rivers [of, in] it.", {})] == [
        "Name the rivers [of, in] it."
    ]


def test_no_sentence_twice_whatever_its_case_and_marks(tmp_path: Path) -> None:
    with CorpusFile(tmp_path, known=["Sort the words."]) as store:
        assert store.add(record("Don't sort the list."))
        assert not store.add(record("dont SORT the list"))
        assert not store.add(record("Sort the words"))
        assert len(store) == 1
    with CorpusFile(tmp_path) as store:
        assert not store.add(record("Dont sort: the list!"))
        assert store.add(record("Sort the words"))
    assert [r.text for r in read(tmp_path / FILE_NAME)] == ["Don't sort the list.", "Sort the words"]
    assert normalized("Don't sort, the LIST!") == "dont sort the list"


def test_a_turn_of_phrase_does_not_fill_the_corpus(tmp_path: Path) -> None:
    with CorpusFile(tmp_path, known=["List all names in the order of the alphabet."]) as store:
        for number in range(2 * CROWD):
            store.add(record(f"Give us item {number} in the order of their own date."))
            store.add(record(f"Output the {number} names in the order of the alphabet."))
    texts = [r.text for r in read(tmp_path / FILE_NAME)]
    assert sum("their own date" in text for text in texts) == CROWD
    assert sum("alphabet" in text for text in texts) == CROWD - CROWD // 2


@pytest.mark.parametrize("left", ["S", "Sort th", "Sort the coins.\tplain\tbig-5\ttranslate"])
def test_what_a_kill_left_of_the_last_line_is_cut_off(tmp_path: Path, left: str) -> None:
    with CorpusFile(tmp_path) as store:
        store.add(record("Name the rivers.", "big-4"))
    with (tmp_path / FILE_NAME).open("a", encoding="utf-8") as file:
        file.write(left)
    assert [r.text for r in read(tmp_path / FILE_NAME)] == ["Name the rivers."]
    with CorpusFile(tmp_path) as store:
        assert {block_number(group) for group in store.groups} == {("big", 4)}
        store.add(record("Name the lakes.", "big-5-2"))
    assert [r.text for r in read(tmp_path / FILE_NAME)] == ["Name the rivers.", "Name the lakes."]
    assert block_number("big-5-2") == ("big", 5)


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    with CorpusFile(tmp_path), pytest.raises(BlockingIOError):
        CorpusFile(tmp_path)


def test_the_report_counts_and_shows(tmp_path: Path) -> None:
    with CorpusFile(tmp_path) as store:
        for number in range(30):
            store.add(record(f"Name the river number {number}."))
    text = report(tmp_path / FILE_NAME, 4, stream(0, "report"))
    assert text.startswith("30 sentences, 1 groups")
    assert "5: 30" in text
    assert text.count("] Name the river") == 4
