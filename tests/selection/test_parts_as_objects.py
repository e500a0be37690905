"""A surrogate, an acquisition or a maximiser may be an object, in ``bp.select`` and in a recorded run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import bestprompt as bp
from bestprompt.acquisition.functions import UCB
from bestprompt.acquisition.maximize import Argmax
from bestprompt.errors import ConfigError, LedgerError
from bestprompt.kriging.inputs import observed
from bestprompt.ledger import Ledger
from bestprompt.run import standing
from bestprompt.run.setting_tables import SelectionSettings
from bestprompt.run.settings import Settings
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.surrogates.gp import GaussianProcess
from bestprompt.types import Posterior, Request

Z = np.random.default_rng(0).normal(size=(12, 2))


def score(candidate: int, replication: int) -> float:
    chance = 1 / (1 + np.exp(-2 * Z[candidate, 0]))
    return float(np.random.default_rng([candidate, replication]).random() < chance)


def test_an_object_does_what_its_name_does():
    named = bp.select(Z, score, 40, surrogate="gp", acquisition="ucb", maximizer="argmax")
    objects = bp.select(Z, score, 40, surrogate=GaussianProcess(), acquisition=UCB())
    np.testing.assert_array_equal(named.counts, objects.counts)
    assert named.verdict == objects.verdict


@pytest.mark.parametrize("part", ["surrogate", "acquisition", "maximizer"])
def test_what_is_no_part_is_refused(part):
    with pytest.raises(ConfigError, match=f"selection: {part} must be one of auto, .*, or an object"):
        bp.select(Z, score, 9, **{"surrogate": "gp", part: 3})


def test_average_is_an_older_name_of_auto():
    first, second = (bp.select(Z, score, 40, surrogate=name) for name in ("auto", "average"))
    np.testing.assert_array_equal(first.counts, second.counts)
    assert first.verdict == second.verdict


def test_options_are_for_names_only():
    with pytest.raises(ConfigError, match="surrogate_options must go with a surrogate that is named"):
        Selector(Z, SelectorConfig(budget=9, surrogate=GaussianProcess(), surrogate_options={"nugget": True}))


def test_a_maximiser_of_ones_own_is_asked_once_for_each_proposal():
    calls = []

    @dataclass(frozen=True)
    class Counting:
        def __call__(self, score_at, n_candidates, n, rng):
            calls.append(n)
            return Argmax()(score_at, n_candidates, n, rng)

    rec = bp.select(Z, score, 30, surrogate=GaussianProcess(), maximizer=Counting(), batch=5)
    warmed_up = 3
    assert rec.counts.sum() == 30
    assert calls == [1] * (30 - warmed_up)


@dataclass(frozen=True)
class Flat:
    """Every candidate has the mean of all scores, and its own where it was evaluated: a surrogate in ten lines."""

    doubt: float = 0.2

    @property
    def fingerprint(self) -> str:
        return f"flat:{self.doubt}"

    def fit(self, Z, evidence, rng, previous=None):
        return FittedFlat(observed(Z, evidence).centre, self.doubt)


@dataclass(frozen=True)
class FittedFlat:
    centre: float
    doubt: float
    diagnostics: Mapping[str, float] = None  # type: ignore[assignment]

    def __post_init__(self):
        object.__setattr__(self, "diagnostics", {"centre": self.centre})

    def posterior(self, Z):
        return Posterior(np.full(len(Z), self.centre), np.full(len(Z), self.doubt))


def answer(request: Request) -> str:
    return "b" if "well" in request.messages[-1].content else "c"


def optimize(folder: Path, surrogate: object, budget: int = 12):
    task = bp.Task.from_pairs([(f"a{i}", "b") for i in range(8)], ["Do it.", "Do it well."], scorer="exact")
    settings = Settings(selection=SelectionSettings(surrogate=surrogate, batch=2, stop_gain=None))
    return bp.optimize(task, bp.lm.function(answer), config=settings, ledger=folder, budget=budget)


def test_a_run_records_the_objects_fingerprint_and_goes_on_with_the_same_object_only(tmp_path):
    assert optimize(tmp_path / "run", Flat()).prompt == "Do it well."
    with Ledger.open(tmp_path / "run") as ledger:
        assert ledger.facts()["settings"]["selection"]["surrogate"] == "object:flat:0.2"
        with pytest.raises(ConfigError, match="hand the same object in again"):
            standing(ledger)
    assert optimize(tmp_path / "run", Flat(), budget=14).calls == 14
    for other in (Flat(doubt=0.3), "gp"):
        with pytest.raises(LedgerError, match=r"the setting selection\.surrogate"):
            optimize(tmp_path / "run", other, budget=14)


def test_an_object_without_a_fingerprint_cannot_be_recorded(tmp_path):
    with pytest.raises(ConfigError, match="GaussianProcess needs a fingerprint"):
        optimize(tmp_path / "run", GaussianProcess())
    assert not (tmp_path / "run").exists()


def test_thousands_of_candidates_are_said_to_be_modelled_otherwise():
    many = np.random.default_rng(0).normal(size=(2001, 2))
    found = bp.select(many, lambda c, r: 0.5, 8)
    assert "2001 candidates" in found.remark
    assert bp.select(many[:20], lambda c, r: 0.5, 8).remark is None
