"""Which page of the key-value store holds what: allocation, sharing of common beginnings, eviction of the oldest.

A page holds a few consecutive tokens of one text. A page that a text fills completely is shared by every text that
begins with the same tokens, for as long as it stays in the store; nothing is computed twice for a common beginning.
Keys and values of a token depend only on the tokens before it, so a shared page holds what would be computed anew.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Key: TypeAlias = tuple[int, bytes]

TRASH = 0
"""The page that absorbs what idle lanes write."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The pages of one text, in order of position.

    Attributes:
        pages: One per ``page_size`` tokens of prompt and answer.
        shared: How many of them are shared with texts of the same beginning.
        ready: How many of those were already filled, or planned, by another text.
    """

    pages: tuple[int, ...]
    shared: int
    ready: int


class Pages:
    """Hands out the pages ``1 .. count - 1`` of a store.

    Args:
        count: Pages in the store, the trash page included.
        page_size: Tokens in a page.
    """

    def __init__(self, count: int, page_size: int) -> None:
        self._size = page_size
        self._free = list(range(count - 1, TRASH, -1))
        self._index: OrderedDict[Key, int] = OrderedDict()  # shared pages, least recently used first
        self._users: dict[int, int] = {}  # shared page → leases that hold it

    def lease(self, tokens: tuple[int, ...], shareable: int, total: int, span: int) -> Lease | None:
        """Pages for a text, or ``None`` while too many are in use.

        The caller must fill the shared pages that were not ready before, or together with, any later lease's.

        Args:
            tokens: The text's known tokens.
            shareable: Leading tokens whose hidden states nobody needs, so that their pages may come from the store.
            total: Tokens the text may grow to.
            span: How far the text's lane looks back; pages are shared only among equal spans, because the length of a
                sum can change its rounding.
        """
        keys = [self._key(tokens, span, index) for index in range(shareable // self._size)]
        known = []
        for key in keys:
            if key not in self._index:
                break
            known.append(self._index[key])
        for page in known:
            self._users[page] += 1
        wanted = -(-total // self._size) - len(known)
        if not self._make_room(wanted):
            for page in known:
                self._users[page] -= 1
            return None
        new = [self._free.pop() for _ in range(wanted)]
        for key, page in zip(keys[len(known) :], new, strict=False):
            self._index[key] = page
            self._users[page] = 1
        for key in reversed(keys):  # the beginning of a text is worth more than its continuation
            self._index.move_to_end(key)
        return Lease((*known, *new), len(keys), len(known))

    def release(self, lease: Lease) -> None:
        """Returns private pages; shared ones stay until their room is needed."""
        for page in lease.pages[: lease.shared]:
            self._users[page] -= 1
        self._free.extend(lease.pages[lease.shared :])

    def _key(self, tokens: tuple[int, ...], span: int, index: int) -> Key:
        return span, np.array(tokens[: (index + 1) * self._size], np.int32).tobytes()

    def _make_room(self, wanted: int) -> bool:
        if len(self._free) >= wanted:
            return True
        idle = [key for key, page in self._index.items() if not self._users[page]]
        if len(self._free) + len(idle) < wanted:
            return False
        for key in idle[: wanted - len(self._free)]:
            page = self._index.pop(key)
            del self._users[page]
            self._free.append(page)
        return True
