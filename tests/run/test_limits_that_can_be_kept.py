"""A limit that nothing could keep is refused before anything is spent, with what is missing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bestprompt as bp
from bestprompt.errors import ConfigError
from bestprompt.ledger import Ledger
from bestprompt.run.preview import preview
from bestprompt.run.settings import load_settings
from bestprompt.types import Completion, Request

TASK = bp.Task.from_pairs([(f"w{n}", f"w{n}") for n in range(6)], ["Repeat.", "Say it again."], scorer="exact")
PRICES = {"m": {"input": 1.0, "output": 1.0}}


class Model:
    """Echoes; counts the tokens of a prompt, or does not."""

    name, fingerprint, batch_size, concurrency = "m", "m", 1, 1

    def __init__(self, prompt_tokens: int = 9) -> None:
        self.asked, self._prompt_tokens = 0, prompt_tokens

    def complete(self, requests: list[Request]) -> list[Any]:
        self.asked += len(requests)
        return [Completion(request.messages[-1].content.split()[-1]) for request in requests]

    def max_prompt_tokens(self, request: Request) -> int:
        return self._prompt_tokens


def settings(**changes: Any) -> Any:
    return load_settings(None, {key.replace("__", "."): value for key, value in changes.items()})


@pytest.mark.parametrize(
    ("changes", "model", "shown"),
    [
        ({"budget__dollars": 1.0}, Model(), '[prices."m"]\ninput = '),
        ({"budget__dollars": 1.0, "prices": {"other": {"input": 1.0}}}, Model(), '[prices."m"]'),
        (
            {"budget__dollars": 1.0, "prices": PRICES, "judge__kind": "openai", "judge__name": "j"},
            Model(),
            '[prices."j"]',
        ),
        ({"budget__tokens": 500}, Model(prompt_tokens=0), "max_prompt_tokens(request)"),
        ({"budget__dollars": 1.0, "prices": PRICES}, Model(prompt_tokens=0), "max_prompt_tokens(request)"),
    ],
)
def test_refused_before_anything_is_spent(tmp_path: Path, changes: Any, model: Model, shown: str) -> None:
    config = settings(**changes)
    with pytest.raises(ConfigError) as refused:
        bp.optimize(TASK, model, ledger=tmp_path / "run", config=config)
    assert shown in str(refused.value)
    assert model.asked == 0
    assert not (tmp_path / "run").exists()
    with pytest.raises(ConfigError):
        preview(TASK, model, config)


def test_a_run_is_not_extended_by_dollars_that_nothing_can_count(tmp_path: Path) -> None:
    model = Model()
    bp.optimize(TASK, model, budget=6, ledger=tmp_path)
    with pytest.raises(ConfigError, match="needs the price of 'm'"):
        bp.optimize(TASK, model, ledger=tmp_path, config=settings(budget__dollars=1.0))
    assert model.asked == 6
    with Ledger.read(tmp_path) as ledger:
        assert ledger.payloads("extended") == []


def test_with_prices_and_counts_the_limits_are_accepted(tmp_path: Path) -> None:
    config = settings(budget__dollars=1.0, budget__tokens=10_000, prices=PRICES, search__source="examples")
    assert bp.optimize(TASK, Model(), ledger=tmp_path, config=config).calls > 0
