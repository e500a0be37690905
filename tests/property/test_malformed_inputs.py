"""Malformed inputs of every kind end well or in one of our own errors; ``make torture`` tries thousands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks" / "torture"))

from inputs import KINDS, attempt, furnish


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("outside") / "inside"
    made.mkdir()
    furnish(made)
    return made


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", KINDS)
def test_only_our_own_errors(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-fuzz-0123456789")

    @settings(max_examples=12, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @given(KINDS[kind][0])
    def one(drawn: Any) -> None:
        assert attempt(kind, drawn, folder)

    one()
