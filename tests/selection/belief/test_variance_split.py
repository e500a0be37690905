"""Variance components: unbiased exactly, whatever the pattern, and honest about what cannot be told apart."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.errors import TaskError
from bestprompt.selection.belief.variance_split import variance_parts, variance_shares


def design(seed=0, answers=(1, 3), judgements=(1, 3), prompts=5, items=7, kept=0.7):
    """A table with gaps: (prompt, item, answer) of every judgement."""
    rng, rows = np.random.default_rng(seed), []
    for n in range(prompts):
        for m in range(items):
            if rng.random() < kept:
                for a in range(rng.integers(*answers, endpoint=True)):
                    rows += [(n, m, a)] * int(rng.integers(*judgements, endpoint=True))
    return np.array(rows).T


def effects(prompt, item, answer):
    """One 0/1 matrix (t, levels) per component; the covariance of scores is Σ σ² U Uᵀ."""

    def indicator(*labels):
        groups = np.unique(np.stack(labels), axis=1, return_inverse=True)[1]
        return np.eye(groups.max() + 1)[groups]

    return {
        "prompt": indicator(prompt),
        "item": indicator(item),
        "interaction": indicator(prompt, item),
        "model": indicator(prompt, item, answer),
        "judge": np.eye(prompt.size),
    }


def expected(rows, component, **flags):
    """E of every estimate when only ``component`` varies, with variance 1: exact, as estimates are quadratic forms."""
    columns = effects(*rows)[component].T
    parts = [variance_parts(*rows, column, **flags) for column in columns]
    return {name: sum(part[name] for part in parts) for name in parts[0]}


@pytest.mark.parametrize("component", ["prompt", "item", "interaction", "model", "judge"])
@pytest.mark.parametrize("seed", [0, 1])
def test_every_component_is_estimated_without_bias_from_any_pattern(component, seed):
    found = expected(design(seed), component)
    assert found == pytest.approx({name: float(name == component) for name in found}, abs=1e-9)


@pytest.mark.parametrize(
    ("answers", "judgements", "flags", "names"),
    [
        ((1, 1), (1, 1), {}, {"prompt", "item", "interaction + model + judge"}),
        ((1, 3), (1, 1), {}, {"prompt", "item", "interaction", "model + judge"}),
        ((1, 1), (1, 3), {}, {"prompt", "item", "interaction + model", "judge"}),
        ((1, 1), (1, 1), {"random_judge": False}, {"prompt", "item", "interaction + model"}),
        ((1, 3), (1, 1), {"random_judge": False}, {"prompt", "item", "interaction", "model"}),
        ((1, 1), (1, 3), {"random_model": False}, {"prompt", "item", "interaction", "judge"}),
        ((1, 1), (1, 1), {"random_model": False, "random_judge": False}, {"prompt", "item", "interaction"}),
    ],
)
def test_what_was_not_repeated_is_reported_together(answers, judgements, flags, names):
    rows = design(3, answers, judgements)
    for component in ("prompt", "item", "interaction", "model", "judge"):
        if flags.get(f"random_{component}", True):
            found = expected(rows, component, **flags)
            assert set(found) == names
            assert found == pytest.approx({n: float(component in n.split(" + ")) for n in found}, abs=1e-9)


@pytest.mark.slow
def test_simulated_scores_split_as_they_were_made():
    rows, rng = design(0, (1, 2), (1, 2), prompts=60, items=60), np.random.default_rng(1)
    made = {"prompt": 0.02, "item": 0.08, "interaction": 0.03, "model": 0.05, "judge": 0.01}
    scores = sum(np.sqrt(made[name]) * u @ rng.standard_normal(u.shape[1]) for name, u in effects(*rows).items())
    found = variance_parts(*rows, scores)
    # A variance seen through k draws has a relative error of sqrt(2/k): 60 prompts and items, a thousand of the rest.
    for name, part in made.items():
        assert found[name] == pytest.approx(part, rel=3 * np.sqrt(2 / (60 if name in ("prompt", "item") else 1000)))
    assert variance_shares(found) == pytest.approx({k: v / sum(found.values()) for k, v in found.items()})


def test_no_variance_and_too_little_data():
    rows = design()
    assert all(share == 0.0 for share in variance_shares(variance_parts(*rows, np.full(rows.shape[1], 0.5))).values())
    one = np.zeros(4, dtype=int)
    with pytest.raises(TaskError, match="two prompts and two items"):
        variance_parts(one, np.arange(4), one, np.ones(4))
    with pytest.raises(TaskError, match="one prompt, item and answer"):
        variance_parts(one, one, one, np.ones(3))
    with pytest.raises(TaskError, match="met some of the same items"):
        variance_parts(np.arange(4), np.arange(4), one, np.ones(4))
