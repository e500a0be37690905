"""Pre-training of the autoencoder (``make autoencoder``), a checkpoint every few minutes.

Starts from the newest checkpoint in the output folder, else from the shipped weights, and trains on with a new warm-up.
From scratch it takes vocabulary and first embeddings from a GGUF file of the embedded model::

    python -m bestprompt.latent.training.train --minutes 120
    python -m bestprompt.latent.training.train --out runs/new --scratch SmolLM2.gguf --sampled sampled.txt
    python -m bestprompt.latent.training.train --publish    # the newest checkpoint → the package, in half precision
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from bestprompt.latent.coder import SentenceCoder
from bestprompt.latent.corpus.batches import Batches
from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import sentences, split_sampled
from bestprompt.latent.network import NetworkSizes, SentenceNetwork
from bestprompt.latent.objective import Recipe, loss
from bestprompt.latent.tokens import Codec, train_tokenizer
from bestprompt.latent.training import vocabulary
from bestprompt.latent.weights_file import WEIGHTS, WEIGHTS_NAME, load_network, save_network
from bestprompt.rng import jax_key, stream

LENGTHS, LENGTH_SHARES = (13, 20, 32), (0.5, 0.38, 0.12)
COMPETITORS = 2048
AVERAGING, WARM_UP = 0.995, 60
RAMP_FROM, RAMP_UNTIL = 0.2, 0.5  # size of the first steps; share of the time after which they have full size


@dataclass(frozen=True)
class TrainingPlan:
    """One training run; ``scratch`` is the GGUF file to start from, ``None`` to train on."""

    out: Path = Path("runs/autoencoder")
    sampled: Path = WEIGHTS / "sampled.txt"
    scratch: Path | None = None
    minutes: float = 120.0
    peak_rate: float = 2e-3
    checkpoint_minutes: float = 4.0
    seed: int = 0
    code: int = NetworkSizes.code

    @property
    def checkpoint(self) -> Path:
        """The newest weights of this run."""
        return self.out / "checkpoint.safetensors"


def start(plan: TrainingPlan, grammar: Grammar, sampled: list[str]) -> tuple[SentenceNetwork, Codec]:
    """SentenceNetwork and tokenizer to train: of this folder, of the package, or new."""
    tokenizer = plan.out / "tokenizer.json"
    if plan.checkpoint.exists():
        return with_code(load_network(plan.checkpoint), plan), Codec.load(tokenizer)
    if plan.scratch is None:
        shutil.copy(WEIGHTS / "tokenizer.json", tokenizer)
        return with_code(load_network(WEIGHTS / WEIGHTS_NAME), plan), Codec.load(tokenizer)
    strings, table = vocabulary.read_table(plan.scratch)
    text = sentences(grammar, 60_000, stream(plan.seed, "vocabulary"))
    words = vocabulary.common_words(strings)
    trained = train_tokenizer([*text, *sampled * 3, *words * 2], NetworkSizes().vocabulary)
    trained.save(str(tokenizer))
    shape = NetworkSizes(vocabulary=trained.get_vocab_size(), code=plan.code)
    initial = vocabulary.initial_embeddings(trained, strings, table, shape.width)
    return SentenceNetwork(shape, jax_key(plan.seed, "initial"), jnp.asarray(initial, jnp.float32)), Codec(trained)


def with_code(network: SentenceNetwork, plan: TrainingPlan) -> SentenceNetwork:
    """``network`` with ``plan.code`` numbers in its code: new ones are made at random and not listened to yet."""
    more = plan.code - network.shape.code
    if more <= 0:
        return network
    rows = len(network.to_code)
    fresh = jax.random.normal(jax_key(plan.seed, "wider code"), (rows, more)) * rows**-0.5
    grown = eqx.tree_at(
        lambda n: (n.to_code, n.from_code, n.everywhere),
        network,
        (
            jnp.concatenate([network.to_code, fresh], axis=1),
            jnp.pad(network.from_code, ((0, more), (0, 0))),
            jnp.pad(network.everywhere, ((0, more), (0, 0))),
        ),
    )
    wider = eqx.filter_eval_shape(SentenceNetwork, replace(network.shape, code=plan.code), jax.random.key(0))
    widened: SentenceNetwork = jax.tree.unflatten(jax.tree.structure(wider), jax.tree.leaves(grown))
    return widened


def publish(plan: TrainingPlan) -> None:
    """Put the newest checkpoint into the package, in half precision."""
    save_network(load_network(plan.checkpoint), WEIGHTS / WEIGHTS_NAME, half=True)
    shutil.copy(plan.out / "tokenizer.json", WEIGHTS / "tokenizer.json")


def rate_at(step: int, elapsed: float, plan: TrainingPlan) -> float:
    """Warm-up, then a cosine over the time that was granted, down to 3 % of the peak."""
    progress = min(1.0, elapsed / (60 * plan.minutes))
    return plan.peak_rate * min(1.0, (step + 1) / WARM_UP) * (0.03 + 0.97 * 0.5 * (1 + float(np.cos(np.pi * progress))))


def ramp_at(elapsed: float, plan: TrainingPlan) -> float:
    """Size of the steps in the code space: small at first, full after half of the time."""
    return min(1.0, RAMP_FROM + (1.0 - RAMP_FROM) * elapsed / (60 * plan.minutes * RAMP_UNTIL))


def exact_share(network: SentenceNetwork, codec: Codec, texts: list[str]) -> float:
    """Share of texts that come back unchanged, without noise."""
    whole = SentenceCoder(network, codec, "")
    fitting = [text for text in texts if whole.fits(text)][:256]
    return float(np.mean([a == b for a, b in zip(fitting, whole.decode(whole.encode(fitting)), strict=True)]))


def train(plan: TrainingPlan, recipe: Recipe) -> None:
    """Train for the granted time; the averaged weights are what checkpoints hold."""
    plan.out.mkdir(parents=True, exist_ok=True)
    grammar = Grammar.bundled()
    kept, held_out = split_sampled(plan.sampled)
    network, codec = start(plan, grammar, kept)
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.98), optax.add_decayed_weights(0.01)
    )
    state = optimizer.init(eqx.filter(network, eqx.is_array))

    @eqx.filter_jit(donate="all-except-first")
    def step(tokens, among, key, rate, ramp, network, averaged, state):  # type: ignore[no-untyped-def]
        value, gradient = eqx.filter_value_and_grad(loss)(network, tokens, among, recipe, ramp, key)
        updates, state = optimizer.update(gradient, state, eqx.filter(network, eqx.is_array))
        network = eqx.apply_updates(network, jax.tree.map(lambda u: -rate * u, updates))
        return network, optax.incremental_update(network, averaged, 1 - AVERAGING), state, value

    averaged = jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, network)
    batches, rng = Batches(codec, grammar, kept), stream(plan.seed, "batches", time.time_ns())
    key = jax.random.key(int(rng.integers(2**31)))
    test = sentences(grammar, 256, stream(plan.seed, "held-out"))
    began = saved = time.monotonic()
    count, running = 0, 0.0
    while (now := time.monotonic()) - began < 60 * plan.minutes:
        tokens = batches.draw(int(rng.choice(LENGTHS, p=LENGTH_SHARES)), rng)
        among = jnp.asarray(batches.competitors(tokens, COMPETITORS, rng))
        rate = jnp.float32(rate_at(count, now - began, plan))
        ramp = jnp.float32(ramp_at(now - began, plan))
        network, averaged, state, value = step(
            jnp.asarray(tokens), among, jax.random.fold_in(key, count), rate, ramp, network, averaged, state
        )
        running = float(value) if count == 0 else 0.98 * running + 0.02 * float(value)
        count += 1
        if now - saved > 60 * plan.checkpoint_minutes:
            saved = now
            save_network(averaged, plan.checkpoint)
            row = {"minute": round((now - began) / 60, 1), "step": count, "loss": round(running, 3)}
            row |= {"grammar": exact_share(averaged, codec, test), "sampled": exact_share(averaged, codec, held_out)}
            with (plan.out / "log.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)
    save_network(averaged, plan.checkpoint)
    (plan.out / "recipe.json").write_text(json.dumps(asdict(recipe), indent=1))


def main() -> None:
    """Train or publish as asked on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TrainingPlan.out)
    parser.add_argument("--sampled", type=Path, default=TrainingPlan.sampled, help="one instruction per line")
    parser.add_argument("--scratch", type=Path, help="GGUF file for vocabulary and first embeddings")
    parser.add_argument("--minutes", type=float, default=TrainingPlan.minutes)
    parser.add_argument(
        "--code", type=int, default=TrainingPlan.code, help="numbers in the code; a shorter one is widened"
    )
    parser.add_argument("--rate", type=float, default=TrainingPlan.peak_rate)
    parser.add_argument("--recipe", type=json.loads, default={}, help="JSON with fields of Recipe")
    parser.add_argument("--publish", action="store_true", help="put the newest checkpoint into the package and stop")
    given = parser.parse_args()
    plan = TrainingPlan(given.out, given.sampled, given.scratch, given.minutes, given.rate, code=given.code)
    if given.publish:
        publish(plan)
    else:
        train(plan, Recipe(**given.recipe))


if __name__ == "__main__":
    main()
