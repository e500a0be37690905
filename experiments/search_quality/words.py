"""Does every decode consist of attested words? Writes ``words.md`` beside this file.

Around many kinds of examples, points are drawn by the steps of both modes, by steps twice as long and anywhere in the
box; Dec (greedy) and the beam's readings are cut at spaces, and what stands between marks is looked up in the list of
words, the shipped ones and the examples'. The list is a plain set: the automaton that decoding goes by is not asked.

    python experiments/search_quality/words.py --points 64     # about a minute of one core per set of examples
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from measures import Start
from other_tasks import ODD_EXAMPLES, OTHER_TASKS
from written_tasks import written_tasks

from bestprompt.errors import SearchError
from bestprompt.latent import Autoencoder
from bestprompt.rng import stream
from bestprompt.search import perturb
from bestprompt.tasks import names
from bestprompt.tasks.library import example_prompts
from bestprompt.types import FloatArray

HERE = Path(__file__).parent
LAWS = ("default", "twice as long", "paper", "anywhere")


def points(start: Start, law: str, n: int, rng: np.random.Generator) -> FloatArray:
    """(n, D~) points of one law, those outside the box moved to its faces."""
    parents = rng.integers(len(start.X), size=n)
    if law == "anywhere":
        return rng.uniform(-1.0, 1.0, (n, start.X.shape[1]))
    if law == "paper":
        moved = start.X[parents] + perturb.sample_steps(start.X, n, rng)
    else:
        moved = start.default_points(parents, 0.8 if law == "default" else 1.6, rng)
    return np.clip(moved, -1.0, 1.0)


def count(base: Autoencoder, name: str, examples: Sequence[str], n: int) -> tuple[str, Counter[str]]:
    """A table row: decodes and readings, those with a word that is not listed; and these words."""
    start = Start.of(base, examples)
    lexicon, missing, cells = start.autoencoder.lexicon, Counter[str](), list[str]()
    assert lexicon is not None
    for law in LAWS:
        X = points(start, law, n, stream(0, "words", name, law))
        texts = [*start.autoencoder.decode(X), *(text for found in start.autoencoder.hypotheses(X) for text in found)]
        strange = [lexicon.unattested(text) for text in texts]
        missing.update(word for found in strange for word in found)
        cells.append(f"{sum(map(bool, strange))} of {len(texts):,}")
    exact = start.autoencoder.decode(start.X) == start.examples
    return f"| {name} | {'yes' if exact else 'no'} | " + " | ".join(cells) + " |", missing


def main() -> None:
    """Read the command line and count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=64, help="of each law")
    parser.add_argument("--only", nargs="*", help="names of tasks or kinds of examples")
    options = parser.parse_args()
    base = Autoencoder.pretrained()
    kinds = {name: list(example_prompts(name)) for name in names()} | OTHER_TASKS | written_tasks("tuning")
    rows, missing = list[str](), Counter[str]()
    for name, examples in (kinds | ODD_EXAMPLES).items():
        if options.only and name not in options.only:
            continue
        try:
            row, found = count(base, name, [text for text in examples if base.fits(text)], options.points)
        except (SearchError, ValueError) as error:
            row, found = f"| {name} | refused: {error} | | | | |", Counter()
        rows.append(row)
        missing += found
        print(row, flush=True)
    (HERE / "words.md").write_text(
        REPORT.format(
            points=options.points,
            rows="\n".join(rows),
            weights=base.identity[:12],
            missing=", ".join(missing) or "none",
        ),
        encoding="utf-8",
    )


REPORT = """# Words of decodes that no list has

Made by `python experiments/search_quality/words.py --points {points}` (`{weights}`). Greedy decodes and the beam's
readings of {points} points of each law; *default* with λ = 0.8. `exact`: whether the examples come back unchanged,
whatever characters they have.

| examples | exact | default | twice as long | paper | anywhere |
| --- | --- | --- | --- | --- | --- |
{rows}

Words that are not listed: {missing}.
"""

if __name__ == "__main__":
    main()
