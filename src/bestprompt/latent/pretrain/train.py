"""Pre-training of the autoencoder (``make autoencoder``): resumes from the newest checkpoint, writes one every few
minutes.

``python -m bestprompt.latent.pretrain.train --sampled sampled.txt --model model.gguf --out folder --minutes 60``
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from bestprompt.latent.network import Network, Shape
from bestprompt.latent.pretrain import vocabulary
from bestprompt.latent.pretrain.corpus import Batches, sentences, split_sampled
from bestprompt.latent.pretrain.grammar import Grammar
from bestprompt.latent.pretrain.objective import Recipe, loss
from bestprompt.latent.tokens import Codec, train_tokenizer
from bestprompt.latent.weights_file import load_network, save_network
from bestprompt.rng import jax_key, stream

LENGTHS, LENGTH_SHARES = (13, 20, 32), (0.5, 0.38, 0.12)
COMPETITORS = 2048
AVERAGING, WARM_UP = 0.998, 150


@dataclass(frozen=True)
class Plan:
    """One training run."""

    out: Path
    sampled: Path
    model: Path
    minutes: float
    peak_rate: float = 2e-3
    checkpoint_minutes: float = 4.0
    seed: int = 0
    code: int = 128


def build_codec(plan: Plan, grammar: Grammar, sampled: list[str], strings: list[str]) -> Codec:
    """The tokenizer of an earlier run, or a new one trained on grammar, samples and the model's common words."""
    path = plan.out / "tokenizer.json"
    if not path.exists():
        text = sentences(grammar, 60_000, stream(plan.seed, "vocabulary"))
        train_tokenizer([*text, *sampled * 3, *vocabulary.common_words(strings) * 2], Shape().vocabulary).save(
            str(path)
        )
    return Codec.load(path)


def rate_at(step: int, elapsed: float, plan: Plan) -> float:
    """Warm-up, then a cosine over the time that was granted, down to 3 % of the peak."""
    progress = min(1.0, elapsed / (60 * plan.minutes))
    return plan.peak_rate * min(1.0, (step + 1) / WARM_UP) * (0.03 + 0.97 * 0.5 * (1 + float(np.cos(np.pi * progress))))


def exact_share(network: Network, codec: Codec, texts: list[str]) -> float:
    """Share of texts that come back unchanged, without noise."""
    fitting = [t for t, n in zip(texts, codec.numbers(texts), strict=True) if len(n) < network.shape.length][:256]
    rows = jnp.asarray(codec.rows(fitting, network.shape.length))
    tokens, _ = eqx.filter_jit(lambda net, r: net.generate(net.encode(r)))(network, rows)
    back = codec.texts(np.asarray(tokens))
    return float(np.mean([a == b for a, b in zip(fitting, back, strict=True)]))


def train(plan: Plan, recipe: Recipe) -> None:
    """Train for the granted time; the averaged weights are what checkpoints hold."""
    plan.out.mkdir(parents=True, exist_ok=True)
    grammar = Grammar.bundled()
    kept, held_out = split_sampled(plan.sampled)
    strings, table = vocabulary.read_table(plan.model)
    codec = build_codec(plan, grammar, kept, strings)
    newest = plan.out / "checkpoint.safetensors"
    if newest.exists():
        network = load_network(newest)
    else:
        size = codec.tokenizer.get_vocab_size()
        shape = Shape(vocabulary=size, code=plan.code)
        initial = vocabulary.initial_embeddings(codec.tokenizer, strings, table, shape.width)
        network = Network(shape, jax_key(plan.seed, "initial"), jnp.asarray(initial, jnp.float32))
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.98), optax.add_decayed_weights(0.01)
    )
    state, averaged = optimizer.init(eqx.filter(network, eqx.is_array)), network

    @eqx.filter_jit(donate="all-except-first")
    def step(tokens, among, key, rate, network, averaged, state):  # type: ignore[no-untyped-def]
        value, gradient = eqx.filter_value_and_grad(loss)(network, tokens, among, recipe, key)
        updates, state = optimizer.update(gradient, state, eqx.filter(network, eqx.is_array))
        network = eqx.apply_updates(network, jax.tree.map(lambda u: -rate * u, updates))
        mix = lambda old, new: AVERAGING * old + (1 - AVERAGING) * new if eqx.is_array(old) else old  # noqa: E731
        return network, jax.tree.map(mix, averaged, network), state, value

    averaged = jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, network)
    batches, rng, key = (
        Batches(codec, grammar, kept),
        stream(plan.seed, "batches", int(time.time())),
        jax_key(plan.seed, "noise"),
    )
    test = sentences(grammar, 256, stream(plan.seed, "held-out"))
    began = saved = time.monotonic()
    count, running = 0, 0.0
    while (now := time.monotonic()) - began < 60 * plan.minutes:
        tokens = batches.draw(int(rng.choice(LENGTHS, p=LENGTH_SHARES)), rng)
        among = jnp.asarray(batches.competitors(tokens, COMPETITORS, rng))
        rate = jnp.float32(rate_at(count, now - began, plan))
        network, averaged, state, value = step(
            jnp.asarray(tokens), among, jax.random.fold_in(key, count), rate, network, averaged, state
        )
        running = float(value) if count == 0 else 0.98 * running + 0.02 * float(value)
        count += 1
        if count in (5, 20, 50, 100, 200, 400):
            print(count, round(now - began, 1), flush=True)
        if now - saved > 60 * plan.checkpoint_minutes:
            saved = now
            save_network(averaged, newest)
            row = {"minute": round((now - began) / 60, 1), "step": count, "loss": round(running, 3)}
            row |= {"grammar": exact_share(averaged, codec, test), "sampled": exact_share(averaged, codec, held_out)}
            with (plan.out / "log.jsonl").open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(row, flush=True)
    save_network(averaged, newest)
    (plan.out / "recipe.json").write_text(json.dumps(asdict(recipe), indent=1))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sampled", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--code", type=int, default=128)
    parser.add_argument("--rate", type=float, default=2e-3)
    parser.add_argument("--recipe", type=json.loads, default={}, help="JSON with fields of Recipe")
    given = parser.parse_args()
    plan = Plan(given.out, given.sampled, given.model, given.minutes, peak_rate=given.rate, code=given.code)
    train(plan, Recipe(**given.recipe))
