"""The generated pairs, checked by code that shares nothing with the code that made them."""

from __future__ import annotations

import csv
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

import bestprompt.tasks
from bestprompt.errors import TaskError
from bestprompt.tasks import bundled, generators, names
from bestprompt.types import Pair

DATA = Path(bestprompt.tasks.__file__).parent / "data"
SEEDS = (0, 1)


@pytest.fixture(scope="module")
def pairs() -> dict[str, list[Pair]]:
    return {name: [pair for seed in SEEDS for pair in bundled(name, seed=seed).pairs] for name in names()}


def test_the_six_tasks_of_the_paper() -> None:
    assert set(names()) == {
        "word-sorting",
        "rhymes",
        "first-letter",
        "largest-animal",
        "number-words",
        "counting-objects",
    }


@pytest.mark.parametrize("name", names())
def test_size_distinct_inputs_and_repeatability(name: str) -> None:
    task = bundled(name)
    assert len(task.pairs) >= 500
    assert len({pair.input.casefold() for pair in task.pairs}) == len(task.pairs)
    assert task.pairs == bundled(name).pairs
    assert task.pairs != bundled(name, seed=1).pairs
    assert task.fingerprint == bundled(name).fingerprint != bundled(name, seed=1).fingerprint
    assert all(pair.references and all(pair.references) for pair in task.pairs)


@pytest.mark.parametrize("name", names())
def test_example_prompts(name: str) -> None:
    examples = bundled(name).examples
    assert len(examples) >= 12
    assert len({example.casefold() for example in examples}) == len(examples)


# Parsing number words: by peeling off "thousand" and "hundred" with a table, from the right.
_TABLE = {"zero": 0} | {
    word: value
    for words, start, step in (
        ("one two three four five six seven eight nine ten eleven twelve", 1, 1),
        ("thirteen fourteen fifteen sixteen seventeen eighteen nineteen", 13, 1),
        ("twenty thirty forty fifty sixty seventy eighty ninety", 20, 10),
    )
    for value, word in zip(range(start, 100, step), words.split(), strict=False)
}


def parse(words: str) -> int:
    for name, size in (("thousand", 1000), ("hundred", 100)):
        if name in words.split():
            before, _, after = words.partition(name)
            return parse(before.strip()) * size + (parse(after.strip()) if after.strip() else 0)
    parts = [part for part in re.split(r"[ -]", words) if part != "and"]
    assert 1 <= len(parts) <= 2
    assert len(parts) == 1 or (_TABLE[parts[0]] >= 20 and 1 <= _TABLE[parts[1]] <= 9)
    return sum(_TABLE[part] for part in parts)


def test_number_words(pairs: dict[str, list[Pair]]) -> None:
    for pair in pairs["number-words"]:
        assert parse(pair.reference) == int(pair.input)


def test_spelling_is_one_to_one_and_reads_well() -> None:
    some = [*range(2000), *range(2000, 1_000_000, 997)]
    assert [parse(generators.spell(n)) for n in some] == some
    assert generators.spell(105) == "one hundred and five"
    assert generators.spell(347) == "three hundred and forty-seven"
    assert generators.spell(12_000) == "twelve thousand"
    with pytest.raises(TaskError):
        generators.spell(1_000_000)


def test_first_letter(pairs: dict[str, list[Pair]]) -> None:
    for pair in pairs["first-letter"]:
        assert re.fullmatch(r"[a-z]{3,}", pair.input)
        assert pair.references == (re.match(r".", pair.input).group(),)  # type: ignore[union-attr]
    most_common = Counter(pair.reference for pair in pairs["first-letter"]).most_common(1)[0][1]
    assert most_common / len(pairs["first-letter"]) < 0.06  # always answering one letter does not pay


def test_word_sorting(pairs: dict[str, list[Pair]]) -> None:
    for pair in pairs["word-sorting"]:
        given, wanted = pair.input.split(", "), pair.reference.split()
        assert Counter(given) == Counter(wanted)
        assert all(before < after for before, after in pairwise(wanted))
        for copied in (given, given[::-1]):
            assert sum(a == b for a, b in zip(copied, wanted, strict=True)) <= 1
        assert len({word[0] for word in given}) == len(given)


def rhyme_rows() -> list[set[str]]:
    lines = (DATA / "rhymes.txt").read_text().splitlines()
    return [set(line.split()) for line in lines if not line.startswith("#")]


def test_rhyme_families_do_not_overlap() -> None:
    rows = rhyme_rows()
    counted = Counter(word for row in rows for word in row)
    assert counted.most_common(1)[0][1] == 1
    assert all(len(row) >= 3 for row in rows)
    for word in ("bow", "tear", "wind", "read", "live", "lead", "wound"):
        assert word not in counted  # two pronunciations


def test_rhymes(pairs: dict[str, list[Pair]]) -> None:
    rows = rhyme_rows()
    for pair in pairs["rhymes"]:
        word, listed = re.fullmatch(r"Word: (\w+)\nList: (.+)", pair.input).groups()  # type: ignore[union-attr]
        options = listed.split(", ")
        family = next(row for row in rows if word in row)
        assert [option for option in options if option in family] == [pair.reference]
        assert word not in options
        others = [row for row in rows if row is not family and pair.reference in row]
        assert not others  # the answer is in no other family either
        assert list(pair.meta["options"]) == options


def test_largest_animal(pairs: dict[str, list[Pair]]) -> None:
    with (DATA / "animals.csv").open() as file:
        masses = {row["name"]: float(row["mass_kg"]) for row in csv.DictReader(file)}
    assert len(masses) >= 80
    for pair in pairs["largest-animal"]:
        animals = pair.input.split(", ")
        heaviest, *rest = sorted((masses[animal] for animal in animals), reverse=True)
        assert masses[pair.reference] == heaviest
        assert all(heaviest >= 10 * mass for mass in rest)


def test_counting_objects(pairs: dict[str, list[Pair]]) -> None:
    with (DATA / "objects.csv").open() as file:
        nouns = {noun: row["singular"] for row in csv.DictReader(file) for noun in row.values()}
    for pair in pairs["counting-objects"]:
        listed = re.split(r", | and ", pair.input.removeprefix("I have ").removesuffix("."))
        quantities = [quantity for quantity, _ in (item.split(" ") for item in listed)]
        counts = [1 if quantity in ("a", "an") else parse(quantity) for quantity in quantities]
        assert {str(sum(counts)), str(parse(pair.references[1]))} == {pair.references[0]}
        assert sum(counts) > max(counts)
        for (quantity, noun), count in zip((item.split(" ") for item in listed), counts, strict=True):
            assert (nouns[noun] == noun) == (count == 1)
            assert quantity not in ("a", "an") or (quantity == "an") == (noun[0] in "aeiou")


@pytest.mark.parametrize("name", ["rhymes", "largest-animal"])
def test_the_position_of_the_answer_is_balanced(name: str, pairs: dict[str, list[Pair]]) -> None:
    chosen = pairs[name]
    positions = Counter(list(pair.meta["options"]).index(pair.reference) for pair in chosen)
    size = len(chosen[0].meta["options"])
    assert max(positions.values()) - min(positions.values()) <= len(SEEDS)
    assert len(positions) == size


def test_difficulty_parameters() -> None:
    assert all(len(pair.input.split(", ")) == 7 for pair in generators.word_sorting(20, length=7))
    alike = generators.word_sorting(300, length=6, distinct_initials=False)
    assert any(len({word[0] for word in pair.input.split(", ")}) < 6 for pair in alike)
    assert {len(pair.meta["options"]) for pair in generators.rhymes(20, options=6)} == {6}
    mixed = generators.rhymes(200, same_spelling=False)
    assert any(pair.reference[-2:] != pair.meta["word"][-2:] for pair in mixed)
    assert all(1000 <= int(pair.input) <= 9999 for pair in generators.number_words(50, low=1000, high=9999))
    digits = generators.counting_objects(50, kinds=5, most=9, in_words=False)
    assert all(len(re.findall(r"\d", pair.input)) == 5 for pair in digits)
    assert {len(pair.input.split(", ")) for pair in generators.largest_animal(30, options=5)} == {5}
    assert all(len(pair.input) >= 8 for pair in generators.first_letter(25, min_length=8))


def test_too_many_pairs_are_refused() -> None:
    with pytest.raises(TaskError, match="not 5000 different"):
        generators.first_letter(5000)
    with pytest.raises(TaskError, match="not 30 different"):
        generators.number_words(30, high=20)
    with pytest.raises(TaskError, match="at least 3"):
        generators.word_sorting(10, length=2)
