"""The example programs run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[1] / "examples"


def test_the_minimal_loop_finds_the_prompt_that_works() -> None:
    program = EXAMPLES / "minimal_loop.py"
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=300)
    prompt, verdict = done.stdout.strip().splitlines()
    assert prompt == "Give the first letter of the word."
    assert verdict.startswith("Candidate 0 scores")
    assert done.stderr == ""
    assert len(program.read_text(encoding="utf-8").splitlines()) <= 60
