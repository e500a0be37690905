"""The example programs run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def output(name: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name)], capture_output=True, text=True, check=True, timeout=300
    )
    assert done.stderr == ""
    return done.stdout.strip().splitlines()


@pytest.mark.slow
def test_the_minimal_loop_finds_the_prompt_that_works() -> None:
    prompt, verdict = output("minimal_loop.py")
    assert prompt == "Give the first letter of the word."
    assert verdict.startswith("Candidate 0 scores")
    assert len((EXAMPLES / "minimal_loop.py").read_text(encoding="utf-8").splitlines()) <= 60


@pytest.mark.slow
def test_choosing_a_prompt() -> None:
    *_, chosen, how_sure = output("choose_a_prompt.py")
    assert chosen == "use: Is this review positive or negative? Answer with one word."
    assert how_sure.startswith("score ")


@pytest.mark.slow
def test_walking_the_latent_space() -> None:
    place, *_, soft_prompts = output("walk_the_latent_space.py")
    assert place.endswith("inside the box: True | read back: True")
    assert soft_prompts.startswith("soft prompts: (12, ")
