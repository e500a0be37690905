"""Reading a GGUF file: its metadata, its digest, its tensors as float32.

The header is parsed here, in one pass over a memory map: the ``gguf`` package makes one array per vocabulary entry,
which takes seconds. Dequantisation, where the knowledge is, is that package's.
"""

from __future__ import annotations

import math
import mmap
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bestprompt.errors import LMError
from bestprompt.lm import weights

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_BLOCKS_PER_ROW = 1 << 10
_BOOL, _STRING, _ARRAY = 7, 8, 9
# GGUF value type → little-endian NumPy type.
_SCALARS = {
    0: "<u1",
    1: "<i1",
    2: "<u2",
    3: "<i2",
    4: "<u4",
    5: "<i4",
    6: "<f4",
    _BOOL: "?",
    10: "<u8",
    11: "<i8",
    12: "<f8",
}


@dataclass(frozen=True)
class _Tensor:
    shape: tuple[int, ...]  # slowest axis first, as NumPy orders them
    kind: int
    offset: int


@dataclass(frozen=True)
class GgufFile:
    """An open GGUF file; tensors are read from disk when asked for.

    Attributes:
        path: Where it is.
        metadata: The key-value section, as Python values.
        tensors: Shape, type and place of each tensor by name.
        digest: First 16 hexadecimal digits of the file's SHA-256.
    """

    path: Path
    metadata: Mapping[str, Any]
    tensors: Mapping[str, _Tensor]
    digest: str
    _bytes: mmap.mmap

    @property
    def architecture(self) -> str:
        """E.g. ``"llama"`` or ``"qwen2"``."""
        return str(self.metadata.get("general.architecture", "unknown"))

    @property
    def name(self) -> str:
        """The registry's name for known weights, else what the file calls itself, else the file's name."""
        for model in weights.known_models():
            if model.sha256.startswith(self.digest):
                return model.name
        return str(self.metadata.get("general.name") or self.path.stem)

    def setting(self, key: str, default: Any = None) -> Any:
        """The architecture's own setting, e.g. ``block_count`` for ``llama.block_count``."""
        return self.metadata.get(f"{self.architecture}.{key}", default)

    def tensor(self, name: str) -> NDArray[np.float32]:
        """A tensor dequantised to float32; matrices come as (out, in)."""
        from gguf import GGML_QUANT_SIZES, GGMLQuantizationType
        from gguf.quants import dequantize

        record = self.tensors[name]
        kind = GGMLQuantizationType(record.kind)
        weights_per_block, bytes_per_block = GGML_QUANT_SIZES[kind]
        blocks = math.prod(record.shape) // weights_per_block
        raw = np.frombuffer(self._bytes, np.uint8, blocks * bytes_per_block, record.offset)
        if plain := {GGMLQuantizationType.F32: "<f4", GGMLQuantizationType.F16: "<f2"}.get(kind):
            return raw.view(plain).reshape(record.shape).astype(np.float32)
        # The package works through a few rows at a time; long rows make that a handful of steps instead of thousands.
        rows = raw.reshape(-1, math.gcd(blocks, _BLOCKS_PER_ROW) * bytes_per_block)
        return np.asarray(dequantize(rows, kind), dtype=np.float32).reshape(record.shape)


def read(path: Path) -> GgufFile:
    """Opens ``path``.

    Raises:
        LMError: There is no such file, or it is not a readable GGUF.
    """
    if not path.is_file():
        raise _unusable(f"There is no model file at {path}.")
    with path.open("rb") as file:
        if file.read(4) != _MAGIC:
            raise _unusable(f"{path} is not a GGUF file (it does not begin with {_MAGIC.decode()!r}).")
        content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    try:
        metadata, tensors = _Header(content).parse()
    except (struct.error, ValueError, KeyError, UnicodeDecodeError) as error:
        raise _unusable(f"{path} is a damaged, truncated or unknown GGUF file ({error}).") from error
    return GgufFile(path, metadata, tensors, weights.sha256(path)[:16], content)


class _Header:
    """A cursor over the header."""

    def __init__(self, content: mmap.mmap) -> None:
        self._content, self._at = content, len(_MAGIC)

    def parse(self) -> tuple[dict[str, Any], dict[str, _Tensor]]:
        version = self._number("I")
        if version not in _VERSIONS:
            raise ValueError(f"version {version}, expected one of {_VERSIONS}")
        tensor_count, pair_count = self._number("Q"), self._number("Q")
        metadata = {self._string(): self._value(self._number("I")) for _ in range(pair_count)}
        records = {self._string(): self._tensor() for _ in range(tensor_count)}
        alignment = metadata.get("general.alignment", 32)
        start = -(-self._at // alignment) * alignment
        return metadata, {name: _Tensor(t.shape, t.kind, start + t.offset) for name, t in records.items()}

    def _number(self, code: str) -> int:
        (value,) = struct.unpack_from(f"<{code}", self._content, self._at)
        self._at += struct.calcsize(f"<{code}")
        return int(value)

    def _string(self) -> str:
        size = self._number("Q")
        text = self._content[self._at : self._at + size]
        if len(text) != size:
            raise ValueError("text runs past the end of the file")
        self._at += size
        return text.decode()

    def _value(self, kind: int) -> Any:
        if kind == _STRING:
            return self._string()
        if kind == _ARRAY:
            item, count = self._number("I"), self._number("Q")
            read: Callable[[int], Any] = self._value
            return self._scalars(item, count) if item in _SCALARS else [read(item) for _ in range(count)]
        return self._scalars(kind, 1)[0]

    def _scalars(self, kind: int, count: int) -> list[Any]:
        values = np.frombuffer(self._content, _SCALARS[kind], count, self._at)
        self._at += values.nbytes
        return list(values.tolist())

    def _tensor(self) -> _Tensor:
        sizes = [self._number("Q") for _ in range(self._number("I"))]
        return _Tensor(tuple(reversed(sizes)), self._number("I"), self._number("Q"))


def _unusable(message: str) -> LMError:
    return LMError(message, retryable=False, systemic=True)
