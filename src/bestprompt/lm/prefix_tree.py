"""Log-probabilities of many texts after their contexts, where a beginning that texts share is read once.

Notation:
    v       a token after all tokens before it   → node number, in order of arrival, so parents come first
    A(v)    v and the nodes before it in its text → ``_paths``
    M, S    nodes read in one call, and the rows of the store they look back on → ``CHUNK``, a power of two

The readings of neighbouring points differ in a word or two, so the tree of all of them has about half their tokens.
The nodes of a call look back on the union of their A(v), each through a mask of its own. In what order a sum over A(v)
is taken depends on the companions in the call, so the result does in its last bits.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bestprompt.lm import transformer
from bestprompt.lm.transformer import Call, TransformerSizes, Weights
from bestprompt.types import FloatArray

CHUNK = 32
SMALLEST_SPAN = 256  # wide enough for most calls, so that there is one program to compile
SMALLEST_CAPACITY = 3072  # rows: a search for 200 candidates asks about some 2500 nodes
_TRASH = 0  # the row that absorbs what idle places write; node v has row v + 1


class PrefixTree:
    """What has been read of texts that begin alike; not thread-safe.

    Args:
        shape: Sizes of the model.
        weights: Its weights.
        longest: Most tokens of a text, its context included.
    """

    def __init__(self, shape: TransformerSizes, weights: Weights, longest: int) -> None:
        self._shape, self._weights = shape, weights
        self._capacity = max(SMALLEST_CAPACITY, longest)
        self._cos, self._sin = transformer.rotary(shape, longest)
        self._stores = transformer.empty_stores(shape, self._capacity + 1)
        self._hidden = np.zeros((shape.width, self._capacity), np.float32)
        self._clear()

    def _clear(self) -> None:
        self._tokens: list[int] = []
        self._paths: list[list[int]] = []
        self._children: dict[tuple[int, int], int] = {}
        self._read = np.zeros(self._capacity, bool)
        self._log_probabilities = np.full(self._capacity, np.nan)  # of a node after its parent, once it is known

    def log_likelihood(self, heads: Sequence[Sequence[int]], tails: Sequence[Sequence[int]]) -> FloatArray:
        """(n,) log-probability of each tail after its head, both given as at least one token."""
        paths: list[list[int]] = []
        total = np.zeros(len(tails))
        for index, (head, tail) in enumerate(zip(heads, tails, strict=True)):
            if len(self._tokens) + len(head) + len(tail) > self._capacity:
                total[index - len(paths) : index] = self._sums(paths)
                paths = []
                self._clear()
            paths.append(self._path((*head, *tail))[len(head) :])
        total[len(tails) - len(paths) :] = self._sums(paths)
        return total

    def _path(self, tokens: Sequence[int]) -> list[int]:
        """The nodes of a text; those that are missing are added."""
        path: list[int] = []
        for token in tokens:
            new = len(self._tokens)
            node = self._children.setdefault((path[-1] if path else -1, token), new)
            path.append(node)
            if node == new:
                self._tokens.append(token)
                self._paths.append(list(path))
        return path

    def _sums(self, paths: Sequence[list[int]]) -> list[float]:
        """The sum of the nodes' log-probabilities along each path; what is missing is computed."""
        wanted = {node for path in paths for node in path}
        fresh = [node for node in sorted(wanted) if np.isnan(self._log_probabilities[node])]
        parents = [self._paths[node][-2] for node in fresh]
        # Only what has a follower is read: what comes after the last token of a text is never asked.
        above = {ancestor for parent in set(parents) for ancestor in self._paths[parent]}
        unread = [node for node in sorted(above) if not self._read[node]]
        for first in range(0, len(unread), CHUNK):
            self._read_chunk(unread[first : first + CHUNK])
        for first in range(0, len(fresh), CHUNK):
            self._score_chunk(fresh[first : first + CHUNK], parents[first : first + CHUNK])
        return [float(self._log_probabilities[path].sum()) for path in paths]

    def _read_chunk(self, nodes: list[int]) -> None:
        visible = np.array(sorted({ancestor for node in nodes for ancestor in self._paths[node]}))
        span = max(SMALLEST_SPAN, 1 << (len(visible) - 1).bit_length())
        tokens, positions = np.zeros(CHUNK, np.int32), np.zeros(CHUNK, np.int32)
        slots = np.full(CHUNK, _TRASH, np.int32)
        table = np.full(span, _TRASH, np.int32)
        table[: len(visible)] = visible + 1
        seen = np.zeros((CHUNK, span), bool)
        seen[len(nodes) :, 0] = True  # an idle place must look somewhere
        for place, node in enumerate(nodes):
            path = self._paths[node]
            tokens[place], positions[place], slots[place] = self._tokens[node], len(path) - 1, node + 1
            seen[place, np.searchsorted(visible, path)] = True
        call = Call(self._cos[:, positions], self._sin[:, positions], slots, table, seen)
        hidden = np.asarray(transformer.forward(self._shape, self._weights, self._stores, tokens, call))
        self._hidden[:, nodes] = hidden[:, : len(nodes)]
        self._read[nodes] = True

    def _score_chunk(self, nodes: list[int], parents: list[int]) -> None:
        columns, targets = np.zeros((self._shape.width, CHUNK), np.float32), np.zeros(CHUNK, np.int32)
        columns[:, : len(nodes)] = self._hidden[:, parents]
        targets[: len(nodes)] = [self._tokens[node] for node in nodes]
        scores = transformer.log_probabilities(self._shape, self._weights, columns, targets)
        self._log_probabilities[nodes] = np.asarray(scores, dtype=np.float64)[: len(nodes)]
