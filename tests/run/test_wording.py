"""How much a score depends on the wording: from a record alone, in Python and on the command line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bestprompt as bp
from bestprompt.cli.app import app
from bestprompt.errors import ConfigError, LedgerError
from bestprompt.ledger import Ledger
from bestprompt.run import load_settings, standing, wording_uncertainty

pytestmark = pytest.mark.usefixtures("small_network")


@pytest.fixture(scope="module")
def folder(world: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("run")
    config = load_settings(None, {"search.source": "latent", "search.candidates": 12, "refinement.mode": "off"})
    bp.optimize(world.task, world.lm, budget=40, config=config, ledger=where, autoencoder=world.space)
    return where


def test_the_best_prompts_with_what_is_unknown_and_what_the_wording_decides(folder: Path) -> None:
    with Ledger.read(folder) as ledger:
        found = wording_uncertainty(ledger, top=4)
        wider = wording_uncertainty(ledger, top=4, scale=1.0)
        assert found[0].prompt == standing(ledger).prompt
        assert wording_uncertainty(ledger, top=4) == found
    assert len(found) == 4
    assert all(each.of_model > 0 and each.std > 0 for each in found)
    assert sum(each.of_wording for each in wider) > sum(each.of_wording for each in found) > 0


def test_on_the_command_line_as_a_table_as_json_and_as_a_file(folder: Path, tmp_path: Path) -> None:
    run, file = CliRunner(), tmp_path / "wording.csv"
    shown = run.invoke(app, ["wording", str(folder), "--top", "3"])
    assert "reworded" in shown.stdout
    as_json = json.loads(run.invoke(app, ["wording", str(folder), "--top", "3", "--json"]).stdout)
    assert run.invoke(app, ["wording", str(folder), "--top", "3", "--output", str(file)]).exit_code == 0
    with file.open(newline="", encoding="utf-8") as stored:
        rows = list(csv.DictReader(stored))
    assert [row["prompt"] for row in rows] == [row["prompt"] for row in as_json]
    assert [float(row["of_wording"]) for row in rows] == [row["of_wording"] for row in as_json]


def test_what_cannot_be_said_is_refused_with_the_reason(folder: Path, world: Any, tmp_path: Path) -> None:
    with Ledger.read(folder) as ledger, pytest.raises(ConfigError, match="scale in"):
        wording_uncertainty(ledger, scale=0.0)
    bp.optimize(world.task, world.lm, budget=20, ledger=tmp_path, candidates=["Copy the token below."])
    with Ledger.read(tmp_path) as ledger, pytest.raises(LedgerError, match="no latent vectors"):
        wording_uncertainty(ledger)
