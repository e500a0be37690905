"""How good are the candidates of the search stage? Writes ``results.md`` beside this file.

For every bundled task, from its example prompts:
  * yield of single steps from the examples, at the default step and at the paper's full covariance;
  * the set of N = 200: time, share of distinct prompts, similarity to the parent, and twenty random members.
Besides, the share of held-out instructions (at most twenty words) that come back exactly, before any fine-tuning, and
what becomes of few or odd examples. ``measures.py`` says what is counted.

    python experiments/search_quality/run.py            # some ten minutes on two cores
    python experiments/search_quality/run.py --model SmolLM2.gguf --weights folder --decodes decodes.txt
    python experiments/search_quality/run.py --steps    # the table that λ was chosen by, on other tasks → steps.md
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from measures import Start, Yield, judge, on_its_task, variety, within_range
from other_tasks import ODD_EXAMPLES, OTHER_TASKS

import bestprompt.lm as lm
from bestprompt.choices import DEFAULT_BOUNDS
from bestprompt.errors import SearchError
from bestprompt.latent import Autoencoder
from bestprompt.latent.corpus.grammar import Grammar
from bestprompt.latent.corpus.texts import sentences
from bestprompt.latent.training.corpus_groups import SampledCorpus
from bestprompt.rng import stream
from bestprompt.search import build_candidates, perturb
from bestprompt.search.filters import Fluency, plain, word_similarity
from bestprompt.search.growth import INITIAL_STEP
from bestprompt.tasks import names
from bestprompt.tasks.library import example_prompts

HERE = Path(__file__).parent
CORPUS, HELD_OUT = HERE.parents[1] / "corpus", 400
POINTS, READ_PER_TASK, ODD_N = 50, 17, 30
STEPS = (0.5, 0.8, 1.1, 1.5)
LAWS = ("default", "default, greedy", "paper")


def held_out_rows(base: Autoencoder) -> Iterable[tuple[str, list[bool]]]:
    """Table rows of held-out reconstruction, and which texts came back."""
    groups = {
        "grammar": sentences(Grammar.bundled(), 300, stream(77, "unseen")),
        "sampled": SampledCorpus.of(CORPUS).held_out[:HELD_OUT],
        "sampled formerly": SampledCorpus.of(CORPUS).older_held_out,
    }
    for name, texts in groups.items():
        short = [text for text in texts if len(text.split()) <= 20 and base.fits(text)]
        full = base.with_words_of(short)  # as a user's own prompts would be
        bare = replace(full, polishing=0)
        alone = bare.decode(bare.encode(short))
        again = full.decode(full.encode(short))
        first, exact = ([a == b for a, b in zip(short, back, strict=True)] for back in (alone, again))
        likeness = np.mean([word_similarity(a, b) for a, b in zip(short, again, strict=True)])
        row = f"| {name} | {len(short)} | {np.mean(first):.1%} | {np.mean(exact):.1%} | {likeness:.3f} |"
        print(row, flush=True)
        yield row, exact


def yields_of(start: Start, task: str, fluency: Fluency) -> dict[str, Yield]:
    """The decodes of ``POINTS`` single steps by each law."""
    rng = stream(0, "search-quality", task)
    parents = rng.integers(len(start.X), size=POINTS)
    moved = start.default_points(parents, INITIAL_STEP, rng)
    far = start.X[parents] + perturb.sample_steps(start.X, POINTS, rng)
    used, taken = start.used(moved, parents, fluency)
    texts = {
        "default": (used, moved, taken),
        "default, greedy": (start.autoencoder.decode(moved), moved, None),
        "paper": (start.autoencoder.decode(far), far, None),
    }
    return {
        law: judge(found, start.examples, perturb.inside_box(X), task, fluency, chosen)
        for law, (found, X, chosen) in texts.items()
    }


def set_row(base: Autoencoder, task: str, n: int, fluency: Fluency, tuning: float) -> tuple[str, list[str]]:
    """The table row of one set of ``n``, and twenty of its members."""
    examples = list(example_prompts(task))
    tuned = base.fine_tune(examples)
    exact = float(np.mean([a == b for a, b in zip(tuned.decode(tuned.encode(examples)), examples, strict=True)]))
    wall, cpu = time.perf_counter(), time.process_time()
    try:
        pool = build_candidates(examples, n, autoencoder=base, fluency=fluency)
    except SearchError as error:
        return f"| {task} | {exact:.0%} | {tuning:.0f} | failed: {error} | | | | | | | | | |", []
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    latent = [text for text, source in zip(pool.prompts, pool.sources, strict=True) if source == "latent"]
    fluent = np.mean(within_range(latent, fluency))
    distinct = len({plain(text) for text in pool.prompts}) / len(pool.prompts)
    low, high = DEFAULT_BOUNDS
    row = (
        f"| {task} | {exact:.0%} | {tuning:.0f} | {wall:.0f} ({cpu:.0f}) | {distinct:.0%} |"
        f" {pool.details['median_similarity']:.2f} in ({low}, {high}) | {fluent:.0%} |"
        f" {np.mean([on_its_task(text, task) for text in latent]):.0%} | {pool.details['acceptance_rate']:.0%} |"
        f" {sum(pool.details['explained_variance']):.0%} | {variety(latent, examples).cells()} |"
    )
    rng = stream(0, "search-quality", task, "samples")
    return row, [latent[i] for i in rng.choice(len(latent), size=min(20, len(latent)), replace=False)]


def odd_row(base: Autoencoder, name: str, examples: Sequence[str], fluency: Fluency) -> str:
    """What becomes of examples that are few or unlike the training corpus."""
    try:
        pool = build_candidates(examples, ODD_N, autoencoder=base, fluency=fluency)
    except SearchError as error:
        return f"| {name} | refused: {error} |"
    found = [text for text, source in zip(pool.prompts, pool.sources, strict=True) if source == "latent"]
    return f"| {name} | {len(found)} found, e.g. " + "; ".join(f"“{text[:80]}”" for text in found[:3]) + " |"


def measure(base: Autoencoder, fluency: Fluency, n: int, out: Path, decodes: Path | None, tasks: Sequence[str]) -> None:
    """Measure everything and write the report to ``out``; it is rewritten after every row."""
    yields: dict[str, dict[str, Yield]] = {}
    tuning: dict[str, float] = {}
    sets, samples, odd, held_out = list[str](), list[str](), list[str](), list[tuple[str, list[bool]]]()

    def write() -> None:
        means = {law: np.mean([found[law].good.mean() for found in yields.values()]) for law in LAWS}
        taken = np.concatenate([found["default"].taken for found in yields.values()])
        good = np.concatenate([found["default"].good for found in yields.values()])
        rows = [f"| {task} | {law} | {found[law].cells()} |" for task, found in yields.items() for law in LAWS]
        out.write_text(
            REPORT.format(
                weights=base.identity[:12], n=n, points=POINTS, step=INITIAL_STEP, default=means["default"],
                greedy=means["default, greedy"], paper=means["paper"], odd_n=ODD_N,
                share=np.mean([np.mean(exact) for _, exact in held_out]) if held_out else np.nan,
                taken=taken.mean(), good_if_taken=good[taken].mean() if taken.any() else 0.0,
                held_out="\n".join(row for row, _ in held_out), yields="\n".join(rows), sets="\n".join(sets),
                odd="\n".join(odd), samples="\n\n".join(samples),
            ),
            encoding="utf-8",
        )  # fmt: skip

    for task in tasks:
        began = time.perf_counter()
        base.fine_tune(example_prompts(task))
        tuning[task] = time.perf_counter() - began
        yields[task] = yields_of(Start.of(base, example_prompts(task)), task, fluency)
        print(task, *(f"{law}: {found.cells()}" for law, found in yields[task].items()), sep="\n", flush=True)
        write()
        if decodes is not None:
            decodes.write_text(decode_lines(yields), encoding="utf-8")
    for task in tasks:
        row, members = set_row(base, task, n, fluency, tuning[task])
        sets.append(row)
        samples.append("\n".join([f"## {task}\n", *(f"- {text}" for text in members)]))
        print(row, flush=True)
        write()
    for row in held_out_rows(base):
        held_out.append(row)
        write()
    for name, examples in ODD_EXAMPLES.items():
        odd.append(odd_row(base, name, examples, fluency))
        print(odd[-1], flush=True)
        write()


def decode_lines(yields: dict[str, dict[str, Yield]]) -> str:
    """Some decodes of each task with the automatic verdict, for a reader."""
    lines = [
        f"{task}\t{'good' if good else 'bad'}\t{'taken' if taken else 'not taken'}\t{text}"
        for task, found in ((task, laws["default"]) for task, laws in yields.items())
        for text, good, taken in list(zip(found.texts, found.good, found.taken, strict=True))[:READ_PER_TASK]
    ]
    return "\n".join(lines) + "\n"


def measure_steps(base: Autoencoder, fluency: Fluency, out: Path) -> None:
    """Yield on tasks that are not bundled, by step factor λ."""
    rows = []
    for task, examples in OTHER_TASKS.items():
        start = Start.of(base, examples)
        for step in STEPS:
            rng = stream(1, "search-steps", task)
            parents = rng.integers(len(examples), size=POINTS)
            moved = start.default_points(parents, step, rng)
            used, taken = start.used(moved, parents, fluency)
            found = judge(used, examples, perturb.inside_box(moved), task, fluency, taken)
            rows.append(f"| {task} | {step} | {found.cells()} |")
            print(rows[-1], flush=True)
            out.write_text(STEP_TABLE.format(weights=base.identity[:12], rows="\n".join(rows)), encoding="utf-8")


def main() -> None:
    """Read the command line and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="a GGUF file; the embedded default otherwise")
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--weights", type=Path, help="a folder with other weights than the shipped ones")
    parser.add_argument("--tasks", nargs="*", default=names(), help="only these")
    parser.add_argument("--out", type=Path, default=HERE / "results.md")
    parser.add_argument(
        "--decodes", type=Path, help="write some 100 decodes, with the verdict, to this file for reading"
    )
    parser.add_argument("--steps", action="store_true", help="only the yield by step factor, on other tasks")
    options = parser.parse_args()
    fluency = lm.embedded(options.model).mean_logprob
    with tempfile.TemporaryDirectory() as folder:  # an empty cache, so that the time of fine-tuning is measured
        os.environ["BESTPROMPT_CACHE"] = folder
        base = Autoencoder.pretrained(options.weights)
        if options.steps:
            measure_steps(base, fluency, HERE / "steps.md")
        else:
            measure(base, fluency, options.n, options.out, options.decodes, options.tasks)


STEP_TABLE = """# Yield by step factor, on tasks that are not bundled

Made by `python experiments/search_quality/run.py --steps` (weights `{weights}`). The factor λ of `default` mode is
chosen here.

| task | λ | inside the box | distinct | whole | fluent | on-task | all of these |
| --- | --- | --- | --- | --- | --- | --- | --- |
{rows}
"""

REPORT = """# Quality of the search stage

Made by `make search-quality` on the shipped weights (`{weights}`). What is counted is explained at the top of
`measures.py`, a reader's verdicts in `reading.md`.

Mean yield over the tasks: **{default:.0%}** of the decodes used at the default step (bar: 50 %), **{paper:.0%}** at the
paper's full covariance (bar: 25 %). At {taken:.0%} of the points the search stage takes a reading, and
{good_if_taken:.0%} of those count; where it takes none, the likeliest reading is counted, mostly the parent. Greedy
decoding at the default step, where the next sentence is most often the old one, would give {greedy:.0%}. Held-out
instructions returned exactly: **{share:.0%}** (bar: 90 %).

## Held-out instructions of at most twenty words, no fine-tuning

`encoder` is the encoder alone, `exact` with the refinement of codes that `encode` makes.

| source | sentences | encoder | exact | mean similarity |
| --- | --- | --- | --- | --- |
{held_out}

## Yield of {points} single steps from the example prompts

`default`: covariance shrunk towards that of similar corpus sentences, λ = {step}, the decodes that are used;
`default, greedy`: Dec at the same points; `paper`: exact sample covariance, λ = 1, greedy. Shares of all points.

| task | step | inside the box | distinct | whole | fluent | on-task | all of these |
| --- | --- | --- | --- | --- | --- | --- | --- |
{yields}

## Sets of {n}, `default` mode with the fluency filter

Examples exact after fine-tuning; seconds of fine-tuning and of growing (in brackets: of processor time); similarity to
the parent; new prompts within the corpus's own range of fluency, judged without the examples, and those with the
on-task words; share of proposals accepted; variance kept by D = 50; variety: first words, mean likeness of two new
prompts, share of them that are one word away from an example.

| task | exact | tuning, s | growing, s | distinct | median similarity | fluent | on-task | accepted | variance | \
first words | likeness | one edit |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
{sets}

The first task pays for the compilation of fine-tuning. Every new prompt has passed the search's own filter, which
weighs a text after the examples (`search/context_fluency.py`); `fluent` is another judge of the same texts, without
examples.

## Few or odd examples, sets of {odd_n}

| examples | outcome |
| --- | --- |
{odd}

# Twenty random candidates per task

{samples}
"""

if __name__ == "__main__":
    main()
