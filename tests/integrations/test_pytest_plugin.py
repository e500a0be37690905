"""The fixture ``bestprompt_check``, in a pytest of its own that finds it by its entry point."""

from __future__ import annotations

import subprocess
import sys

import pytest

TESTS = """
from pathlib import Path
import bestprompt as bp
import sys

assert "jax" not in sys.modules, "the plugin loads nothing before it is used"
task = bp.Task.from_pairs([(f"w{i}", f"w{i}") for i in range(30)], scorer="exact")

def answer(request):
    prompt, word = request.messages[-1].content.split("\\n\\n")
    return word if prompt == "Repeat the word." else "no"

lm = bp.lm.function(answer, deterministic=True)

def test_worse(bestprompt_check):
    bestprompt_check(task, lm, incumbent="Repeat the word.", new="Say nothing.")

def test_better(bestprompt_check, tmp_path):
    (tmp_path / "new.txt").write_text("Repeat the word.\\n")
    found = bestprompt_check(task, lm, incumbent="Say nothing.", new=tmp_path / "new.txt", if_undecided="fail")
    assert found.outcome == "not worse"

def test_same(bestprompt_check):
    assert bestprompt_check(task, lm, incumbent="Repeat the word.", new="Repeat the word.").calls == 0
"""


@pytest.mark.slow
def test_a_test_fails_for_a_worse_prompt_alone(tmp_path):
    (tmp_path / "test_prompts.py").write_text(TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=300,
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 2 passed" in done.stdout
    assert "The new prompt is worse than the one in use with probability" in done.stdout
    assert "prompts" in done.stdout
    assert "test_better: The new prompt is not worse than the one in use" in done.stdout
