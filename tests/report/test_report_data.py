"""The report's numbers, checked as values; the page itself is checked for what a reader needs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.ledger import LOOK, Entry, Ledger
from bestprompt.report import data, write_report
from bestprompt.run import Recommendation, standing
from bestprompt.run.settings import load_settings
from bestprompt.types import Request


def _entry(candidate: int, replication: int, score: float, status: str = "ok") -> Entry:
    request = {"messages": [{"role": "user", "content": f"ask {replication}"}]}
    return Entry(candidate, replication, 0, 0, request, status, output=f"out {score}", score=score)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report") / "run"

    def model(request: Request) -> str:
        text = request.messages[-1].content
        return text.split()[-1] if "<Good>" in text else "no"

    task = bp.Task.from_pairs(
        [(f"w{i}", f"w{i}") for i in range(30)], ["<Good> & plain", "Bad one", "Worse"], scorer="exact"
    )
    bp.optimize(task, bp.lm.function(model), budget=40, ledger=folder)
    return folder


@pytest.fixture(scope="module")
def recommendation(finished: Path) -> Recommendation:
    with Ledger.read(finished) as ledger:
        return standing(ledger)


def test_leaderboard_starts_with_the_winner_and_is_ordered(recommendation: Recommendation) -> None:
    rows = data.leaderboard(recommendation)
    assert rows[0].prompt == recommendation.prompt == "<Good> & plain"
    assert (rows[0].low, rows[0].high) == pytest.approx(np.clip(recommendation.interval, 0, 1))
    assert all(0 <= r.low <= r.high <= 1 for r in rows)
    assert [r.rank for r in rows] == [1, 2, 3]
    assert rows[1].estimate >= rows[2].estimate
    assert sum(r.evaluations for r in rows) == recommendation.calls <= 40
    assert rows[0].tied
    assert not rows[2].tied


def test_progress_follows_the_shrunken_leader() -> None:
    course = data.progress([_entry(0, 0, 1.0), _entry(1, 0, 0.0), _entry(0, 1, 1.0)], 2)
    # After t = 1: (1 + 4·1)/5. After t = 2 the overall mean is 1/2: (1 + 2)/5. After t = 3: (2 + 8/3)/6.
    np.testing.assert_allclose(course.running_best, [1.0, 0.6, (2 + 8 / 3) / 6])
    assert course.candidate.tolist() == [0, 1, 0]


def test_failed_attempts_are_not_evaluations() -> None:
    failed = Entry(0, 0, 0, 0, {"messages": [{"content": "x"}]}, "error", error="503")
    assert data.progress([failed, _entry(0, 0, 1.0)], 1).call.tolist() == [1]


def test_samples_show_right_and_wrong_answers_once() -> None:
    entries = [_entry(0, r, float(r % 2)) for r in range(20)] + [_entry(1, 0, 1.0)]
    good, bad = data.samples(entries, 0, most=3)
    assert [s.score for s in good] == [1.0] * 3
    assert [s.score for s in bad] == [0.0] * 3


def test_the_page_escapes_what_models_and_users_write(
    finished: Path, recommendation: Recommendation, tmp_path: Path
) -> None:
    with Ledger.read(finished) as ledger:
        page = write_report(tmp_path / "page.html", ledger, recommendation).read_text(encoding="utf-8")
    assert "&lt;Good&gt; &amp; plain" in page
    assert "<Good>" not in page.replace("\\u003cGood\\u003e", "")
    for heading in ("Leaderboard", "Where the calls went", "Progress", "Map of the candidates", "Settings"):
        assert heading in page


@pytest.fixture(scope="module")
def refined(world: Any, small_network: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("refined") / "run"
    config = load_settings(
        None,
        {"search.source": "latent", "search.candidates": 10, "budget.calls": 80, "refinement.mode": "m-ucb-r",
         "refinement.additional": 30, "selection.surrogate": "average"},
    )  # fmt: skip
    bp.optimize(world.task, world.lm, config=config, ledger=folder, autoencoder=world.space)
    return folder


def test_predictions_and_turns_are_those_of_the_record(refined: Path) -> None:
    with Ledger.read(refined) as ledger:
        recommendation, looks, entries = standing(ledger), ledger.payloads(LOOK), list(ledger.entries())
    assert recommendation.refinement is not None
    seen, taken = data.predictions(recommendation.refinement), [look for look in looks if look["candidate"] is not None]
    assert seen.predicted.tolist() == [look["mean"] for look in taken]
    for look, observed, n in zip(taken, seen.observed, seen.evaluations, strict=True):
        scores = [e.score for e in entries if e.candidate == look["candidate"]]
        assert (len(scores), np.mean(scores)) == (n, pytest.approx(observed))
    turns = data.turns(recommendation.refinement)
    assert turns.call.tolist() == [look["at"] for look in looks]
    assert turns.refined.tolist() == [look["turn"] == "refine" for look in looks]
    assert turns.selecting.tolist() == [look["selection_value"] for look in looks]


def test_the_page_tells_what_refinement_did(refined: Path, tmp_path: Path) -> None:
    with Ledger.read(refined) as ledger:
        recommendation = standing(ledger)
        page = write_report(tmp_path / "page.html", ledger, recommendation).read_text(encoding="utf-8")
    assert recommendation.refinement is not None
    for said in ("<h2>Refinement</h2>", "Predicted and observed", "Selecting or refining", "Cumulative uncertainty"):
        assert said in page
    text = page.replace("&#39;", "'")
    assert recommendation.refinement.sentence in text
    assert all(r.prompt in text for r in recommendation.refinement.tried)
    assert f"{recommendation.refinement.uncertainty:.4g}" in page
