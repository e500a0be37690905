"""How good are the candidates of the search stage? Writes ``results.md`` beside this file.

For every bundled task, from its example prompts:
  * yield of single steps from the examples, at the default step and at the paper's full covariance: the
    share of decodes that are distinct, whole, fluent and on-task;
  * the set of N = 200: time, share of distinct prompts, similarity to the parent, and twenty random members.
Besides, the share of held-out instructions (at most twenty words) that come back exactly, before any fine-tuning.

*Fluent* means a mean log-probability per token, under the embedded language model, within the range of the training
corpus (``filters.fluency_floor``); *on-task* means that the decode contains one of the words listed per task below,
which is generous: reading the samples is part of the measurement.

    python experiments/search_quality/run.py            # about ten minutes on one core
    python experiments/search_quality/run.py --model SmolLM2.gguf --n 200
"""

from __future__ import annotations

import argparse
import os
import re
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import bestprompt.lm as lm
from bestprompt.errors import SearchError
from bestprompt.latent import Autoencoder
from bestprompt.latent.autoencoder import WEIGHTS
from bestprompt.latent.pretrain.corpus import sentences, split_sampled
from bestprompt.latent.pretrain.grammar import Grammar
from bestprompt.rng import stream
from bestprompt.search import build_candidates, perturb
from bestprompt.search.filters import DEFAULT_BOUNDS, Fluency, fluency_floor, looks_whole, plain, word_similarity
from bestprompt.search.growth import INITIAL_STEP
from bestprompt.tasks import names
from bestprompt.tasks.library import example_prompts
from bestprompt.types import FloatArray

HERE = Path(__file__).parent
PROPOSALS = 50
ON_TASK = {
    "word-sorting": "sort order alphabet arrang organi dictionary rank list",
    "first-letter": "letter initial start begin character spell abbreviat first",
    "largest-animal": "animal creature beast species larg big heav size weigh mass",
    "number-words": "number word digit numeral spell english figure pronounc written quantity",
    "rhymes": "rhym sound ending pronunciation last letters match similar",
    "counting-objects": "count many total number sum add quantit objects items things",
}


@dataclass(frozen=True)
class Yield:
    """Shares of the proposals, each among all of them."""

    inside: float
    distinct: float
    whole: float
    fluent: float
    on_task: float
    all_of_them: float
    texts: list[str]


def measure_yield(ae: Autoencoder, examples: Sequence[str], moved: FloatArray, task: str, fluency: Fluency) -> Yield:
    """Judge the decodes of ``moved`` (k, D~)."""
    texts = ae.decode(moved)
    known = {plain(text) for text in examples}
    distinct, seen = [], set(known)
    for text in texts:
        distinct.append(bool(plain(text)) and plain(text) not in seen)
        seen.add(plain(text))
    whole = [looks_whole(text) for text in texts]
    values = fluency([text or "." for text in texts])
    fluent = [bool(v >= fluency_floor(text)) for v, text in zip(values, texts, strict=True)]
    on_task = [on_its_task(text, task) for text in texts]
    inside = perturb.inside_box(moved)
    table = np.array([inside, distinct, whole, fluent, on_task])
    shares = [float(row.mean()) for row in table]
    return Yield(
        *shares, float(table.all(axis=0).mean()), [t for t, ok in zip(texts, table.all(axis=0), strict=True) if ok]
    )


def on_its_task(text: str, task: str) -> bool:
    """Whether one of the task's words occurs."""
    return any(re.search(rf"\b{stem}", text.lower()) for stem in ON_TASK[task].split())


def held_out_lines(ae: Autoencoder) -> tuple[str, float]:
    """The table of held-out reconstruction and the share over all."""
    sampled = split_sampled(WEIGHTS / "sampled.txt")[1]
    groups = {"grammar": sentences(Grammar.bundled(), 300, stream(77, "unseen")), "sampled from the model": sampled}
    rows, shares = [], []
    for name, texts in groups.items():
        short = [text for text in texts if len(text.split()) <= 20 and ae.fits(text)]
        back = ae.decode(ae.encode(short))
        exact = float(np.mean([a == b for a, b in zip(short, back, strict=True)]))
        likeness = float(np.mean([word_similarity(a, b) for a, b in zip(short, back, strict=True)]))
        shares.append(exact)
        rows.append(f"| {name} | {len(short)} | {exact:.1%} | {likeness:.2f} |")
    return "\n".join(rows), float(np.mean(shares))


def task_report(base: Autoencoder, task: str, n: int, fluency: Fluency) -> tuple[list[str], str]:
    """Three table rows (yield twice, set) and the section with samples."""
    examples = list(example_prompts(task))
    began = time.perf_counter()
    tuned = base.fine_tune(examples)
    tuning = time.perf_counter() - began
    X, rng = tuned.encode(examples), stream(0, "search-quality", task)
    exact = float(np.mean([a == b for a, b in zip(tuned.decode(X), examples, strict=True)]))
    rows, sections = [], [f"## {task}\n"]
    parents = rng.integers(len(X), size=PROPOSALS)
    laws = {
        "default": INITIAL_STEP * perturb.shrunk_steps(X, perturb.shrinkage(X), PROPOSALS, rng),
        "paper": perturb.sample_steps(X, PROPOSALS, rng),
    }
    for name, steps in laws.items():
        found = measure_yield(tuned, examples, X[parents] + steps, task, fluency)
        shares = (found.inside, found.distinct, found.whole, found.fluent, found.on_task, found.all_of_them)
        rows.append(f"| {task} | {name} | " + " | ".join(f"{share:.0%}" for share in shares) + " |")
    began = time.perf_counter()
    try:
        pool = build_candidates(examples, n, autoencoder=base, fluency=fluency)
    except SearchError as error:
        rows.append(f"| {task} | {exact:.0%} | {tuning:.0f} | failed: {error} | | | | | |")
        return rows, "\n".join([*sections, str(error)])
    seconds = time.perf_counter() - began
    distinct = len({plain(text) for text in pool.prompts}) / len(pool.prompts)
    low, high = DEFAULT_BOUNDS
    median = pool.details["median_similarity"]
    related = np.mean([on_its_task(text, task) for text in pool.prompts])
    rows.append(
        f"| {task} | {exact:.0%} | {tuning:.0f} | {seconds:.0f} | {distinct:.0%} | {median:.2f} in ({low}, {high}) |"
        f" {related:.0%} | {pool.details['acceptance_rate']:.0%} | {sum(pool.details['explained_variance']):.0%} |"
    )
    latent = [text for text, source in zip(pool.prompts, pool.sources, strict=True) if source == "latent"]
    chosen = rng.choice(len(latent), size=min(20, len(latent)), replace=False)
    sections += [f"- {latent[i]}" for i in chosen]
    return rows, "\n".join(sections)


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file; the embedded default otherwise")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--weights", type=Path, help="a folder with other weights than the shipped ones")
    parser.add_argument("--out", type=Path, default=HERE / "results.md")
    options = parser.parse_args()
    fluency = lm.embedded(options.model).mean_logprob
    with tempfile.TemporaryDirectory() as folder:  # an empty cache, so that the time of fine-tuning is measured
        os.environ["BESTPROMPT_CACHE"] = folder
        measure(Autoencoder.pretrained(options.weights), fluency, options.n, options.out)


def measure(base: Autoencoder, fluency: Fluency, n: int, out: Path) -> None:
    """Measure everything and write the report to ``out``."""
    held_out, share = held_out_lines(base)
    print(held_out, flush=True)
    yields, sets, sections = [], [], []
    for task in names():
        rows, section = task_report(base, task, n, fluency)
        print(*rows, sep="\n", flush=True)
        yields += rows[:2]
        sets += rows[2:]
        sections.append(section)
    mean = {
        name: np.mean([float(row.split("|")[-2].strip(" %")) for row in yields if f"| {name} |" in row])
        for name in ("default", "paper")
    }
    out.write_text(
        REPORT.format(
            weights=base.identity[:12], n=n, proposals=PROPOSALS, step=INITIAL_STEP, default=mean["default"],
            paper=mean["paper"], share=share, held_out=held_out, yields="\n".join(yields), sets="\n".join(sets),
            samples="\n\n".join(sections),
        ),
        encoding="utf-8",
    )  # fmt: skip


REPORT = """# Quality of the search stage

Made by `make search-quality` on the shipped weights (`{weights}`). What the words mean is explained at the top of
`run.py`.

Mean yield over the tasks: **{default:.0f} %** at the default step, **{paper:.0f} %** at the paper's full covariance
(bars: 50 % and 25 %). Held-out instructions returned exactly: **{share:.0%}** (bar: 90 %).

## Held-out instructions of at most twenty words, no fine-tuning

| source | sentences | exact | mean similarity |
| --- | --- | --- | --- |
{held_out}

## Yield of {proposals} single steps from the example prompts

`default`: Ledoit–Wolf covariance, step factor {step}; `paper`: exact sample covariance, factor 1. Shares of all
proposals.

| task | step | inside the box | distinct | whole | fluent | on-task | all of these |
| --- | --- | --- | --- | --- | --- | --- | --- |
{yields}

## Sets of {n}, `default` mode with the fluency filter

Examples exact after fine-tuning; similarity to the parent; share of proposals accepted; variance kept by D = 50.

| task | examples exact | tuning, s | growing, s | distinct | median similarity | on-task | accepted | variance kept |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
{sets}

Seconds are wall time on one busy core; read them as orders of magnitude.

# Twenty random candidates per task

{samples}
"""

if __name__ == "__main__":
    main()
