"""The smallest automaton of the token rows that spell a lexicon: what may be written next, state by state.

An *entry* is the row of pieces that spells one word or mark. ``Follow`` says what may stand after it. Entries that
begin at the same place form a trie; nodes from which the same can be written become one state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import IntFlag

Pieces = Sequence[int]


class Follow(IntFlag):
    """What may stand after an entry."""

    NOTHING = 0
    CHUNK = 1  # the next chunk, or the end of the text
    CLOSING = 2  # a closing mark
    GLUED = 4  # a word without a space before it
    RUNNING = 8  # a character that runs on


@dataclass
class Entries:
    """Entries by what they are, one flag of ``Follow``, and by their first piece."""

    of: dict[Follow, dict[int, list[tuple[Pieces, Follow]]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(list))
    )

    def add(self, what: Follow, pieces: Pieces, follow: Follow) -> None:
        """One more entry and what may stand after it."""
        self.of[what][pieces[0]].append((pieces, follow))

    def beginning(self, what: Follow, piece: int) -> Iterator[tuple[Pieces, Follow]]:
        """The entries of these kinds that begin with ``piece``."""
        for kind in what:
            yield from self.of[kind].get(piece, ())


@dataclass(frozen=True)
class Automaton:
    """States by number; the first is where a text begins.

    Attributes:
        edges: Per state, what each piece leads to inside an entry.
        follow: Per state, what may stand there as a new entry.
        begin: Per set of flags in use, what each first piece of a new entry leads to. An edge goes before it.
    """

    edges: list[dict[int, int]]
    follow: list[Follow]
    begin: dict[Follow, dict[int, int]]


@dataclass
class _Trie:
    children: list[dict[int, int]] = field(default_factory=list)
    follow: list[Follow] = field(default_factory=list)

    def node(self) -> int:
        self.children.append({})
        self.follow.append(Follow.NOTHING)
        return len(self.children) - 1

    def insert(self, at: int, pieces: Pieces, follow: Follow) -> None:
        for piece in pieces:
            if piece not in self.children[at]:
                self.children[at][piece] = self.node()
            at = self.children[at][piece]
        self.follow[at] |= follow


def automaton(entries: Entries) -> Automaton:
    """The automaton of texts that consist of chunks made of ``entries``."""
    trie = _Trie()
    roots = {kind: trie.node() for kind in Follow}
    for kind, root in roots.items():
        for spelled in entries.of[kind].values():
            for pieces, follow in spelled:
                trie.insert(root, pieces, follow)
    begin: dict[Follow, dict[int, int]] = {}
    at = 0
    while at < len(trie.children):  # it grows meanwhile; a child always has a higher number than its parent
        what = trie.follow[at]
        if what not in begin:
            begin[what] = _row(trie, roots, entries, what)
        # Where a longer entry goes on with a piece that may also begin a new one, both ways are one way.
        for piece in trie.children[at].keys() & begin[what].keys():
            for pieces, follow in entries.beginning(what, piece):
                trie.insert(at, pieces, follow)
        at += 1
    return _smallest(trie, roots[Follow.CHUNK], begin)


def _row(trie: _Trie, roots: dict[Follow, int], entries: Entries, what: Follow) -> dict[int, int]:
    row: dict[int, int] = {}
    for kind in what:
        for piece, node in trie.children[roots[kind]].items():
            if piece in row:  # of two kinds: a trie of its own for what this piece begins
                own = trie.node()
                for pieces, follow in entries.beginning(what, piece):
                    trie.insert(own, pieces, follow)
                row[piece] = trie.children[own][piece]
            else:
                row[piece] = node
    return row


def _smallest(trie: _Trie, start: int, begin: dict[Follow, dict[int, int]]) -> Automaton:
    """Nodes with the same follow-ups and the same children become one state, from the leaves upwards."""
    number: dict[tuple[Follow, tuple[tuple[int, int], ...]], int] = {}
    state = [0] * len(trie.children)
    for at in reversed(range(len(trie.children))):
        children = tuple(sorted((piece, state[child]) for piece, child in trie.children[at].items()))
        key = (trie.follow[at], children)
        state[at] = number.setdefault(key, len(number) + 1)
    edges, follow = [dict[int, int]()], [Follow.NOTHING]
    for what, children in number:
        edges.append(dict(children))
        follow.append(what)
    edges[0] = edges[state[start]]
    rows = {what: {piece: state[node] for piece, node in row.items()} for what, row in begin.items()}
    return Automaton(edges, follow, rows)
