"""The sampled corpus as training groups, and what is held out of it."""

from __future__ import annotations

from collections import Counter

from bestprompt.latent.corpus.batches import GROUP
from bestprompt.latent.training.corpus_groups import HELD_OUT, CorpusGroups, paired, split
from bestprompt.latent.training.store import CorpusRecord
from bestprompt.rng import stream

OLDER = [f"Older text number {number}." for number in range(100)]


def lines(kind: str, n: int) -> list[CorpusRecord]:
    return [CorpusRecord(f"{kind} line {i} of many.", "plain", f"big-{i}", kind) for i in range(n)]


def wordings(kind: str, n: int) -> list[CorpusRecord]:
    labels = ("plain", "reworded", "shorter")
    return [
        CorpusRecord(f"{kind} request {i} {label}.", label, f"big-9-{i}", kind) for i in range(n) for label in labels
    ]


def test_a_group_is_of_one_kind_and_kinds_come_by_size() -> None:
    corpus = CorpusGroups.of([*lines("sort", 300), *lines("count", 100), *lines("rare", GROUP)], OLDER)
    rng, seen = stream(0, "groups"), Counter[str]()
    for _ in range(500):
        group = corpus.group(rng)
        kinds = {text.split()[0] for text in group}
        assert len(group) == len(set(group)) == 2 * GROUP
        assert len(kinds) == 1
        seen.update(kinds)
    # Shares 0.6, 0.2, 0.2 with standard errors below 0.022; a kind with hardly any sentences has no groups.
    assert 0.5 < seen["sort"] / 500 < 0.7
    assert 0.12 < seen["count"] / 500 < 0.28
    assert seen["rare"] == 0
    assert len(corpus.texts) == 500


def test_neighbours_in_a_group_of_wordings_say_the_same() -> None:
    corpus = CorpusGroups.of(wordings("sort", 30), [])
    group = corpus.group(stream(0, "wordings"))
    assert len(group) == 2 * GROUP
    assert [text.split()[2] for text in group[::2]] == [text.split()[2] for text in group[1::2]]
    assert all(first != second for first, second in zip(group[::2], group[1::2], strict=True))


def test_a_wording_left_alone_is_a_line() -> None:
    alone = [CorpusRecord(f"Request {i}.", "plain", f"big-9-{i}", "sort") for i in range(5 * GROUP)]
    corpus = CorpusGroups.of(alone, [])
    assert corpus.kinds[0].wordings == []
    assert len(corpus.kinds[0].lines) == 5 * GROUP


def test_lines_are_paired_by_the_words_they_share() -> None:
    ordered = paired(["Sort the words.", "Name a river.", "Sort the words now.", "Name a long river."])
    assert {frozenset(ordered[:2]), frozenset(ordered[2:])} == {
        frozenset({"Sort the words.", "Sort the words now."}),
        frozenset({"Name a river.", "Name a long river."}),
    }


def test_whole_blocks_are_held_out_and_stay_so_when_the_corpus_grows() -> None:
    records = [CorpusRecord(f"Text {i}-{j}.", "plain", f"big-{i}-{j}", "sort") for i in range(500) for j in range(3)]
    kept, held_out = split(records)
    assert len(kept) + len(held_out) == len(records)
    blocks = Counter(text.split()[1].split("-")[0] for text in held_out)
    assert set(blocks.values()) == {3}
    assert 1 <= len(blocks) <= 4 * 500 / HELD_OUT
    assert split(records[:900])[1] == [text for text in held_out if int(text.split()[1].split("-")[0]) < 300]
