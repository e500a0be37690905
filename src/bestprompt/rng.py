"""Randomness keyed by what it is for, never by the order of calls.

``stream(seed, "pairs", replication)`` is the same generator on every machine, in every thread and after every restart.
Leaving the candidate out of the key gives common random numbers: the same draw for every candidate.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import jax

Key = str | int


def _digest(seed: int, stage: str, key: tuple[Key, ...]) -> bytes:
    # repr() keeps 1 and "1" apart; the separator cannot occur inside a repr'd element boundary by accident.
    text = "\x1f".join([repr(int(seed)), repr(stage), *(repr(int(k) if not isinstance(k, str) else k) for k in key)])
    return hashlib.sha256(text.encode()).digest()


def stream(seed: int, stage: str, *key: Key) -> np.random.Generator:
    """A NumPy generator that depends on its arguments only."""
    return np.random.Generator(np.random.Philox(key=int.from_bytes(_digest(seed, stage, key)[:16], "little")))


def integer(seed: int, stage: str, *key: Key) -> int:
    """A non-negative 31-bit integer that depends on its arguments only, e.g. the sampling seed of a request."""
    return int.from_bytes(_digest(seed, stage, key)[16:20], "little") >> 1


def jax_key(seed: int, stage: str, *key: Key) -> jax.Array:
    """A JAX key that depends on its arguments only."""
    import jax  # here, because most users of this module need no JAX and loading it takes a second

    return jax.random.key(integer(seed, stage, *key))
