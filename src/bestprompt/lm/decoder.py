"""Many texts through one transformer: prompts read in pages, answers decoded in lanes, common beginnings read once.

Two programs per span do all the work, both of fixed shape: one reads ``READ_LANES`` pages of prompt, one decodes a
token in each of ``LANES`` lanes. A prompt token always goes through the first and an answer token always through the
second, at a span that depends on its own request only. So a request's answer is the same to the last bit whatever it is
batched with, whatever is already in the store, and in whatever order requests arrive. (On one machine with one number
of threads: XLA divides a product among the threads it has, which changes the last bits.)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from bestprompt.lm import transformer
from bestprompt.lm.pages import TRASH, Lease, Pages
from bestprompt.lm.transformer import PAGE, Call, Shape, Weights

READ_LANES = 8
LANES = 16
SMALLEST_SPAN = 128

Choose = Callable[[int, NDArray[np.float32]], int]
"""(likeliest token, (V,) logits) → the token to append."""


@dataclass
class Text:
    """A text being read or written.

    Attributes:
        tokens: What is known of it; decoding appends.
        limit: Tokens it may grow to.
        needed: First position whose hidden state is wanted; pages that end before it may come from the store.
    """

    tokens: list[int]
    limit: int
    needed: int
    lease: Lease = field(default=Lease((), 0, 0))


class Decoder:
    """Runs a model over texts; not thread-safe.

    Args:
        shape: Sizes of the model.
        weights: Its weights.
        context: Most tokens a text may have.
    """

    def __init__(self, shape: Shape, weights: Weights, context: int) -> None:
        self._shape, self._weights, self._context = shape, weights, context
        self._cos, self._sin = transformer.rotary(shape, span_of(context))
        self._page_count = (LANES * 2 * SMALLEST_SPAN + span_of(context)) // PAGE + 1
        self.forget()

    def forget(self) -> None:
        """Empties the store. Needed after an interruption, which may leave pages promised but not filled."""
        self._pages = Pages(self._page_count, PAGE)
        self._stores = transformer.empty_stores(self._shape, self._page_count)

    # ------------------------------------------------------------------------------------------------------- reading
    def read(self, texts: Sequence[Text]) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
        """Reads texts of one span; yields (index of the text, first position, (d, n) hidden states) piece by piece.

        Pieces cover every position from ``needed`` on; earlier ones may appear or not.
        """
        waiting = deque(enumerate(texts))
        while waiting:
            admitted = []
            while waiting and self._admit(waiting[0][1]):
                admitted.append(waiting.popleft())
            yield from self._read_admitted(admitted)
            for _, text in admitted:
                self._pages.release(text.lease)

    def _admit(self, text: Text) -> bool:
        lease = self._pages.lease(tuple(text.tokens), text.needed, text.limit, span_of(text.limit))
        if lease is None:
            return False
        text.lease = lease
        return True

    def _read_admitted(self, admitted: Iterable[tuple[int, Text]]) -> Iterator[tuple[int, int, NDArray[np.float32]]]:
        pieces = [
            (index, text, start)
            for index, text in admitted
            for start in range(text.lease.ready * PAGE, len(text.tokens), PAGE)
        ]
        for first in range(0, len(pieces), READ_LANES):
            group = pieces[first : first + READ_LANES]
            hidden = self._forward(
                [(text, start, min(start + PAGE, len(text.tokens))) for _, text, start in group], PAGE
            )
            for lane, (index, text, start) in enumerate(group):
                size = min(PAGE, len(text.tokens) - start)
                yield index, start, hidden[:, lane * PAGE : lane * PAGE + size]

    def _forward(self, pieces: Sequence[tuple[Text, int, int] | None], width: int) -> NDArray[np.float32]:
        """(d, L·width) hidden states of one piece of text per lane; positions ``start .. stop - 1`` of each."""
        lanes = READ_LANES if width == PAGE else LANES
        span = span_of(next(piece[0].limit for piece in pieces if piece))
        tokens = np.zeros((lanes, width), np.int32)
        positions = np.zeros((lanes, width), np.int32)
        slots = np.tile(np.arange(width, dtype=np.int32) + TRASH * PAGE, (lanes, 1))
        table = np.full((lanes, span // PAGE), TRASH, np.int32)
        for lane, piece in enumerate(pieces):
            if piece is None:
                continue
            text, start, stop = piece
            size = stop - start
            tokens[lane, :size] = text.tokens[start:stop]
            positions[lane, :size] = np.arange(start, stop)
            slots[lane, :size] = text.lease.pages[start // PAGE] * PAGE + start % PAGE + np.arange(size)
            table[lane, : len(text.lease.pages)] = text.lease.pages
        at = positions.ravel()
        seen = np.arange(span) <= positions[:, :, None]
        call = Call(self._cos[:, at], self._sin[:, at], slots.ravel(), table, seen)
        return np.asarray(transformer.forward(self._shape, self._weights, self._stores, tokens.ravel(), call))

    # ------------------------------------------------------------------------------------------------------- writing
    def write(self, texts: Sequence[Text], choose: Sequence[Choose], done: Sequence[Callable[[], bool]]) -> None:
        """Continues texts of one span until each is done or at its limit; appends to their ``tokens``.

        Lanes are refilled as answers end. Prompts are read ahead, as many as the store has room for, so that
        reading always runs with full lanes.

        Args:
            texts: Prompts, with ``needed`` at the last token.
            choose: Per text, picks the next token.
            done: Per text, asked after each token.
        """
        waiting = deque(range(len(texts)))
        ready: deque[int] = deque()
        lanes: list[int | None] = [None] * LANES
        last = np.zeros((self._shape.width, len(texts)), np.float32)  # hidden state at each text's last token
        while waiting or ready or any(index is not None for index in lanes):
            if not ready and None in lanes:
                ready.extend(self._read_ahead(texts, waiting, last))
            for lane, occupant in enumerate(lanes):
                if occupant is None and ready:
                    lanes[lane] = ready.popleft()
            self._append(texts, choose, lanes, last)
            for lane, index in enumerate(lanes):
                if index is not None and (done[index]() or len(texts[index].tokens) >= texts[index].limit):
                    self._pages.release(texts[index].lease)
                    lanes[lane] = None
            busy = [(lane, index) for lane, index in enumerate(lanes) if index is not None]
            if busy:
                hidden = self._forward([_last_token(texts, index) for index in lanes], 1)
                for lane, index in busy:
                    last[:, index] = hidden[:, lane]

    def _read_ahead(self, texts: Sequence[Text], waiting: deque[int], last: NDArray[np.float32]) -> list[int]:
        admitted = []
        while waiting and self._admit(texts[waiting[0]]):
            admitted.append(waiting.popleft())
        for index, start, hidden in self._read_admitted([(index, texts[index]) for index in admitted]):
            if start + hidden.shape[1] == len(texts[index].tokens):
                last[:, index] = hidden[:, -1]
        return admitted

    def _append(
        self, texts: Sequence[Text], choose: Sequence[Choose], lanes: Sequence[int | None], last: NDArray[np.float32]
    ) -> None:
        columns = np.zeros((self._shape.width, LANES), np.float32)
        for lane, index in enumerate(lanes):
            if index is not None:
                columns[:, lane] = last[:, index]
        scores, best = (np.asarray(a) for a in transformer.logits(self._shape, self._weights, columns))
        for lane, index in enumerate(lanes):
            if index is not None:
                texts[index].tokens.append(choose[index](int(best[lane]), scores[:, lane]))


def _last_token(texts: Sequence[Text], index: int | None) -> tuple[Text, int, int] | None:
    if index is None:
        return None
    end = len(texts[index].tokens)
    return texts[index], end - 1, end


def span_of(tokens: int) -> int:
    """How far back a text of at most ``tokens`` tokens looks: the next power of two, at least ``SMALLEST_SPAN``."""
    return max(SMALLEST_SPAN, 1 << (tokens - 1).bit_length())
