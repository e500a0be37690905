"""Paper mode and named surrogates."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
from scipy.stats import norm

from bestprompt.errors import ConfigError, SurrogateError
from bestprompt.kriging.variance import variance_model
from bestprompt.selection import Selector, SelectorConfig, chains_in_words, select
from bestprompt.selection.core.state import checked_round, empty_state, fold
from bestprompt.selection.core.views import Noise
from bestprompt.selection.core.warmup import spread_out, warmup_plan
from bestprompt.selection.strategies.bonus import tuned_bonus
from bestprompt.selection.strategies.named import NamedStrategy
from bestprompt.selection.strategies.stand_in import fit
from bestprompt.tuning.tuner import DEFAULT_GRID
from bestprompt.types import Evidence, Observation

# One number of steps in all tests: each other one is another program to compile.
FAST = {"bnn": (("steps", 200),), "vae": (("steps", 200),)}


def easy(n=20):
    Z = np.random.default_rng(0).standard_normal((n, 3))
    truth = 1.0 / (1.0 + np.exp(-2.0 * Z[:, 0]))
    return Z, truth, lambda c, r: float(np.random.default_rng([c, r]).random() < truth[c])


def test_paper_mode_warms_up_then_goes_round_and_selects_the_highest_mean():
    Z, _, score = easy()
    config = SelectorConfig(budget=60, mode="paper", surrogate="blr", warmup="random", warmup_fraction=0.1)
    rec = select(Z, score, 60, config=config)
    # γ(0) = ∞: every candidate is tried before any is repeated after the warm-up.
    assert rec.counts.min() >= 1
    assert sorted(rec.counts)[-2] >= 5
    assert rec.means[rec.candidate] == rec.means.max()


def test_warmup_of_the_paper():
    Z, _, _ = easy(40)
    plan = warmup_plan(Z, SelectorConfig(budget=100, mode="paper"))
    assert plan.size == 10
    assert (np.bincount(plan)[np.unique(plan)] == 5).all()
    given = warmup_plan(Z, SelectorConfig(budget=100, mode="paper", examples=(4, 9), replications=3))
    assert sorted(given.tolist()) == [4, 4, 4, 9, 9, 9]
    assert warmup_plan(Z, SelectorConfig(budget=3, mode="paper")).size == 3


def test_spread_out_rows_are_far_apart_and_distinct():
    Z = np.array([[0.0, 0.0], [0.1, 0.0], [5.0, 0.0], [0.0, 5.0]])
    assert set(spread_out(Z, 3, first=(0,)).tolist()) == {0, 2, 3}
    assert sorted(spread_out(np.zeros((4, 2)), 9).tolist()) == [0, 1, 2, 3]


@pytest.mark.parametrize("name", ["blr", "gp", pytest.param("bnn", marks=pytest.mark.slow)])
def test_named_surrogates_in_default_mode(name):
    Z, truth, score = easy()
    config = SelectorConfig(budget=80, surrogate=name, surrogate_options=FAST.get(name, ()))
    rec = select(Z, score, 80, config=config, batch=16)
    assert truth.max() - truth[rec.candidate] < 0.2
    assert rec.counts.sum() == 80


@pytest.mark.slow
def test_paper_mode_uses_the_network_by_default_and_replays():
    Z, _, score = easy()
    config = SelectorConfig(budget=30, mode="paper", surrogate_options=FAST["bnn"])
    first = select(Z, score, 30, config=config, batch=10)
    again = select(Z, score, 30, config=config, batch=10)
    assert first.verdict == again.verdict
    np.testing.assert_array_equal(first.counts, again.counts)


def test_default_mode_tunes_the_bonus_on_the_twin_when_data_have_doubled():
    Z, _, score = easy(40)
    selector = Selector(Z, SelectorConfig(budget=60, surrogate="gp"))
    state, tuned = selector.initial(), []
    while proposals := selector.ask(state, 4):
        told = [Observation(p.candidate, p.replication, score(p.candidate, p.replication)) for p in proposals]
        state = selector.tell(state, told)
        if state.belief is not None:
            tuned.append((len(state), state.belief.bonus))
    assert sorted({bonus.tuned for _, bonus in tuned}) == [9, 21, 45]
    for seen, bonus in tuned:
        assert bonus.tuned <= seen < 2 * bonus.tuned + 4
        assert (bonus.acquisition.beta.factor, bonus.acquisition.gamma.offset) in {(b, 1.0) for b, _ in DEFAULT_GRID}
        assert bonus.acquisition.gamma.factor < 0.5  # in units of the scores' spread, unlike the paper's 2


def test_a_given_beta_and_paper_mode_are_not_tuned():
    Z, _, score = easy()
    for config in (SelectorConfig(30, surrogate="gp", beta=0.3), SelectorConfig(30, mode="paper", surrogate="blr")):
        selector = Selector(Z, config)
        state = selector.initial()
        for _ in range(4):
            proposals = selector.ask(state, 5)
            told = [Observation(p.candidate, p.replication, score(p.candidate, p.replication)) for p in proposals]
            state = selector.tell(state, told)
        assert state.belief.bonus is None


def test_a_bonus_is_kept_until_data_have_doubled_whatever_the_horizon():
    Z, truth, _ = easy(30)
    state = empty_state(30)
    state = fold(state, checked_round(state, [Observation(c, 0, float(truth[c])) for c in range(5)]))
    noise = Noise(np.full(30, 1e-3), 0.0)
    values = [tuned_bonus(Z, state, noise, left, None, np.random.default_rng(0)) for left in (1, 64)]
    assert all(v.tuned == 5 for v in values)
    assert tuned_bonus(Z, state, noise, 64, values[1], np.random.default_rng(1)) is values[1]


def test_many_candidates_fall_back_to_a_finite_rank_and_sampling():
    Z = np.random.default_rng(0).standard_normal((2500, 3))
    selector = Selector(Z, SelectorConfig(budget=40))
    rec = select(Z, lambda c, r: float(np.tanh(Z[c, 0]) / 2 + 0.5), 40, batch=10)
    assert selector.ask(selector.initial(), 3)
    assert Z[rec.candidate, 0] > 0.5


def first_choice(config, Z, score):
    """The first candidate asked for after the warm-up, and the belief it was asked on."""
    selector = Selector(Z, config)
    state = selector.initial()
    while state.belief is None:
        asked = selector.ask(state, 1)
        state = selector.tell(state, [Observation(p.candidate, p.replication, score(p.candidate, 0)) for p in asked])
    return selector.ask(state, 1)[0].candidate, state.belief


@pytest.mark.parametrize("maximizer", ["argmax", "reinforce"])
@pytest.mark.parametrize("surrogate", ["blr", "gp"])
def test_each_acquisition_decides_what_is_asked_next(surrogate, maximizer):
    Z, truth, _ = easy(12)

    def asked(acquisition, **more):
        config = SelectorConfig(budget=40, surrogate=surrogate, acquisition=acquisition, maximizer=maximizer, **more)
        return first_choice(config, Z, lambda c, r: float(truth[c]))

    chosen, belief = asked("ucb", beta=0.0)
    assert chosen == belief.mean.argmax()
    chosen, belief = asked("ucb", beta=1e6)
    assert chosen == belief.posterior.std.argmax()
    chosen, belief = asked("ei")
    gain, std = belief.mean - belief.mean[belief.evidence.counts > 0].max(), belief.posterior.std
    improvement = gain * norm.cdf(gain / std) + std * norm.pdf(gain / std)
    assert chosen == improvement.argmax()
    chosen, belief = asked("thompson")
    assert chosen in belief.posterior.draws.argmax(axis=1)
    chosen, belief = asked("top-two")
    assert chosen in belief.posterior.draws.argmax(axis=1)


@pytest.mark.parametrize("acquisition", ["m-ucb", "ucb", "ei", "thompson", "top-two"])
def test_every_acquisition_finds_a_good_candidate_and_replays(acquisition):
    Z, truth, score = easy()
    config = SelectorConfig(budget=80, surrogate="gp", acquisition=acquisition)
    first, again = (select(Z, score, 80, config=config, batch=8) for _ in range(2))
    assert truth.max() - truth[first.candidate] < 0.25
    np.testing.assert_array_equal(first.counts, again.counts)


@pytest.mark.parametrize("variance", ["kriging", "linear", "pooled"])
def test_paper_mode_spreads_the_warmup_variances_as_told(variance):
    Z, _, score = easy()
    config = SelectorConfig(budget=40, mode="paper", surrogate="blr", warmup_fraction=0.3, variance=variance)
    selector = Selector(Z, config)
    state = selector.initial()
    while state.belief is None:
        asked = selector.ask(state, 6)
        state = selector.tell(
            state, [Observation(p.candidate, p.replication, score(p.candidate, p.replication)) for p in asked]
        )
    who = state.candidates[:30]
    rows, counts = np.unique(who, return_counts=True)
    variances = np.array([state.scores[:30][who == row].var(ddof=1) for row in rows])
    np.testing.assert_allclose(state.belief.noise.variances, variance_model(variance)(Z, rows, variances, counts))
    assert (np.ptp(state.belief.noise.variances) < 1e-12) == (variance == "pooled")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"acquisition": "eii"}, "acquisition must be one of auto, m-ucb, ucb, ei, thompson, top-two"),
        ({"acquisition": "ei"}, "must go with a surrogate gp, gp-rank, blr, bnn, vae or an object, not 'ei'"),
        ({"surrogate": "gpp"}, "surrogate must be one of auto, average, none, gp, gp-rank, blr, bnn, vae"),
        ({"maximizer": "x"}, "maximizer must be one of"),
        ({"tuning": "x"}, "tuning must be one of grid, ranges"),
        (
            {"surrogate": "gp", "maximizer": "reinforce", "maximizer_options": (("start", 3),)},
            "maximizer reinforce has no option 'start': choose from starts, iterations",
        ),
        ({"variance": "x"}, "variance must be one of"),
        ({"surrogate": "bnn", "surrogate_options": (("layer", (4,)),)}, "has no option 'layer': choose from"),
    ],
)
def test_what_cannot_be_used_is_refused_before_anything_is_asked(settings, message):
    with pytest.raises(ConfigError, match=message):
        Selector(np.zeros((3, 1)), SelectorConfig(budget=5, **settings))


@pytest.mark.slow
def test_a_run_by_hamiltonian_monte_carlo():
    Z, truth, score = easy()
    options = (("inference", "hmc"), ("layers", (4,)), ("n_draws", 40), ("hmc", {"n_chains": 2, "n_warmup": 100}))
    config = SelectorConfig(budget=48, surrogate="bnn", surrogate_options=options, acquisition="top-two")
    selector = Selector(Z, config)
    state = selector.initial()
    while proposals := selector.ask(state, 8):
        told = [Observation(p.candidate, p.replication, score(p.candidate, p.replication)) for p in proposals]
        state = selector.tell(state, told)
    found = selector.recommend(state)
    assert truth.max() - truth[found.candidate] < 0.25
    assert found.diagnostics["acceptance"] > 0.5
    assert "R-hat 1.0" in chains_in_words(found.diagnostics)
    assert "refused" not in chains_in_words(found.diagnostics)


@pytest.mark.slow
def test_a_run_outlives_chains_that_are_refused():
    """Chains that are not adapted cannot mix: variational inference stands in, and the result says so."""
    Z, _, score = easy()
    hmc = {"n_chains": 2, "n_warmup": 1, "n_leapfrog": 1, "target_acceptance": 0.99}
    options = (("inference", "hmc"), ("layers", (4,)), ("n_draws", 40), ("steps", 100), ("hmc", hmc))
    config = SelectorConfig(budget=40, surrogate="bnn", surrogate_options=options, acquisition="top-two")
    selector = Selector(Z, config)
    state = selector.initial()
    while proposals := selector.ask(state, 8):
        told = [Observation(p.candidate, p.replication, score(p.candidate, p.replication)) for p in proposals]
        state = selector.tell(state, told)
    found = selector.recommend(state)
    assert len(state) == 40
    assert found.diagnostics["refusals"] >= 1
    assert found.diagnostics["standing_in"] == 1
    assert "variational inference stands in" in chains_in_words(found.diagnostics)
    assert np.isfinite(list(found.diagnostics.values())).all()


def test_other_fits_that_fail_are_errors_still():
    class Failing:
        def fit(self, Z, evidence, rng, previous=None):
            raise SurrogateError("no")

    evidence = Evidence(np.ones(3, int), np.zeros(3), np.ones(3))
    with pytest.raises(SurrogateError, match="no"):
        fit(Failing(), np.zeros((3, 1)), evidence, np.random.default_rng(0), None, None)


@pytest.mark.parametrize(("mode", "trajectory"), [("paper", "fixed"), ("default", "jittered")])
@pytest.mark.parametrize("hmc", [(), (("hmc", {"n_chains": 2}),)])
def test_paper_mode_has_standard_hmc_whatever_else_is_set(mode, trajectory, hmc):
    config = SelectorConfig(budget=9, mode=mode, surrogate="bnn", surrogate_options=(("inference", "hmc"), *hmc))
    surrogate = NamedStrategy.of(np.zeros((3, 1)), config, "bnn", 3).surrogate
    assert surrogate.hmc.trajectory == trajectory
    assert surrogate.hmc.n_chains == (2 if hmc else 4)


NAMED = ["blr", "gp", "gp-rank", *(pytest.param(name, marks=pytest.mark.slow) for name in ("bnn", "vae"))]


@pytest.mark.parametrize("name", NAMED)
def test_evidence_about_a_candidate_overrides_those_at_the_same_place(name):
    config = SelectorConfig(budget=40, surrogate=name, surrogate_options=FAST.get(name, ()))
    rec = select(np.zeros((6, 2)), lambda c, r: float(c == 4), 40, config=config, batch=4)
    assert rec.candidate == 4
    assert rec.score > 0.6


@pytest.mark.parametrize("budget", [1, 3])
@pytest.mark.parametrize("name", NAMED)
def test_fewer_calls_than_candidates(name, budget):
    Z, _, score = easy()
    config = SelectorConfig(budget=budget, surrogate=name, surrogate_options=FAST.get(name, ()))
    rec = select(Z, score, budget, config=config)
    assert rec.counts.sum() == budget


@pytest.mark.parametrize("mode", ["default", "paper"])
def test_more_may_be_asked_while_the_warmup_is_under_way(mode):
    Z, _, _ = easy()
    selector = Selector(Z, SelectorConfig(budget=60, surrogate="blr", mode=mode, replications=2))
    first = selector.ask(selector.initial(), 30)
    more = selector.ask(selector.initial(), 12, pending=first)
    assert len(more) == 12
    assert not set(first) & set(more)


def test_items_that_are_common_are_taken_out():
    """Candidates that met hard items must not look worse than they are."""
    n, items = 8, np.linspace(-0.4, 0.4, 10)
    level = np.linspace(0.45, 0.55, n)
    config = SelectorConfig(budget=40, pairs="common", surrogate="blr", beta=1.0)
    selector = Selector(np.eye(n), config)
    state = selector.initial()
    met = {c: [(c + k) % 10 for k in range(5)] for c in range(n)}
    told = [Observation(c, r, level[c] + items[r]) for c in range(n) for r in met[c]]
    belief = selector.tell(state, told).belief
    raw = np.array([np.mean([level[c] + items[r] for r in met[c]]) for c in range(n)])
    assert np.abs(belief.evidence.means - level).max() < 0.5 * np.abs(raw - level).max()
    assert belief.noise.item > 0.5 * items.var()


def test_no_candidate_is_looked_at_that_sampling_does_not_ask_for():
    """With sampling, telling and asking cost the same whatever N: the posterior at all candidates is never formed."""
    Z = np.random.default_rng(0).standard_normal((3000, 3))
    selector = Selector(Z, SelectorConfig(budget=40, surrogate="blr", maximizer="reinforce", beta=1.0))
    state = selector.initial()
    for _ in range(3):
        asked = selector.ask(state, 8)
        state = selector.tell(state, [Observation(p.candidate, p.replication, float(Z[p.candidate, 0])) for p in asked])
    assert "posterior" not in vars(state.belief)


def test_memory_of_a_recommendation_is_linear_in_the_candidates():
    def peak(n):
        Z = np.random.default_rng(0).standard_normal((n, 3))
        selector = Selector(Z, SelectorConfig(budget=40, surrogate="blr", beta=1.0))
        state = selector.tell(selector.initial(), [Observation(c, 0, float(Z[c, 0])) for c in range(12)])
        tracemalloc.start()
        selector.recommend(state)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(16_000) < 2.5 * peak(8_000)


def test_the_averaged_kernels_are_weighed_in_pieces_of_bounded_size(monkeypatch):
    Z, _, score = easy()
    whole = select(Z, score, 40, config=SelectorConfig(budget=40, surrogate="average"))
    monkeypatch.setattr("bestprompt.selection.belief.fitting.AT_ONCE", 1000)
    pieces = select(Z, score, 40, config=SelectorConfig(budget=40, surrogate="average"))
    np.testing.assert_array_equal(whole.estimates, pieces.estimates)


@pytest.mark.parametrize(
    "settings",
    [
        {"beta": 1.0},
        {"surrogate": "gp", "beta": -1.0},
        {"surrogate": "gp", "gamma": 1.0},
        {"maximizer": "reinforce"},
        {"surrogate": "gp", "maximizer_options": (("starts", 3),)},
        {"tuning": "ranges"},
        {"surrogate": "gp", "tuning": "ranges", "beta": 1.0},
        {"surrogate_options": (("rank", 3),)},
        {"variance": "pooled"},
        {"mode": "paper", "surrogate": "average"},
        {"warmup": "examples"},
        {"warmup_fraction": float("nan")},
        {"stop_loss": -1.0},
        {"gain_per_call": 0.0},
        {"costs": (1.0, float("nan"), 2.0)},
    ],
)
def test_settings_without_effect_or_sense_are_refused(settings):
    with pytest.raises(ConfigError, match="selection: "):
        Selector(np.zeros((3, 1)), SelectorConfig(budget=5, **settings))


def test_the_warmup_is_what_was_asked_for():
    Z, _, _ = easy(40)

    def plan(**settings):
        return warmup_plan(Z, SelectorConfig(budget=100, examples=(4, 9), **settings)).tolist()

    assert plan(warmup="examples") == [4, 9]
    assert plan()[:2] == [4, 9]
    assert len(plan()) == 9
    assert plan(warmup="space-filling") == spread_out(Z, 9).tolist()
    assert len(plan(warmup="random")) == 9
    assert plan(warmup="random") != plan(warmup="space-filling")
    assert len(plan(mode="paper", warmup="random", warmup_fraction=0.1)) == 20
    assert sorted(plan(mode="paper")) == [4] * 5 + [9] * 5
    whole = warmup_plan(Z, SelectorConfig(budget=100, examples=tuple(range(40))))
    assert warmup_plan(Z, SelectorConfig(budget=7, examples=tuple(range(40)))).tolist() == whole[:7].tolist()


@pytest.mark.parametrize("mode", ["default", "paper"])
@pytest.mark.parametrize("name", NAMED)
def test_rounds_of_a_run_do_not_compile_again(name, mode, compilations):
    Z, _, score = easy(40)
    config = SelectorConfig(budget=120, mode=mode, surrogate=name, surrogate_options=FAST.get(name, ()))
    selector = Selector(Z, config)
    state, counted = selector.initial(), []
    while proposals := selector.ask(state, 8):
        told = [Observation(p.candidate, p.replication, score(p.candidate, p.replication)) for p in proposals]
        state = selector.tell(state, told)
        counted.append(len(compilations))
    assert len(counted) > 12
    assert counted[4] == counted[-1]


def test_options_of_the_maximiser_and_continuous_tuning_reach_a_run():
    Z, truth, score = easy()
    options = (("starts", 2), ("iterations", 5), ("samples", 4), ("baseline", None))
    config = SelectorConfig(
        40, surrogate="gp", maximizer="reinforce", maximizer_options=options, tuning="ranges", seed=3
    )
    selector = Selector(Z, config)
    state = selector.initial()
    while proposals := selector.ask(state, 8):
        told = [Observation(p.candidate, p.replication, score(p.candidate, p.replication)) for p in proposals]
        state = selector.tell(state, told)
    assert state.belief.bonus.acquisition.beta.factor not in {b for b, _ in DEFAULT_GRID}
    assert truth.max() - truth[selector.recommend(state).candidate] < 0.3
