"""A run whose report is looked at, with hostile texts; the model is a function."""

from __future__ import annotations

from pathlib import Path

import pytest

import bestprompt as bp
from bestprompt.rng import stream
from bestprompt.run.settings import Settings
from bestprompt.types import Request

HOSTILE = "Name <b>it</b> </script><script>document.title='owned'</script> \x1b[31m \u2028 & {{ 7*7 }}"
LONG = "You are a careful reader.\nRepeat the word below.\n" + "Write nothing else, neither before nor after it. " * 20
QUALITY = {"Repeat the word.": 0.9, "Say the word.": 0.6, "Word?": 0.3, HOSTILE: 0.4, LONG.strip(): 0.75}


def model(request: Request) -> str:
    """Right as often as the prompt deserves; an answer holds markup."""
    prompt, word = request.messages[-1].content.rsplit("\n\n", 1)
    right = stream(1, "model", prompt, word).random() < QUALITY[prompt]
    return f"{word if right else 'nothing'} <img src=x onerror=\"document.title='owned'\">"


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with an incumbent, held-out pairs and texts that would act if they could."""
    folder = tmp_path_factory.mktemp("report") / "run"
    task = bp.Task.from_pairs([(f"w{i} <i>", f"w{i} <i>") for i in range(40)], list(QUALITY), scorer="contains")
    config = Settings.model_validate(
        {"selection": {"incumbent": "Word?", "stop_gain": 0}, "holdout": 0.2, "prices": {"m": {"input": 1.0}}}
    )
    bp.optimize(task, bp.lm.function(model, name="m"), budget=120, ledger=folder, config=config)
    return folder


@pytest.fixture(scope="session")
def hostile() -> str:
    """A prompt of that run that would act if it could."""
    return HOSTILE


@pytest.fixture(scope="session")
def long() -> str:
    """A prompt of that run that does not fit into a line."""
    return LONG.strip()
