"""Polishing a code until it decodes to its text: the second half of a semi-amortised encoder.

Notation (paper symbol → name, shape):
    p            prompt                                            → ``rows``    (n, T) tokens
    s_0 = Enc(p) the encoder's code                                → ``codes``   (n, d)
    ℓ_t(w | s)   decoder's logit of word w at place t, p before it → ``logits``  (n, T, A)
    A_t          words that may be written at place t              → ``states``  (n, T), see ``speller.py``
    m_t(s)       ℓ_t(p_t | s) − max_{w in A_t, w ≠ p_t} ℓ_t(w | s), margin → in ``_climb`` (n, T)

Greedy decoding returns p exactly when every margin is positive. The encoder guesses a code in one pass; where that
guess does not return p, gradient steps on the code itself, not on the weights, raise the margins until it does. Own
addition: the paper has the encoder alone.

All words compete when a code is checked. During the steps only the strongest rivals of the last check do, which costs a
fraction and loses nothing, because the next check finds new rivals.
"""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from bestprompt.latent.network import BEGIN, END, FIRST_WORD, PAD, REPETITION_PENALTY, SentenceNetwork
from bestprompt.latent.speller import Speller
from bestprompt.latent.tokens import TokenRows
from bestprompt.types import FloatArray, IntArray

ROUNDS, STEPS = 8, 20
RATE, WANTED_MARGIN = 0.1, 1.0
SAFE_MARGIN = 0.02  # above rounding: another batch shape must not tip a decision
BATCH, RIVALS, COMPETITORS = 16, 3, 1024
_NEVER = -1e9


def polished(network: SentenceNetwork, speller: Speller, codes: FloatArray, rows: TokenRows, rounds: int) -> FloatArray:
    """(n, d) codes that return ``rows`` (n, T) where one was found; exact ones, and those without success, unchanged.

    The result for one text does not depend on its companions in the batch beyond rounding.
    """
    result = np.array(codes, dtype=np.float64)
    for part in _parts(len(rows)):
        code, tokens = jnp.asarray(result[part], jnp.float32), rows[part]
        states, possible = _spelled(speller, jnp.asarray(tokens))
        done = ~np.asarray(possible)  # what cannot be spelled cannot be decoded
        for turn in range(rounds + 1):
            least, rivals = _check(network, speller, code, jnp.asarray(tokens), states)
            fresh = ~done & (np.asarray(least) > SAFE_MARGIN)
            if turn:
                result[part[fresh]] = np.asarray(code, dtype=np.float64)[fresh]
            done |= fresh
            if done.all() or turn == rounds:
                break
            among = _competitors(tokens[~done], np.asarray(rivals)[~done], network.shape.vocabulary)
            code = _climb(network, speller, code, jnp.asarray(tokens), states, jnp.asarray(among))
    return result


def _parts(n: int) -> list[IntArray]:
    # The last part is filled up with its last text.
    filled = np.concatenate([np.arange(n), np.repeat(n - 1, -n % BATCH)])
    return [filled[i : i + BATCH] for i in range(0, len(filled), BATCH)]


def _competitors(rows: TokenRows, rivals: IntArray, vocabulary: int) -> IntArray:
    """(COMPETITORS,) the end mark, the texts' tokens, their rivals, then any others; all distinct."""
    wanted = np.concatenate([[PAD, END], rows.ravel(), rivals.ravel(), np.arange(BEGIN, vocabulary)])
    _, first = np.unique(wanted, return_index=True)
    return np.asarray(wanted[np.sort(first)][: min(COMPETITORS, vocabulary)])


def _inputs(rows: jax.Array) -> jax.Array:
    begin = jnp.full((len(rows), 1), BEGIN, rows.dtype)
    return jnp.concatenate([begin, jnp.where(rows[:, :-1] == END, PAD, rows[:, :-1])], axis=1)


@eqx.filter_jit
def _spelled(speller: Speller, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """(n, T) the state of spelling before each token, and (n,) whether all tokens are allowed."""
    return speller.along(rows), speller.spells(rows)


def _scores(
    network: SentenceNetwork, code: jax.Array, rows: jax.Array, among: jax.Array, allowed: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Greedy decoding's own logits (n, T, A) with the wanted word taken out, and (n, T) those of the wanted word."""
    seen = _inputs(rows)
    again = jnp.where(seen >= FIRST_WORD, REPETITION_PENALTY, 0.0)
    logits = network.logits(code, seen, among) - again[..., None] * (among == seen[..., None])
    wanted = among == rows[..., None]
    barred = wanted | ~allowed | (among == PAD) | (among == BEGIN)
    return jnp.where(barred, _NEVER, logits), jnp.max(jnp.where(wanted, logits, _NEVER), axis=-1)


@eqx.filter_jit
def _check(
    network: SentenceNetwork, speller: Speller, code: jax.Array, rows: jax.Array, states: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """(n,) smallest margin against all words, and (n, T, RIVALS) the strongest rivals."""
    everything = jnp.arange(network.shape.vocabulary)
    others, own = _scores(network, code, rows, everything, speller.allowed(states))
    _, rivals = jax.lax.top_k(others, RIVALS)
    # The maximum once more: taken from the values of top_k, XLA would sort the whole vocabulary, ten times the work.
    return jnp.min(jnp.where(rows == PAD, -_NEVER, own - jnp.max(others, axis=-1)), axis=1), rivals


@eqx.filter_jit
def _climb(
    network: SentenceNetwork, speller: Speller, code: jax.Array, rows: jax.Array, states: jax.Array, among: jax.Array
) -> jax.Array:
    """STEPS steps that raise margins below WANTED_MARGIN; a code whose margins all reach it stands still."""
    allowed = speller.allowed(states)[..., among]

    def shortfall(code: jax.Array) -> jax.Array:
        others, own = _scores(network, code, rows, among, allowed)
        margins = jnp.where((rows == PAD) | (own == _NEVER), -_NEVER, own - jnp.max(others, axis=-1))
        return jnp.sum(jax.nn.relu(WANTED_MARGIN - margins))

    def step(_: int, state: tuple[jax.Array, jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        code, momentum, square = state
        gradient = jax.grad(shortfall)(code)
        momentum = 0.8 * momentum + 0.2 * gradient
        square = 0.9 * square + 0.1 * jnp.mean(gradient**2, axis=1, keepdims=True)
        return code - RATE * momentum * jax.lax.rsqrt(square + 1e-12), momentum, square

    start = (code, jnp.zeros_like(code), jnp.zeros((len(code), 1)))
    climbed: jax.Array = jax.lax.fori_loop(0, STEPS, step, start)[0]
    return climbed
