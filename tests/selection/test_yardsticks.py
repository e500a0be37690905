"""The selection benchmark's yardsticks: those who know the families, and what they know."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

import selection
import selection_oracle
from selection_families import LOOK_ALIKES, look_alikes, make_problem
from selection_table import BLIND, CONNOISSEUR, ORACLE, told_by_sight


def direct_evidence(member, state, precisions, responses):
    """Log density of all observations at once."""
    who, item = state.candidates, member.dispersion.item
    covariance = member.covariance[np.ix_(who, who)] + np.diag(1.0 / precisions)
    covariance += item * (state.items[:, None] == state.items[None])
    off = responses - member.mean[who]
    return -0.5 * (np.linalg.slogdet(covariance)[1] + off @ np.linalg.solve(covariance, off))


@pytest.mark.parametrize("family", ["smooth", "items"])
@pytest.mark.parametrize("apprentice", [False, True])
def test_families_are_weighed_by_the_density_of_all_answers(family, apprentice, monkeypatch):
    differences = []
    quick = selection_oracle._log_evidence

    def both(member, state, precisions, responses):
        found = quick(member, state, precisions, responses)
        differences.append(found - direct_evidence(member, state, precisions, responses))
        return found

    monkeypatch.setattr(selection_oracle, "_log_evidence", both)
    problem = make_problem(family, 8, 0)
    strategy = selection_oracle.connoisseur_strategy(problem, apprentice)
    selection.default_mode(problem, 20, 0, strategy)
    rows = np.reshape(differences, (-1, len(strategy.members)))
    assert len(rows) > 3
    np.testing.assert_allclose(rows, rows[:, :1] @ np.ones((1, rows.shape[1])), atol=1e-8)


def test_who_knows_a_family_by_its_looks_is_the_oracle():
    problem = make_problem("clusters", 12, 1)
    asked = [
        selection.default_mode(problem, 40, 0, strategy)[1].candidates.tolist()
        for strategy in (selection_oracle.connoisseur_strategy(problem), selection_oracle.oracle_strategy(problem))
    ]
    assert asked[0] == asked[1]


def test_the_table_takes_the_oracle_for_the_connoisseur_where_no_family_looks_alike():
    one, other = np.zeros(2), np.ones(2)
    cells = {
        ("clusters", 9, 9): {ORACLE: one},
        ("ill-informative", 9, 9): {ORACLE: one, BLIND: other},
        ("smooth", 9, 9): {ORACLE: one},
    }
    told_by_sight(cells)
    assert cells["clusters", 9, 9][CONNOISSEUR] is one
    assert cells["ill-informative", 9, 9][CONNOISSEUR] is other
    assert CONNOISSEUR not in cells["smooth", 9, 9]
    assert all(look_alikes(family) == group for group in LOOK_ALIKES for family in group)
