"""Short training runs from scratch that differ in one choice each: sizes, noise, targets, vocabulary.

Every variant sees the same number of batches of short sentences, drawn from the same streams, and is measured alike:
  * held-out sentences of grammar and sampled corpus: exact returns, and mean similarity to the original;
  * the paper's step (full sample covariance) inside groups of eight sentences of frames that are no bundled task: the
    share of greedy decodes that are whole, fluent and none of the eight.

    python experiments/autoencoder_comparison/run.py --gguf SmolLM2.gguf base      # one variant, added to runs.jsonl
    python experiments/autoencoder_comparison/run.py --gguf SmolLM2.gguf           # all that are not there yet
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import bestprompt.lm as lm
from bestprompt.latent import Autoencoder
from bestprompt.latent.corpus.batches import GROUP, Batches, SortedTexts
from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import BUNDLED, sentences
from bestprompt.latent.network import NetworkSizes, SentenceNetwork
from bestprompt.latent.objective import Recipe, loss
from bestprompt.latent.tokens import Codec, train_tokenizer
from bestprompt.latent.training import vocabulary
from bestprompt.latent.training.corpus_groups import SampledCorpus
from bestprompt.rng import jax_key, stream
from bestprompt.search import perturb
from bestprompt.search.filters import fluency_floor, looks_whole, plain, word_similarity

HERE = Path(__file__).parent
RUNS = HERE / "runs.jsonl"
BATCHES, LENGTH, COMPETITORS, PEAK_RATE = 500, 13, 1536, 3e-3
TESTED, GROUPS = 96, 8
NO_STEPS = Recipe(group_share=0.0, isotropic=0.1, paraphrase=0.0, nearest=0.0)


@dataclass(frozen=True)
class Variant:
    """One choice that differs from the base."""

    what: str
    shape: NetworkSizes = field(default_factory=lambda: NetworkSizes(code=256))
    recipe: Recipe = field(default_factory=Recipe)
    vocabulary: int = 8192
    random_embeddings: bool = False


VARIANTS = {
    "base": Variant("3 slots, 256 numbers, noise of the method's step, paraphrase targets, whole words"),
    "small-noise": Variant("isotropic noise up to 0.1, no group steps", recipe=NO_STEPS),
    "one-slot": Variant("1 slot", shape=NetworkSizes(code=256, slots=1, prefix=1)),
    "eight-slots": Variant("8 slots", shape=NetworkSizes(code=256, slots=8, prefix=8)),
    "code-64": Variant("64 numbers", shape=NetworkSizes(code=64)),
    "code-768": Variant("768 numbers", shape=NetworkSizes(code=768)),
    "sub-words": Variant("1,024 sub-words instead of 8,192 words", vocabulary=1024),
    "own-target": Variant("steps, but the parent is always the target", recipe=Recipe(paraphrase=0.0, nearest=0.0)),
    "random-start": Variant("embeddings start at random, not from the language model", random_embeddings=True),
}


def build(variant: Variant, gguf: Path, grammar: Grammar, sampled: list[str]) -> tuple[SentenceNetwork, Codec]:
    """An untrained network and its tokenizer."""
    strings, table = vocabulary.read_table(gguf)
    text = sentences(grammar, 30_000, stream(0, "vocabulary"))
    trained = train_tokenizer([*text, *sampled * 3, *vocabulary.common_words(strings) * 2], variant.vocabulary)
    shape = replace(variant.shape, vocabulary=trained.get_vocab_size())
    initial = None
    if not variant.random_embeddings:
        initial = jnp.asarray(vocabulary.initial_embeddings(trained, strings, table, shape.width), jnp.float32)
    return SentenceNetwork(shape, jax_key(0, "initial"), initial), Codec(trained)


def trained(variant: Variant, network: SentenceNetwork, batches: Batches, count: int) -> SentenceNetwork:
    """The network after ``count`` batches with the shared recipe; steps grow to full size over the first half."""
    optimizer = optax.chain(
        optax.clip_by_global_norm(1.0), optax.scale_by_adam(b2=0.98), optax.add_decayed_weights(0.01)
    )
    state, key, rng = optimizer.init(eqx.filter(network, eqx.is_array)), jax_key(0, "steps"), stream(0, "comparison")

    @eqx.filter_jit(donate="all-except-first")
    def step(tokens: Any, among: Any, key: Any, rate: Any, ramp: Any, network: Any, state: Any) -> Any:
        gradient = eqx.filter_grad(loss)(network, tokens, among, variant.recipe, ramp, key)
        updates, state = optimizer.update(gradient, state, eqx.filter(network, eqx.is_array))
        return eqx.apply_updates(network, jax.tree.map(lambda u: -rate * u, updates)), state

    for at in range(count):
        tokens = batches.draw(LENGTH, rng)
        among = jnp.asarray(batches.competitors(tokens, min(COMPETITORS, network.shape.vocabulary), rng))
        progress = at / count
        rate = PEAK_RATE * min(1.0, (at + 1) / 60) * (0.03 + 0.97 * 0.5 * (1 + np.cos(np.pi * progress)))
        ramp = min(1.0, 0.2 + 1.6 * progress)
        noise = jax.random.fold_in(key, at)
        network, state = step(jnp.asarray(tokens), among, noise, jnp.float32(rate), jnp.float32(ramp), network, state)
    return network


def returned(ae: Autoencoder, texts: list[str]) -> tuple[float, float]:
    """Share that comes back exactly, and mean similarity of what comes back."""
    fitting = [text for text in texts if ae.fits(text) and len(ae.codec.numbers([text])[0]) < LENGTH][:TESTED]
    pairs = list(zip(fitting, ae.decode(ae.encode(fitting)), strict=True))
    return float(np.mean([a == b for a, b in pairs])), float(np.mean([word_similarity(a, b) for a, b in pairs]))


def step_yield(ae: Autoencoder, grammar: Grammar, fluency: Any) -> tuple[float, float, float]:
    """Shares of the decodes after the paper's step: new; new and whole; new, whole and fluent."""
    rng, verdicts = stream(0, "comparison-yield"), []
    other = [frame for frame in grammar.frames if frame.name not in BUNDLED]
    for index in rng.choice(len(other), GROUPS, replace=False):
        frame = other[int(index)]
        drawn = (grammar.form(frame, grammar.instance(frame, rng), rng) for _ in range(200))
        group = list(dict.fromkeys(text for text in drawn if len(ae.codec.numbers([text])[0]) < LENGTH))[:GROUP]
        X = ae.encode(group)
        texts = ae.decode(X + perturb.sample_steps(X, len(X), rng))
        values = fluency([text or "." for text in texts])
        known = {plain(text) for text in group}
        for text, value in zip(texts, values, strict=True):
            new = plain(text) not in known
            verdicts.append(
                (new, new and looks_whole(text), new and looks_whole(text) and value >= fluency_floor(text))
            )
    new, whole, fluent = np.mean(verdicts, axis=0)
    return float(new), float(whole), float(fluent)


def run(name: str, gguf: Path, count: int) -> dict[str, Any]:
    """Train and measure one variant."""
    variant, grammar = VARIANTS[name], Grammar.bundled()
    corpus = SampledCorpus.of(Path(__file__).parents[2] / "corpus")
    kept, held_out = corpus.older, corpus.older_held_out
    network, codec = build(variant, gguf, grammar, kept)
    began = time.process_time()
    network = trained(variant, network, Batches(codec, grammar, SortedTexts(kept)), count)
    seconds = time.process_time() - began
    ae = Autoencoder(network, codec, name)
    exact, similarity = returned(ae, sentences(grammar, 4 * TESTED, stream(5, "unseen")))
    sampled_exact, sampled_similarity = returned(ae, held_out)
    new, whole, fluent = step_yield(ae, grammar, lm.embedded(gguf, threads=1).mean_logprob)
    return {
        "name": name, "what": variant.what, "batches": count, "seconds": round(seconds), "exact": exact,
        "similarity": similarity, "sampled_exact": sampled_exact, "sampled_similarity": sampled_similarity,
        "new": new, "whole": whole, "yield": fluent,
    }  # fmt: skip


def write_table(rows: list[dict[str, Any]]) -> None:
    """``results.md`` from all runs so far."""
    lines = [
        f"| {row['name']} | {row['what']} | {row['exact']:.0%} | {row['similarity']:.2f} | {row['sampled_exact']:.0%}"
        f" | {row['sampled_similarity']:.2f} | {row['new']:.0%} | {row['whole']:.0%} | {row['yield']:.0%}"
        f" | {row['seconds']} |"
        for row in rows
    ]
    (HERE / "results.md").write_text(REPORT.format(batches=rows[0]["batches"], rows="\n".join(lines)), encoding="utf-8")


REPORT = """# Short training runs that differ in one choice each

Made by `python experiments/autoencoder_comparison/run.py --gguf SmolLM2.gguf`: {batches} batches of 48 short sentences
from scratch, one seed. What is measured is explained at the top of `run.py`.

| variant | what differs | grammar exact | similarity | sampled exact | similarity | new | whole | yield | CPU s |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
{rows}
"""


def main() -> None:
    """Run the variants asked for that have no row yet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("variants", nargs="*", help="names; all if left out")
    parser.add_argument("--gguf", type=Path, required=True, help="SmolLM2: vocabulary, first embeddings, fluency")
    parser.add_argument("--batches", type=int, default=BATCHES)
    options = parser.parse_args()
    rows = [json.loads(line) for line in RUNS.read_text().splitlines()] if RUNS.exists() else []
    done = {row["name"] for row in rows if row["batches"] == options.batches}
    for name in options.variants or VARIANTS:
        if name not in done:
            rows.append(run(name, options.gguf, options.batches))
            with RUNS.open("a") as file:
                file.write(json.dumps(rows[-1]) + "\n")
            write_table([row for row in rows if row["batches"] == options.batches])
            print(rows[-1], flush=True)


if __name__ == "__main__":
    main()
