"""What is taken over from the embedded language model's file: its common words and its token embeddings."""

from __future__ import annotations

import re
from pathlib import Path

import gguf
import numpy as np
from sklearn.decomposition import PCA
from tokenizers import Tokenizer

from bestprompt.types import FloatArray

_WORD = re.compile(r"Ġ?[A-Za-z]{2,}")
_FREQUENT = 16_000  # byte-pair merges come in the order of frequency


def read_table(path: Path) -> tuple[list[str], FloatArray]:
    """Token strings and their (V, w) embeddings from a GGUF file."""
    reader = gguf.GGUFReader(path)
    field = reader.fields["tokenizer.ggml.tokens"]
    strings = [bytes(field.parts[i]).decode("utf-8") for i in field.data]
    tensor = next(t for t in reader.tensors if t.name == "token_embd.weight")
    table = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    return strings, np.asarray(table, dtype=np.float64)


def common_words(strings: list[str]) -> list[str]:
    """Frequent words of the model's vocabulary, with the spelling they have after a space."""
    return [s.removeprefix("Ġ") for s in strings[:_FREQUENT] if s.startswith("Ġ") and _WORD.fullmatch(s)]


def initial_embeddings(tokenizer: Tokenizer, strings: list[str], table: FloatArray, width: int) -> FloatArray:
    """(V', width): each of our tokens as the mean of the model's longest matching pieces, reduced by PCA."""
    index = {string: i for i, string in enumerate(strings)}
    vocabulary = tokenizer.get_vocab()
    rows = np.zeros((len(vocabulary), table.shape[1]))
    for token, number in vocabulary.items():
        pieces, rest = [], token
        while rest:
            size = next((k for k in range(len(rest), 0, -1) if rest[:k] in index), 1)
            pieces += [index[rest[:size]]] if rest[:size] in index else []
            rest = rest[size:]
        if pieces:
            rows[number] = table[pieces].mean(axis=0)
    reduced = PCA(n_components=width, random_state=0).fit_transform(rows)
    return np.asarray(reduced / reduced.std() * 0.05)
