"""Fine-tuning on the user's example prompts until each comes back, Dec(Enc(p)) = p (paper, "Text Autoencoder").

Half of every batch is the examples, moved by their own covariance as in pre-training; the other half is replayed
from the grammar and from sampled instructions, so that the neighbourhoods in between keep decoding to sentences. The
examples' words become words that may be written (``lexicon.py``). What the encoder alone does not return after the last
step is left to the polishing of its code (``polish.py``).
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from platformdirs import user_cache_dir

from bestprompt.errors import SearchError
from bestprompt.latent.coder import SentenceCoder
from bestprompt.latent.contract import TuningProgress
from bestprompt.latent.corpus.batches import GROUP, Batches, SortedTexts
from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import sampled_instructions
from bestprompt.latent.network import SentenceNetwork
from bestprompt.latent.objective import Recipe, loss
from bestprompt.latent.sentences import encoded_part
from bestprompt.latent.tokens import TokenRows
from bestprompt.latent.weights_file import load_network, save_network
from bestprompt.rng import jax_key, stream

MAX_STEPS, CHECK_EVERY, COMPETITORS = 160, 8, 2048
EXAMPLE_ROWS, REPLAY_GROUPS = 2 * GROUP, 2
LENGTHS = (16, 24, 32, 56)
SEARCH_ROUNDS = 2
RECIPE = Recipe(group_share=0.4, paraphrase=0.0, nearest=0.0)
Coder = TypeVar("Coder", bound=SentenceCoder)
_OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(6e-4, b2=0.98))


def fine_tune(autoencoder: Coder, texts: Sequence[str], progress: TuningProgress | None = None) -> Coder:
    """A copy of ``autoencoder`` that gives the varied sentence of every text back exactly.

    The result is kept in the cache folder under a hash of weights and texts, and read from there the next time.

    Raises:
        SearchError: A text cannot be represented, or some are still not exact after the last step.
    """
    varied = sorted({encoded_part(text, autoencoder.fits) for text in texts})
    identity = hashlib.sha256("\x1f".join([autoencoder.identity, repr(RECIPE), *varied]).encode()).hexdigest()
    autoencoder = autoencoder.with_words_of(varied)
    path = cache_folder() / "autoencoder" / f"{identity[:32]}.safetensors"
    if path.exists():
        return _quick(replace(autoencoder, network=load_network(path), identity=identity), varied)
    # Compiling keeps one core busy: while the programs of training are made here, another makes those of the search.
    # A daemon, because nothing is lost when the user stops the program meanwhile.
    ahead = threading.Thread(target=autoencoder.prepare, daemon=True)
    ahead.start()
    network, wrong = _tuned_network(replace(autoencoder, polishing=0), varied, progress)
    ahead.join()
    tuned = replace(autoencoder, network=network, identity=identity)
    if wrong and (wrong := not_exact(tuned, wrong)):
        raise SearchError(
            f"{len(wrong)} of {len(varied)} example prompts cannot be learned by the autoencoder,"
            f" e.g. {wrong[0][:60]!r}. Reword them in plain English, or give candidates as a list (source 'file')."
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    save_network(tuned.network, path)
    return _quick(tuned, varied)


def _quick(tuned: Coder, texts: Sequence[str]) -> Coder:
    """``tuned`` with few rounds of polishing, enough for what lies near the examples, unless these need more."""
    quick = replace(tuned, polishing=min(tuned.polishing, SEARCH_ROUNDS))
    return tuned if not_exact(quick, texts) else quick


def cache_folder() -> Path:
    """``$BESTPROMPT_CACHE``, or the user's cache folder of this package."""
    return Path(os.environ.get("BESTPROMPT_CACHE") or user_cache_dir("bestprompt"))


def not_exact(autoencoder: SentenceCoder, texts: Sequence[str]) -> list[str]:
    """The texts that do not come back unchanged."""
    back = autoencoder.decode(autoencoder.encode(texts))
    return [text for text, again in zip(texts, back, strict=True) if text != again]


def _tuned_network(
    autoencoder: SentenceCoder, texts: list[str], progress: TuningProgress | None
) -> tuple[SentenceNetwork, list[str]]:
    """The tuned weights, and the texts that the encoder alone does not return yet after the last step."""
    codec, network = autoencoder.codec, autoencoder.network
    longest = max(len(numbers) for numbers in codec.numbers(texts)) + 1
    length = next(candidate for candidate in LENGTHS if candidate >= longest)
    rng, key = stream(0, "fine-tune"), jax_key(0, "fine-tune")
    sampled = SortedTexts(sampled_instructions())
    replay = Batches(codec, Grammar.bundled(), sampled, groups=REPLAY_GROUPS)
    state = _OPTIMIZER.init(eqx.filter(network, eqx.is_array))
    rows, wrong = codec.rows(texts, length), list(texts)
    for step in range(MAX_STEPS + 1):
        if step % CHECK_EVERY == 0:
            wrong = not_exact(replace(autoencoder, network=network), texts)
            if progress is not None:
                progress(len(texts) - len(wrong), len(texts))
            if not wrong or step == MAX_STEPS:
                break
        tokens = np.concatenate([_example_rows(rows, texts, wrong, rng), replay.draw(length, rng)])
        among = replay.competitors(np.concatenate([rows, tokens]), COMPETITORS, rng)
        network, state = _update(jnp.asarray(tokens), jnp.asarray(among), jax.random.fold_in(key, step), network, state)
    return network, wrong


def _example_rows(rows: TokenRows, texts: list[str], wrong: list[str], rng: np.random.Generator) -> TokenRows:
    """(EXAMPLE_ROWS, T): the examples in turn, those that are not exact yet more often."""
    weights = np.array([3.0 if text in set(wrong) else 1.0 for text in texts])
    distinct = min(len(texts), EXAMPLE_ROWS)
    chosen = rng.choice(len(texts), size=distinct, replace=False, p=weights / weights.sum())
    repeated = rng.choice(len(texts), size=EXAMPLE_ROWS - distinct, p=weights / weights.sum())
    return np.asarray(rows[rng.permutation(np.concatenate([chosen, repeated]))])


@eqx.filter_jit
def _update(
    tokens: jax.Array, among: jax.Array, key: jax.Array, network: SentenceNetwork, state: optax.OptState
) -> tuple[SentenceNetwork, optax.OptState]:
    gradient = eqx.filter_grad(loss)(network, tokens, among, RECIPE, jnp.float32(1.0), key)
    updates, state = _OPTIMIZER.update(gradient, state, eqx.filter(network, eqx.is_array))
    return eqx.apply_updates(network, updates), state
