"""Runs in MLflow, in a real store in a file."""

from __future__ import annotations

import json
import warnings

import pytest

import bestprompt as bp
from bestprompt.ledger import Ledger

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    mlflow = pytest.importorskip("mlflow", reason="make test-integrations installs it")
    from bestprompt.integrations.mlflow import LiveScores, log_run

pytestmark = pytest.mark.filterwarnings("default")
TASK = bp.Task.from_pairs([(f"w{i}", f"w{i}") for i in range(20)], ["Say it.", "Say nothing."], scorer="exact")


def model():
    def answer(request):
        prompt, word = request.messages[-1].content.split("\n\n")
        return word if prompt == "Say it." else "no"

    return bp.lm.function(answer, deterministic=True, concurrency=3)


@pytest.fixture
def store(tmp_path):
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    mlflow.create_experiment("prompts", artifact_location=(tmp_path / "artifacts").as_uri())
    mlflow.set_experiment("prompts")
    yield mlflow.MlflowClient()
    mlflow.set_tracking_uri(before)


def test_a_run_is_logged_with_its_scores_prompt_and_report(store, tmp_path):
    found = bp.optimize(TASK, model(), budget=16, ledger=tmp_path / "r")
    run = store.get_run(log_run(tmp_path / "r"))
    assert run.info.status == "FINISHED"
    assert run.data.params["budget.calls"] == "16"
    assert run.data.params["task"] == "custom"
    assert run.data.metrics["score"] == pytest.approx(found.score)
    assert run.data.metrics["score_low"] == pytest.approx(found.interval[0])
    assert run.data.tags["verdict"] == found.verdict[:500]
    means = store.get_metric_history(run.info.run_id, "mean_score_so_far")
    assert [each.step for each in means] == list(range(1, found.calls + 1))
    with Ledger.read(tmp_path / "r") as ledger:
        scores = [entry.score for entry in ledger.entries()]
    assert means[-1].value == pytest.approx(sum(scores) / len(scores))
    here = mlflow.artifacts.download_artifacts(run_id=run.info.run_id, dst_path=str(tmp_path / "down"))
    assert (tmp_path / "down" / "prompt.txt").read_text() == found.prompt_to_use + "\n"
    assert "<html" in (tmp_path / "down" / "report.html").read_text()
    assert json.loads((tmp_path / "down" / "result.json").read_text())["prompt"] == found.prompt
    assert here


def test_scores_are_logged_while_a_run_goes_on_and_to_the_active_run(store, tmp_path):
    with mlflow.start_run() as active:
        found = bp.optimize(TASK, model(), budget=16, ledger=tmp_path / "r", observer=LiveScores())
        assert log_run(tmp_path / "r", scores=False) == active.info.run_id
    live = store.get_metric_history(active.info.run_id, "single_score")
    assert len(live) == found.calls
