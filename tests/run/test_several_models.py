"""Prompts on several models: the best combination under one budget, who answered on the record, replay, and prices."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.errors import ConfigError, LedgerError
from bestprompt.ledger import Ledger
from bestprompt.ledger.schema import MIGRATIONS
from bestprompt.lm import Several
from bestprompt.rng import stream
from bestprompt.run import standing
from bestprompt.run.settings import Settings, load_settings
from bestprompt.search import embed_candidates
from bestprompt.search.across import across
from bestprompt.types import LanguageModel, Request

QUALITY = {
    ("Do it well.", "large"): 0.95,
    ("Do it.", "large"): 0.5,
    ("Do it well.", "small"): 0.3,
    ("Do it.", "small"): 0.35,
}
EQUAL = dict.fromkeys(QUALITY, 0.9) | {("Do it.", "large"): 0.2, ("Do it.", "small"): 0.2}
PRICES = {"large": {"input": 10.0, "output": 30.0}, "small": {"input": 0.1, "output": 0.3}}


def models(quality: dict[tuple[str, str], float]) -> list[LanguageModel]:
    def answering(name: str) -> LanguageModel:
        def answer(request: Request) -> str:
            prompt, word = request.messages[-1].content.split("\n\n")
            assert request.model == "", "a model does not see who else is asked"
            return word if stream(0, "m", prompt, word).random() < quality[prompt, name] else "wrong"

        return bp.lm.function(answer, name=name)

    return [answering("large"), answering("small")]


def task() -> bp.Task:
    return bp.Task.from_pairs([(f"w{i}", f"w{i}") for i in range(60)], ["Do it well.", "Do it."], scorer="exact")


def test_the_best_combination_is_found_and_who_answered_is_on_record(tmp_path: Path) -> None:
    rec = bp.optimize(task(), models(QUALITY), budget=120, ledger=tmp_path)
    assert (rec.prompt, rec.model) == ("Do it well.", "large")
    assert rec.calls <= 120
    assert "on large" in rec.verdict
    with Ledger.read(tmp_path) as ledger:
        stored = ledger.candidates()
        assert stored is not None
        assert set(zip(stored.prompts, stored.models, strict=True)) == set(QUALITY)
        assert all(e.request["model"] == stored.models[e.candidate] for e in ledger.entries())
        assert standing(ledger).as_dict() == rec.as_dict()
    assert set(bp.calls(tmp_path)["model"]) == {"large", "small"}
    assert {row.model for row in rec.leaderboard} == {"large", "small"}
    assert rec.table()["model"][0] == "large"


@pytest.mark.slow
def test_a_run_goes_on_where_it_stopped_and_only_with_the_same_models(tmp_path: Path) -> None:
    everything = Settings.model_validate({"selection": {"stop_gain": 0}})
    whole = bp.optimize(task(), models(QUALITY), budget=80, config=everything, ledger=tmp_path / "whole")
    bp.optimize(task(), models(QUALITY), budget=40, config=everything, ledger=tmp_path / "parts")
    again = bp.optimize(task(), models(QUALITY), budget=80, config=everything, ledger=tmp_path / "parts")
    assert again.calls == whole.calls == 80
    with pytest.raises(LedgerError, match="the model changed since"):
        bp.optimize(task(), models(QUALITY)[0], budget=80, config=everything, ledger=tmp_path / "parts")


@pytest.mark.slow
def test_of_equals_the_cheapest_is_recommended() -> None:
    config = Settings.model_validate({"prices": PRICES})
    rec = bp.optimize(task(), models(EQUAL), budget=240, config=config)
    assert rec.prompt == "Do it well."
    rows = {(row.prompt, row.model): row for row in rec.leaderboard}
    large, small = rows["Do it well.", "large"], rows["Do it well.", "small"]
    assert large.cost is not None
    assert small.cost is not None
    assert large.cost > 50 * small.cost
    assert rec.cheapest is not None
    assert rec.cheapest.model == "small"
    assert rec.model == "small" or "cheapest that cannot be told from it" in rec.verdict


def test_one_budget_in_dollars_covers_all_models(tmp_path: Path) -> None:
    priced = Settings.model_validate({"prices": PRICES, "budget": {"calls": 200, "dollars": 0.002}})
    rec = bp.optimize(task(), [Counting(m) for m in models(QUALITY)], config=priced, ledger=tmp_path)
    assert 0.0 < rec.dollars <= 0.002
    unpriced = Settings.model_validate({"prices": {"large": PRICES["large"]}, "budget": {"dollars": 0.002}})
    with pytest.raises(ConfigError, match="needs the price of 'small'"):
        bp.optimize(task(), [Counting(m) for m in models(QUALITY)], config=unpriced)


class Counting:
    """A model that knows how long a prompt is, as a budget in dollars needs it."""

    batch_size, concurrency = 1, 1

    def __init__(self, inner: LanguageModel) -> None:
        self.complete, self.name, self.fingerprint = inner.complete, inner.name, inner.fingerprint

    def max_prompt_tokens(self, request: Request) -> int:
        return 20


def test_models_need_names_of_their_own() -> None:
    one = models(QUALITY)[0]
    with pytest.raises(ConfigError, match="a name each"):
        Several([one, one])
    with pytest.raises(ConfigError, match="a name each"):
        Several([one])


def test_coordinates_say_which_prompt_and_which_model() -> None:
    prompts = embed_candidates(["Sort the words.", "Order the words.", "Reverse the list."])
    both = across(prompts, ("a", "b"))
    assert both.prompts == prompts.prompts * 2
    assert both.models == ("a",) * 3 + ("b",) * 3
    D = prompts.Z.shape[1]
    np.testing.assert_allclose(both.Z[3:, :D], prompts.Z)
    apart = np.linalg.norm(both.Z[0] - both.Z[3])
    between = np.sqrt(np.mean([np.sum((prompts.Z[i] - prompts.Z[j]) ** 2) for i in range(3) for j in range(3)]))
    assert apart == pytest.approx(between)  # the root mean square over all ordered pairs, a prompt with itself included
    assert across(prompts, ()) is prompts


def test_a_file_may_name_several_models(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(
        '[[model]]\nkind = "openai"\nname = "x"\n[[model]]\nkind = "embedded"\npath = "y.gguf"\n'
    )
    settings = load_settings(tmp_path / "a.toml")
    assert [m.name or str(m.path) for m in settings.models] == ["x", str(tmp_path / "y.gguf")]
    (tmp_path / "b.toml").write_text('[[model]]\ntemperature = 0.5\n[[model]]\nkind = "openai"\nname = "x"\n')
    with pytest.raises(ConfigError, match="same temperature"):
        load_settings(tmp_path / "b.toml")
    (tmp_path / "c.toml").write_text('[[model]]\n[[model]]\nkind = "openai"\n')
    with pytest.raises(ConfigError, match=r"model\.name is missing"):
        load_settings(tmp_path / "c.toml")


def test_a_record_from_before_opens_and_goes_on(tmp_path: Path, written_by_version: Any) -> None:
    """The table of candidates is made anew when a former record is opened for writing, with all that refers to it."""
    lm, stop = models(QUALITY)[0], Settings.model_validate({"selection": {"stop_gain": 0}})
    first = bp.optimize(task(), lm, budget=30, config=stop, ledger=tmp_path)
    written_by_version(tmp_path, 2)
    with Ledger.read(tmp_path) as ledger:  # read as it is
        assert standing(ledger).as_dict() == first.as_dict()
    again = bp.optimize(task(), lm, budget=40, config=stop, ledger=tmp_path)
    assert again.calls == 40
    with closing(sqlite3.connect(tmp_path / "ledger.db")) as db:
        assert db.execute("PRAGMA foreign_key_check").fetchall() == []
        assert db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            db.execute("DELETE FROM candidate")
