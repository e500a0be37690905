"""``auto``: a network's kernel joins the average where it predicts better, and only there."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.auto import FEWEST, KINDS, AutoBelief, AutoStrategy, Choice, _restricted, targets_of
from bestprompt.selection.averaged import AveragedStrategy
from bestprompt.selection.kernels import candidate_shapes
from bestprompt.selection.noise import estimate_noise
from bestprompt.selection.state import checked_round, empty_state, fold
from bestprompt.types import Observation

N, D, SEEN = 160, 20, 120


def evaluated(surface, seed, noise=0.01):
    """Candidates, truth with mean .5 and sd .2, and a state in which the first ``SEEN`` were evaluated twice."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((N, D)) / np.sqrt(1.0 + np.arange(D))
    truth = surface(Z, rng)
    truth = 0.5 + 0.2 * (truth - truth.mean()) / truth.std()
    told = [Observation(c, r, float(truth[c] + np.sqrt(noise) * rng.normal())) for c in range(SEEN) for r in range(2)]
    state = empty_state(N)
    return Z, truth, fold(state, checked_round(state, told))


def one_direction(Z, rng):
    """A bent step along one direction among twenty: no kernel of distances can know which."""
    return np.tanh(Z @ rng.standard_normal(D))


def all_directions(Z, rng):
    """A rough function of distance alone."""
    squares = ((Z[:, None] - Z[None]) ** 2).sum(-1)
    return np.linalg.cholesky(np.exp(-squares / (0.25 * np.median(squares))) + 1e-8 * np.eye(N)) @ rng.normal(size=N)


def strategy(Z, seed=0):
    return AutoStrategy(AveragedStrategy(candidate_shapes(Z), common=False), Z, seed)


def error(belief, truth):
    return np.sqrt(np.mean((belief.mean - truth)[SEEN:] ** 2)) / truth[SEEN:].std()


@pytest.mark.slow
def test_a_network_is_taken_where_it_truly_wins_and_improves_the_belief():
    """In most of six problems, and on average by three standard errors (14 problems: a ratio of .74, sd .11)."""
    ratios, taken = [], []
    for seed in range(2, 8):
        Z, truth, state = evaluated(one_direction, seed)
        auto = strategy(Z)
        belief = auto.updated(None, state)
        taken.append(belief.choice.kind in KINDS)
        assert belief.choice.compared == 2 * SEEN
        ratios.append(error(belief, truth) / error(auto.averaged.updated(None, state), truth))
    assert np.mean(taken) > 0.5
    assert np.mean(ratios) + 3 * np.std(ratios, ddof=1) / np.sqrt(len(ratios)) < 1


def test_the_gaussian_processes_stay_where_distance_is_all_there_is():
    """A margin of one standard error lets a network in now and then, and evidence then gives it next to no weight.

    A belief that moves by less than a tenth of its own std has its expected squared error raised by at most a
    hundredth.
    """
    for seed in (1, 2):
        Z, _, state = evaluated(all_directions, seed)
        auto = strategy(Z)
        belief, averaged = auto.updated(None, state), auto.averaged.updated(None, state)
        assert np.mean((belief.mean - averaged.mean) ** 2) < 0.1**2 * np.mean(np.diag(averaged.covariance))


def test_without_a_network_the_belief_is_the_average(monkeypatch):
    monkeypatch.setattr("bestprompt.selection.auto.MARGIN", np.inf)
    Z, _, state = evaluated(one_direction, 2)
    auto = strategy(Z)
    belief = auto.updated(None, state)
    assert belief.choice.kind is None
    assert belief.choice.compared == 2 * SEEN
    np.testing.assert_array_equal(belief.mean, auto.averaged.updated(None, state).mean)


def test_comparisons_wait_for_candidates_and_then_for_twice_the_data():
    Z, _, state = evaluated(one_direction, seed=1)
    early = _restricted(state, np.arange(FEWEST - 1))
    assert not Choice().due(early)
    assert Choice().due(_restricted(state, np.arange(FEWEST)))
    assert not Choice(compared=SEEN + 1).due(state)
    assert Choice(compared=SEEN).due(state)
    assert not Choice(open=()).due(state)
    before = strategy(Z[: FEWEST - 1]).updated(None, early)
    assert isinstance(before, AutoBelief)
    assert before.choice == Choice()


def test_targets_are_means_or_least_squares_means():
    rng, items = np.random.default_rng(0), np.array([0.4, -0.4, 0.0, 0.2])
    told = [Observation(c, r, c / 10 + items[r] + 0.01 * rng.normal()) for c in range(6) for r in range(1 + c % 4)]
    state = empty_state(6)
    state = fold(state, checked_round(state, told))
    plain = targets_of(state, common=False)
    np.testing.assert_allclose(plain.values, state.means)
    paired = targets_of(state, common=True)
    # (XᵀV⁻¹X)⁻¹XᵀV⁻¹y, where two scores on one item share its variance.
    noise = estimate_noise(state, common=True)
    X = np.eye(6)[state.candidates]
    shared = noise.item * (state.replications[:, None] == state.replications)
    weighted = np.linalg.solve(np.diag(noise.variances[state.candidates]) + shared, X).T
    centre = state.scores.mean()
    expected = centre + np.linalg.solve(weighted @ X, weighted @ (state.scores - centre))
    np.testing.assert_allclose(paired.values, expected)
    np.testing.assert_allclose(paired.variances, 1 / np.diag(weighted @ X))
    # What the items have to do with it, up to .4, is mostly gone; the scores' own noise is far smaller than either.
    errors = [np.std(targets.values - np.arange(6) / 10) for targets in (paired, plain)]
    assert errors[0] < errors[1]


@pytest.mark.parametrize("pairs", ["common", "independent"])
def test_a_run_replays_with_its_comparisons(pairs):
    Z, truth, _ = evaluated(one_direction, seed=3)
    config = SelectorConfig(budget=90, pairs=pairs, seed=5, examples=tuple(range(FEWEST)))

    def run():
        selector = Selector(Z, config)
        state = selector.initial()
        while proposals := selector.ask(state, 20):
            scores = [np.random.default_rng([p.candidate, p.replication]).random() for p in proposals]
            told = [(p, float(u < truth[p.candidate])) for p, u in zip(proposals, scores, strict=True)]
            state = selector.tell(state, [Observation(p.candidate, p.replication, s) for p, s in told])
        return state, selector.recommend(state)

    (state, first), (_, again) = run(), run()
    assert state.belief.choice.compared == FEWEST  # and not again before 96
    assert first.verdict == again.verdict
    np.testing.assert_array_equal(first.counts, again.counts)
