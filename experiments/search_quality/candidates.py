"""New candidates for a reader to judge, task by task, and how different they are; ``reading.md`` has verdicts.

python experiments/search_quality/candidates.py bundled tuning --n 30 --out candidates.md
python experiments/search_quality/candidates.py untouched       # once, at the end: see tasks/README.md
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from measures import variety
from written_tasks import written_tasks

import bestprompt.lm as lm
from bestprompt.errors import SearchError
from bestprompt.latent import Autoencoder
from bestprompt.search import build_candidates
from bestprompt.search.filters import Fluency
from bestprompt.tasks import names
from bestprompt.tasks.library import example_prompts

GROUPS = ("bundled", "tuning", "untouched")


def examples_of(group: str) -> dict[str, list[str]]:
    """Example prompts by task."""
    if group == "bundled":
        return {name: list(example_prompts(name)) for name in names()}
    return written_tasks("tuning" if group == "tuning" else "untouched")


def section(task: str, examples: Sequence[str], n: int, base: Autoencoder, fluency: Fluency) -> str:
    """A heading with the measures of variety, and ``n`` candidates with their parents."""
    try:
        pool = build_candidates(examples, len(examples) + n, autoencoder=base, fluency=fluency)
    except SearchError as error:
        return f"## {task}\n\nnothing found: {error}\n"
    found = [i for i, source in enumerate(pool.sources) if source == "latent"]
    new = [pool.prompts[i] for i in found]
    lines = [f"- {pool.prompts[i]}  ← {pool.prompts[pool.parents[i]]}" for i in found]
    facts = (
        f"{len(new)} found, {pool.details['acceptance_rate']:.0%} of the proposals; {variety(new, examples).cells()}"
    )
    return "\n".join([f"## {task}: {facts}", "", *lines, ""])


def main() -> None:
    """Read the command line and write the candidates of each task as soon as they are there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="+", choices=GROUPS)
    parser.add_argument("--tasks", nargs="*", help="only these")
    parser.add_argument("--n", type=int, default=30, help="new candidates of each task")
    parser.add_argument("--model", help="a GGUF file; the embedded default otherwise")
    parser.add_argument("--weights", type=Path, help="a folder with other weights than the shipped ones")
    parser.add_argument("--out", type=Path, default=Path("candidates.md"))
    options = parser.parse_args()
    base, fluency = Autoencoder.pretrained(options.weights), lm.embedded(options.model).mean_logprob
    sections = ["First words, mean likeness of two, share one word away from an example.\n"]
    for group in options.groups:
        for task, examples in examples_of(group).items():
            if not options.tasks or task in options.tasks:
                sections.append(section(task, examples, options.n, base, fluency))
                print(sections[-1], flush=True)
                options.out.write_text("\n".join(sections), encoding="utf-8")


if __name__ == "__main__":
    main()
