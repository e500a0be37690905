"""The refiner finds better texts outside the set, respects refusals, always ends, and is a function of the record."""

from __future__ import annotations

import numpy as np
import pytest

from bestprompt.refinement.evidence import first_observations
from bestprompt.refinement.maximize import _ascend
from bestprompt.refinement.refiner import neighbour_distance, training_count
from bestprompt.selection import grown
from bestprompt.selection.belief.noise import shrunken_item_effects
from bestprompt.selection.core.state import empty_state, fold
from bestprompt.types import Observation


@pytest.mark.slow
def test_suggestions_are_new_better_and_agree_with_their_vector(refiner, world, state):
    found = refiner(world).suggest(world.X, state, world.texts, 50)
    assert found is not None
    assert found.text not in world.texts
    assert world.decode(found.vector[None]) == [found.text]
    assert world.truth(found.text) > np.mean([world.truth(t) for t in world.texts])
    assert found.improvement > 0
    assert found.value_per_call > 0
    assert found.std > 0
    assert np.abs(found.vector).max() <= 1.0


def test_a_few_rounds_beat_the_best_of_the_set(refiner, world, state):
    """Ten suggestions, each evaluated once: the best of them lies above the whole set."""
    texts, X, now, machine = list(world.texts), world.X, state, refiner(world)
    for _ in range(10):
        found = machine.suggest(X, now, texts, 50)
        texts, X, now = [*texts, found.text], np.vstack([X, found.vector]), grown(now)
        now = fold(now, [Observation(len(texts) - 1, 0, world.score(found.text, 0))])
    best_of_set = max(world.truth(t) for t in world.texts)
    assert max(world.truth(t) for t in texts[len(world.texts) :]) > best_of_set + 0.02


def test_refused_texts_give_way_to_others_and_refusing_all_ends(refiner, world, state):
    first = refiner(world).suggest(world.X, state, world.texts, 50)
    other = refiner(world, lambda t, p: "broken" if t == first.text else "accepted").suggest(
        world.X, state, world.texts, 50
    )
    assert other is not None
    assert other.text != first.text
    asked = []
    assert (
        refiner(world, lambda t, p: asked.append(t) or "broken", tries=5).suggest(world.X, state, world.texts, 50)
        is None
    )
    assert len(asked) == 5


def test_a_decoder_that_only_repeats_ends_with_nothing(refiner, world, state):
    class Parrot:
        encode = world.encode

        def decode(self, X):
            return [world.texts[0]] * len(X)

    assert refiner(Parrot()).suggest(world.X, state, world.texts, 50) is None


def test_a_suggestion_is_a_function_of_the_record(refiner, world, state):
    """A fresh refiner suggests what one with a history does, also after the set has grown since the last training."""
    veteran = refiner(world, seed=3)
    first = veteran.suggest(world.X, state, world.texts, 50)
    texts, X, now = [*world.texts, first.text], np.vstack([world.X, first.vector]), grown(state)
    now = fold(now, [Observation(len(texts) - 1, 0, 0.9)])
    one, two = veteran.suggest(X, now, texts, 50), refiner(world, seed=3).suggest(X, now, texts, 50)
    assert one.text == two.text
    assert one.mean == two.mean


def test_rounds_do_not_compile_again(refiner, world, state):
    machine = refiner(world)
    machine.suggest(world.X, state, world.texts, 50)
    before = _ascend._cache_size()
    for count in (20, 33, 60):
        machine.suggest(world.X, first_observations(state, count, len(world.texts)), world.texts, 50)
    assert _ascend._cache_size() == before


def test_paper_mode_beats_the_best_single_observation(refiner, world, state):
    machine = refiner(world, mode="paper")
    fitted, data = machine.fitted(world.X, state)
    assert machine._score_to_beat(fitted, data, state) == state.scores.max()
    default = refiner(world)
    assert default._score_to_beat(*default.fitted(world.X, state), state) < state.scores.max()


def test_item_effects_are_taken_out():
    """Half of the candidates saw only easy items; their adjusted means must not look better."""
    rng = np.random.default_rng(0)
    easy = np.repeat([0.25, -0.25], 6)
    state = empty_state(20)
    for n in range(20):
        items = range(6) if n < 10 else range(12)
        state = fold(state, [Observation(n, r, 0.5 + easy[r] + 0.05 * rng.standard_normal()) for r in items])
    adjusted = state.scores - shrunken_item_effects(state)
    gap = adjusted[state.candidates < 10].mean() - adjusted[state.candidates >= 10].mean()
    raw = state.scores[state.candidates < 10].mean() - state.scores[state.candidates >= 10].mean()
    assert raw > 0.2
    assert abs(gap) < 0.05


def test_training_counts_form_a_fixed_grid():
    grid = [training_count(n, 1.35) for n in range(1, 300)]
    assert all(g <= n for n, g in enumerate(grid, start=1))
    assert grid == sorted(grid)
    assert len({g for g in grid if g >= 8}) < 14


def test_neighbour_distance_of_a_lattice():
    rows = np.stack(np.meshgrid(np.arange(4.0), np.arange(4.0)), -1).reshape(-1, 2)
    assert neighbour_distance(rows) == pytest.approx(1.0)
    assert neighbour_distance(np.zeros((1, 2))) == 1.0
