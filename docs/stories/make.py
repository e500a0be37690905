"""The three runs of docs/stories.md, with their reports beside this file.

python docs/stories/make.py LARGER.gguf
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import chdir
from pathlib import Path

import bestprompt as bp
from bestprompt.ledger import Ledger
from bestprompt.report import write_report
from bestprompt.run.settings import load_settings

HERE = Path(__file__).resolve().parent


def tell(name: str, task: bp.Task, lm: object, budget: int, **settings: object) -> None:
    """Runs one story, says how it ended, and writes its report."""
    config = load_settings(
        None,
        {"search.source": "examples", "ideas.mode": "off"}
        | {key.replace("__", "."): value for key, value in settings.items()},
    )
    with tempfile.TemporaryDirectory() as scratch, chdir(scratch):  # the report names the folder of its run
        folder = Path("runs") / name
        rec = bp.optimize(task, lm, budget=budget, config=config, ledger=folder)
        with Ledger.read(folder) as ledger:
            write_report(HERE / f"{name}.html", ledger, rec).chmod(0o644)
    print(f"== {name}: {rec.calls} calls\n{rec.verdict}\n{rec.outlook}")
    for row in rec.leaderboard[:5]:
        print(f"{row.rank} {row.estimate:.3f} {row.evaluations:3d} {row.model or ''} {row.source} {row.prompt}")


def main() -> None:
    """All three."""
    small, larger = bp.lm.embedded(), bp.lm.embedded(path=sys.argv[1])
    prompts = (HERE / "ideas.txt").read_text(encoding="utf-8").splitlines()
    reviews = bp.Task.from_pairs(bp.Task.load(HERE / "reviews.csv").pairs, prompts, name="reviews")
    tell("reviews", reviews, small, 192, selection__incumbent="What is the sentiment?")
    tell("variants", bp.Task.load("first-letter"), small, 240, search__source="latent", search__candidates=60)
    tell("two-models", bp.Task.load("number-words"), [small, larger], 160)


if __name__ == "__main__":
    main()
