"""A GGUF model that writes many texts at once, by torch in bfloat16, some ten times as fast as one at a time.

Only the corpus sampler uses it; torch comes with ``pip install 'bestprompt[corpus]'``.

Notation (name, shape):
    R       texts written at the same time, the rows of a batch
    S       places of a row: the beginning that its block shares, the rest of its prompt, what it writes
    K, G    key-value heads; query heads of each;  h  size of a head

In every step each row reads one token, the next of its prompt or the one it has just drawn, so a row that is finished
makes room at once. What the prompts of a block have in common is read once and copied.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import linear, rms_norm, silu

from bestprompt.latent.training.requests import WritingRequest
from bestprompt.lm import gguf_file, transformer
from bestprompt.lm.tokenizer import Tokenizer
from bestprompt.rng import stream

TEMPERATURE, TOP_K, TOP_P, MIN_P = 0.85, 60, 0.95, 0.04
PLACES = 544  # all of them are looked at in every step: a part of the store would be copied first
_WRITABLE = re.compile(r" ?(?:[A-Z]?[a-z]+|[A-Z]+|[0-9])|[ \n,.;:?!'\"()\[\]\-/%$+*=<>&#@_]{1,4}")

Places = list[tuple[Tensor, Tensor]]
"""Keys and values of each layer, (rows, K, S, h)."""


@dataclass
class _Row:
    request: WritingRequest
    tokens: list[int]  # of the prompt, then of what was written
    at: int  # place of the token to be read next
    draws: NDArray[np.float64]
    prompt: int  # tokens of the prompt
    written: str = ""


class BatchedWriter:
    """The weights of one model, and room for the texts it is writing.

    Args:
        path: A GGUF file of a kind that ``lm.transformer`` reads.
        rows: R.
    """

    def __init__(self, path: Path, rows: int) -> None:
        torch.set_grad_enabled(False)
        torch.set_num_threads(1)  # the sampler runs beside other work
        file = gguf_file.read(path)
        self.tokenizer = Tokenizer(file)
        self.sizes, loaded = transformer.load(file)
        self._layers = [transformer.Layer(*map(_half, layer)) for layer in loaded.layers]
        self._embedding, self._norm = _half(loaded.embedding), _half(loaded.norm)
        spelled = (token.replace("Ġ", " ").replace("Ċ", "\n") for token in file.metadata["tokenizer.ggml.tokens"])
        self._writable = {number: text for number, text in enumerate(spelled) if _WRITABLE.fullmatch(text)}
        self._numbers = np.array([*self._writable])
        self._head = _half(loaded.head)[torch.from_numpy(self._numbers)]
        self._cos, self._sin = (
            torch.from_numpy(part.T).to(torch.bfloat16) for part in transformer.rotary(self.sizes, PLACES)
        )
        self._stores = self._room(rows)
        self._rows: list[_Row | None] = [None] * rows

    def write(self, blocks: Iterable[list[WritingRequest]]) -> Iterator[tuple[WritingRequest, str | None]]:
        """Each request with what the model wrote for it, None if it came to no end; in the order of completion."""
        waiting = self._begun(blocks)
        while True:
            for index, row in enumerate(self._rows):
                if row is None and (new := next(waiting, None)) is not None:
                    self._rows[index] = new[0]
                    self._place(index, new[1])
            if not any(self._rows):
                return
            yield from self._step()

    def _begun(self, blocks: Iterable[list[WritingRequest]]) -> Iterator[tuple[_Row, Places]]:
        for block in blocks:
            prompts = [self.tokenizer.encode(request.prompt) for request in block]
            same = len(
                [*takewhile(lambda column: len(set(column)) == 1, zip(*(p[:-1] for p in prompts), strict=False))]
            )
            shared = self._room(1, same)
            self._forward(torch.tensor([prompts[0][:same]]), torch.arange(same)[None], shared)
            for request, prompt in zip(block, prompts, strict=True):
                draws = stream(request.seed, "draws").random(request.max_tokens)
                yield _Row(request, prompt, same, draws, len(prompt)), shared

    def _step(self) -> Iterator[tuple[WritingRequest, str | None]]:
        """Let every row read a token; those at the end of their prompt draw the next one."""
        tokens = torch.tensor([[row.tokens[row.at] if row else 0] for row in self._rows])
        at = torch.tensor([[row.at if row else 0] for row in self._rows])
        hidden = self._forward(tokens, at, self._stores)[:, 0]
        drawing = [i for i, row in enumerate(self._rows) if row and row.at + 1 == len(row.tokens)]
        uniforms = np.array([r.draws[len(r.tokens) - r.prompt] for i in drawing if (r := self._rows[i])])
        drawn = iter(self._draw(hidden[drawing], uniforms)) if drawing else iter(())
        for index, row in enumerate(self._rows):
            if row is None:
                continue
            row.at += 1
            if row.at < len(row.tokens):
                continue
            row.tokens.append(int(next(drawn)))
            row.written += self._writable[row.tokens[-1]]
            end = min((found for stop in row.request.stop if (found := row.written.find(stop)) >= 0), default=-1)
            full = len(row.tokens) - row.prompt == len(row.draws) or row.at + 1 == PLACES
            if end >= 0 or full:
                self._rows[index] = None
                yield row.request, row.written[:end] if end >= 0 else None

    def _draw(self, hidden: Tensor, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """(n,) tokens: the likeliest TOP_K, of these the likeliest that have TOP_P together, none below MIN_P."""
        scores = linear(rms_norm(hidden, hidden.shape[-1:], self._norm, self.sizes.epsilon), self._head)
        best, places = torch.topk(scores, TOP_K)
        share = torch.softmax(best.float() / TEMPERATURE, -1).double().numpy()
        before = np.cumsum(share, axis=1) - share
        share[(before >= TOP_P) | (share < MIN_P * share[:, :1])] = 0.0
        reached = np.cumsum(share, axis=1)
        chosen = (reached < uniforms[:, None] * reached[:, -1:]).sum(axis=1)
        return np.asarray(self._numbers[places.numpy()[np.arange(len(chosen)), chosen]])

    def _forward(self, tokens: Tensor, at: Tensor, stores: Places) -> Tensor:
        """(R, T) tokens at places ``at`` (R, T) → (R, T, d) hidden states before the last norm; fills the stores."""
        sizes, (rows, length) = self.sizes, tokens.shape
        cos, sin = self._cos[at][:, :, None], self._sin[at][:, :, None]
        hidden_places = torch.arange(stores[0][0].shape[2]) > at[..., None]  # (R, T, S)
        groups = sizes.heads // sizes.kv_heads
        unseen = torch.zeros(hidden_places.shape, dtype=torch.bfloat16).masked_fill_(hidden_places, -1e30)
        unseen = unseen[:, None].repeat_interleave(groups, dim=2)  # (R, 1, T·G, S)
        which = torch.arange(rows)[:, None]
        x = self._embedding[tokens]
        for layer, (keys, values) in zip(self._layers, stores, strict=True):
            qkv = linear(rms_norm(x, x.shape[-1:], layer.attention_norm, sizes.epsilon), layer.qkv, layer.qkv_bias)
            q, k, v = qkv.view(rows, length, -1, sizes.head_size).split(
                [sizes.heads, sizes.kv_heads, sizes.kv_heads], 2
            )
            q, k = _rotated(q, cos, sin) * sizes.head_size**-0.5, _rotated(k, cos, sin)
            keys[which, :, at], values[which, :, at] = k, v
            q = (
                q.reshape(rows, length, sizes.kv_heads, groups, -1)
                .transpose(1, 2)
                .reshape(rows, sizes.kv_heads, -1, sizes.head_size)
            )
            share = torch.softmax(q @ keys.mT + unseen, -1)
            mixed = (share @ values).view(rows, sizes.kv_heads, length, groups, -1).transpose(1, 2)
            x = x + linear(mixed.reshape(rows, length, -1), layer.out)
            gate, up = linear(rms_norm(x, x.shape[-1:], layer.mlp_norm, sizes.epsilon), layer.gate_up).chunk(2, -1)
            x = x + linear(silu(gate) * up, layer.down)
        return x

    def _room(self, rows: int, places: int = PLACES) -> Places:
        size = (rows, self.sizes.kv_heads, places, self.sizes.head_size)
        return [
            (torch.zeros(size, dtype=torch.bfloat16), torch.zeros(size, dtype=torch.bfloat16)) for _ in self._layers
        ]

    def _place(self, row: int, shared: Places) -> None:
        for own, given in zip(self._stores, shared, strict=True):
            for mine, theirs in zip(own, given, strict=True):
                mine[row, :, : theirs.shape[2]] = theirs[0]


def _half(array: object) -> Tensor:
    return torch.from_numpy(np.array(array, np.float32)).to(torch.bfloat16)


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    a, b = x.chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
