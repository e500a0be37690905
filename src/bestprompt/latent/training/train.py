"""Pre-training of the autoencoder (``make autoencoder``), in stretches, a checkpoint every few minutes.

Goes on from the checkpoint in the output folder with a new warm-up, else from the shipped weights, grown to the sizes
wanted, or with ``--anew`` from nothing but the embedded language model's embeddings. A checkpoint is the averaged
weights in half precision, ``log.jsonl`` beside it the curves and how far the training is. Killed, it loses what came
after the last checkpoint::

    python -m bestprompt.latent.training.train --minutes 120
    python -m bestprompt.latent.training.train --out runs/wide --anew --steps 2000 --sizes '{"width": 256, "heads": 4}'
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from bestprompt.latent.coder import SentenceCoder
from bestprompt.latent.corpus.batches import Batches
from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import sentences
from bestprompt.latent.lexicon import LEXICON_NAME, read_lexicon
from bestprompt.latent.network import NetworkSizes, SentenceNetwork
from bestprompt.latent.objective import Recipe, loss
from bestprompt.latent.tokens import Codec, train_tokenizer
from bestprompt.latent.training import vocabulary
from bestprompt.latent.training.corpus_groups import CorpusGroups, SampledCorpus
from bestprompt.latent.training.growing import grown, with_more_words, word_counts
from bestprompt.latent.weights_file import WEIGHTS, WEIGHTS_NAME, load_network, save_network
from bestprompt.lm import weights
from bestprompt.rng import jax_key, stream

SIZES = NetworkSizes(
    vocabulary=12288, width=192, heads=3, encoder_layers=4, decoder_layers=3, slots=3, code=320, prefix=3, length=56
)
LENGTHS, LENGTH_SHARES = (14, 22, 34, 56), (0.4, 0.36, 0.16, 0.08)
COMPETITORS, TESTED = 2048, 512
AVERAGING, WARM_UP = 0.999, 100
RAMP_FROM, RAMP_UNTIL = 0.2, 0.3  # size of the first steps; share of the training after which they have full size


@dataclass(frozen=True)
class TrainingPlan:
    """One training, perhaps in several stretches."""

    out: Path = Path("corpus/autoencoder")
    corpus: Path = Path("corpus")
    steps: int = 120_000
    minutes: float = float("inf")
    peak_rate: float = 1.5e-3
    checkpoint_minutes: float = 5.0
    groups: int = 8
    sampled_share: float = 0.6
    sizes: NetworkSizes = SIZES
    anew: bool = False
    recipe: Recipe = field(default_factory=Recipe)
    seed: int = 0

    @property
    def checkpoint(self) -> Path:
        """The newest weights of this training."""
        return self.out / WEIGHTS_NAME

    @property
    def log(self) -> Path:
        """One row for each checkpoint."""
        return self.out / "log.jsonl"

    def rate_at(self, step: int, since_start: int) -> float:
        """Warm-up of each stretch, then a cosine over all steps, down to 3 % of the peak."""
        warmed = min(1.0, (since_start + 1) / WARM_UP)
        return self.peak_rate * warmed * (0.03 + 0.97 * 0.5 * (1 + float(np.cos(np.pi * min(1.0, step / self.steps)))))

    def ramp_at(self, step: int) -> float:
        """Size of the steps in the code space: small at first."""
        return min(1.0, RAMP_FROM + (1.0 - RAMP_FROM) * step / (self.steps * RAMP_UNTIL))


def start(plan: TrainingPlan, grammar: Grammar, sampled: list[str]) -> tuple[SentenceNetwork, Codec, int]:
    """Network, tokenizer and steps done so far."""
    tokenizer = plan.out / "tokenizer.json"
    if plan.checkpoint.exists():
        rows = plan.log.read_text().splitlines() if plan.log.exists() else []
        done = int(json.loads(rows[-1])["step"]) if rows else 0
        return load_network(plan.checkpoint), Codec.load(tokenizer), done
    network, codec = (_from_nothing if plan.anew else _from_shipped)(plan, grammar, sampled)
    plan.out.mkdir(parents=True, exist_ok=True)
    codec.tokenizer.save(str(tokenizer))
    return network, codec, 0


def _from_shipped(plan: TrainingPlan, grammar: Grammar, sampled: list[str]) -> tuple[SentenceNetwork, Codec]:
    before = Codec.load(WEIGHTS / "tokenizer.json")
    counts = word_counts([*sampled, *sentences(grammar, len(sampled), stream(plan.seed, "vocabulary"))])
    counts.update(read_lexicon(WEIGHTS / LEXICON_NAME).words)
    after = with_more_words(before, counts, plan.sizes.vocabulary)
    shipped, key = load_network(WEIGHTS / WEIGHTS_NAME), jax_key(plan.seed, "growing")
    return grown(shipped, before, after, plan.sizes, key), after


def _from_nothing(plan: TrainingPlan, grammar: Grammar, sampled: list[str]) -> tuple[SentenceNetwork, Codec]:
    strings, table = vocabulary.read_table(weights.fetch(print))
    text = sentences(grammar, 60_000, stream(plan.seed, "vocabulary"))
    words = vocabulary.common_words(strings)
    trained = train_tokenizer([*text, *sampled * 2, *words * 2], plan.sizes.vocabulary)
    initial = jnp.asarray(vocabulary.initial_embeddings(trained, strings, table, plan.sizes.width), jnp.float32)
    return SentenceNetwork(plan.sizes, jax_key(plan.seed, "initial"), initial), Codec(trained)


def exact_share(network: SentenceNetwork, codec: Codec, texts: list[str]) -> float:
    """Share of texts that come back unchanged, without noise and without polishing."""
    whole = SentenceCoder(network, codec, "")
    fitting = [text for text in texts if whole.fits(text)]
    return float(np.mean([a == b for a, b in zip(fitting, whole.decode(whole.encode(fitting)), strict=True)]))


def in_half(network: SentenceNetwork) -> SentenceNetwork:
    """The network with its matrices in bfloat16; the table of embeddings stays, because rows are looked up in it."""
    halved = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16) if leaf.ndim == 2 else leaf, network)
    whole = (network.embedding, network.queries, network.prefix_bias)
    changed: SentenceNetwork = eqx.tree_at(lambda n: (n.embedding, n.queries, n.prefix_bias), halved, whole)
    return changed


_OPTIMIZER = optax.chain(optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.98), optax.add_decayed_weights(0.01))


@eqx.filter_jit(donate="all-except-first")
def _update(inputs: tuple[jax.Array, ...], recipe: Recipe, network: Any, averaged: Any, state: Any) -> Any:
    """One step: ``inputs`` are tokens, competitors, key, learning rate, size of the steps, and the weight
    that the new weights get in the average.
    """
    tokens, among, key, rate, ramp, fresh = inputs

    def of(network: SentenceNetwork) -> jax.Array:
        return loss(in_half(network), tokens, among, recipe, ramp, key)

    value, gradient = eqx.filter_value_and_grad(of)(network)
    updates, state = _OPTIMIZER.update(gradient, state, eqx.filter(network, eqx.is_array))
    network = eqx.apply_updates(network, jax.tree.map(lambda u: -rate * u, updates))
    return network, optax.incremental_update(network, averaged, fresh), state, value


def train(plan: TrainingPlan) -> None:
    """Train for the granted steps and minutes; the averaged weights are what checkpoints hold."""
    grammar, corpus = Grammar.wide(), SampledCorpus.of(plan.corpus)
    sampled = CorpusGroups.of(corpus.records, corpus.older)
    network, codec, done = start(plan, grammar, sampled.texts)
    state = _OPTIMIZER.init(eqx.filter(network, eqx.is_array))
    averaged = jax.tree.map(lambda leaf: leaf.copy() if eqx.is_array(leaf) else leaf, network)
    batches = Batches(codec, grammar, sampled, plan.groups, plan.sampled_share)
    rng, key = stream(plan.seed, "batches", done), jax_key(plan.seed, "steps")
    tests = {"grammar": sentences(grammar, TESTED, stream(plan.seed, "held-out"))}
    tests |= {"sampled": corpus.held_out[:TESTED], "older": corpus.older_held_out}
    began = saved = time.monotonic()
    values: list[float] = []

    def keep(step: int) -> None:
        save_network(averaged, plan.checkpoint, half=True)
        row: dict[str, float] = {"step": step, "minutes": round((time.monotonic() - began) / 60, 1)}
        row |= {"cpu": round(time.process_time() / 60, 1), "loss": round(float(np.mean(values[-500:])), 3)}
        row |= {"corpus": len(sampled.texts)}
        row |= {name: round(exact_share(averaged, codec, texts), 3) for name, texts in tests.items() if texts}
        with plan.log.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(row, flush=True)

    for step in range(done, plan.steps):
        if time.monotonic() - began > 60 * plan.minutes:
            break
        tokens = batches.draw(int(rng.choice(LENGTHS, p=LENGTH_SHARES)), rng)
        among = batches.competitors(tokens, COMPETITORS, rng)
        numbers = plan.rate_at(step, step - done), plan.ramp_at(step), max(1 - AVERAGING, 1 / (1 + 0.1 * len(values)))
        inputs = (jnp.asarray(tokens), jnp.asarray(among), jax.random.fold_in(key, step), *map(jnp.float32, numbers))
        network, averaged, state, value = _update(inputs, plan.recipe, network, averaged, state)
        values.append(float(value))
        if time.monotonic() - saved > 60 * plan.checkpoint_minutes:
            saved = time.monotonic()
            keep(step + 1)
    keep(done + len(values))
    (plan.out / "recipe.json").write_text(json.dumps(asdict(plan.recipe), indent=1))


def main() -> None:
    """Train as asked on the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=TrainingPlan.out, help="folder of the checkpoint")
    parser.add_argument("--corpus", type=Path, default=TrainingPlan.corpus, help="folder of what the sampler wrote")
    parser.add_argument("--steps", type=int, default=TrainingPlan.steps, help="batches of the whole training")
    parser.add_argument("--minutes", type=float, default=TrainingPlan.minutes, help="of this stretch")
    parser.add_argument("--rate", type=float, default=TrainingPlan.peak_rate)
    parser.add_argument("--sizes", type=json.loads, default={}, help="JSON with fields of NetworkSizes, for a new one")
    parser.add_argument("--anew", action="store_true", help="begin from nothing instead of from the shipped weights")
    parser.add_argument("--recipe", type=json.loads, default={}, help="JSON with fields of Recipe")
    given = parser.parse_args()
    plan = TrainingPlan(
        given.out,
        given.corpus,
        given.steps,
        given.minutes,
        given.rate,
        sizes=replace(SIZES, **given.sizes),
        anew=given.anew,
        recipe=Recipe(**given.recipe),
    )
    train(plan)


if __name__ == "__main__":
    main()
