"""Texts weighed through the tree of their common beginnings, against a plain reading of each one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bestprompt.lm import prefix_tree
from bestprompt.lm.prefix_tree import PrefixTree

pytestmark = pytest.mark.slow  # what is right is read in float64

CONTEXT = "Sort the words from A to Z.\nPut the words in order.\n"
TEXTS = [
    "Sort the words in alphabetical order.\n",
    "Sort the words in reverse order.\n",
    "Sort the words in alphabetical order, please.\n",
    "Name the largest animal.\n",
]


def _tokens(model: Any, texts: list[str]) -> list[list[int]]:
    return [model._tokenizer.encode(text) for text in texts]


@pytest.fixture(scope="module")
def expected(embedded_model: Any, plain_log_likelihood: Any) -> list[float]:
    """What each of ``TEXTS`` is worth after ``CONTEXT``."""
    (head,), tails = _tokens(embedded_model, [CONTEXT]), _tokens(embedded_model, TEXTS)
    return [plain_log_likelihood(head, tail) for tail in tails]


def _tree(model: Any, longest: int = 256) -> PrefixTree:
    reader = model._open_reader()
    return PrefixTree(reader._shape, reader._weights, longest)


def test_it_says_what_reading_each_text_says(embedded_model: Any, expected: list[float]) -> None:
    (head,), tails = _tokens(embedded_model, [CONTEXT]), _tokens(embedded_model, TEXTS)
    found = _tree(embedded_model).log_likelihood([head] * len(tails), tails)
    assert found == pytest.approx(expected, abs=1e-3)
    assert len(set(found.round(2))) == len(TEXTS)


def test_what_was_asked_before_and_in_which_order_changes_nothing_but_rounding(embedded_model: Any) -> None:
    (head,), tails = _tokens(embedded_model, [CONTEXT]), _tokens(embedded_model, TEXTS)
    together, singly = _tree(embedded_model), _tree(embedded_model)
    at_once = together.log_likelihood([head] * len(tails), tails)
    reversed_ones = [singly.log_likelihood([head], [tail])[0] for tail in reversed(tails)]
    assert reversed_ones[::-1] == pytest.approx(at_once, abs=1e-3)
    assert np.array_equal(together.log_likelihood([head] * len(tails), tails), at_once)


def test_a_common_beginning_is_read_once_and_a_last_token_never(
    embedded_model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    (head,), tails = _tokens(embedded_model, [CONTEXT]), _tokens(embedded_model, TEXTS)
    read: list[int] = []
    forward = PrefixTree._read_chunk
    monkeypatch.setattr(PrefixTree, "_read_chunk", lambda self, nodes: (read.extend(nodes), forward(self, nodes))[1])
    tree = _tree(embedded_model)
    tree.log_likelihood([head] * len(tails), tails)
    followed = {tuple([*head, *tail][:size]) for tail in tails for size in range(1, len(head) + len(tail))}
    assert len(read) == len(set(read)) == len(followed)
    tree.log_likelihood([head], [tails[0]])
    assert len(read) == len(followed)


def test_a_full_tree_starts_anew(embedded_model: Any, expected: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefix_tree, "SMALLEST_CAPACITY", 1)
    (head,), tails = _tokens(embedded_model, [CONTEXT]), _tokens(embedded_model, TEXTS)
    longest = len(head) + max(map(len, tails))
    found = _tree(embedded_model, longest).log_likelihood([head] * len(tails), tails)
    assert found == pytest.approx(expected, abs=1e-3)


def test_contexts_may_differ_and_be_longer_than_the_usual_span(
    embedded_model: Any, expected: list[float], plain_log_likelihood: Any
) -> None:
    heads = _tokens(embedded_model, [CONTEXT * 20, CONTEXT])
    (tail,) = _tokens(embedded_model, TEXTS[:1])
    assert len(heads[0]) > prefix_tree.SMALLEST_SPAN
    found = _tree(embedded_model, 512).log_likelihood(heads, [tail, tail])
    assert found == pytest.approx([plain_log_likelihood(heads[0], tail), expected[0]], abs=2e-3)
    assert found[0] != pytest.approx(found[1], abs=0.1)
