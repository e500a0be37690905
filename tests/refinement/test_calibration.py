"""Predictions at new prompts are corrected by the errors that were seen earlier in the run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bestprompt.kriging.inputs import Observed
from bestprompt.refinement import Correction, Prediction
from bestprompt.refinement.calibration import corrected
from bestprompt.run.outside import OutsideLook


def seen(errors, stated=0.075, noise=0.05):
    """Predictions of .5 that were off by ``errors``."""
    k = len(errors)
    past = [Prediction(10 + i, 0.5, stated) for i in range(k)]
    rows = np.arange(10, 10 + k)
    return past, Observed(np.zeros((k, 2)), rows, 0.5 + np.asarray(errors), np.full(k, noise**2))


def test_what_was_too_high_and_too_sure_is_lowered_and_widened():
    rng = np.random.default_rng(0)
    true_sd = 0.17
    errors = -0.067 + np.hypot(true_sd, 0.05) * rng.standard_normal(200)
    found = corrected(*seen(errors), spread=0.2)
    assert found.bias == pytest.approx(-0.067, abs=4 * 0.18 / np.sqrt(200))
    assert found.inflation == pytest.approx(np.hypot(true_sd, 0.05) / np.hypot(0.075, 0.05), rel=0.25)
    mean, std = found(np.array([0.6]), np.array([0.075]))
    assert mean[0] == 0.6 + found.bias
    assert std[0] == found.inflation * 0.075


def test_errors_as_stated_change_little_and_few_change_little_at_once():
    rng = np.random.default_rng(1)
    fair = corrected(*seen(np.hypot(0.075, 0.05) * rng.standard_normal(200)), spread=0.2)
    assert abs(fair.bias) < 4 * 0.09 / np.sqrt(200)
    assert 1.0 <= fair.inflation < 1.2
    one = corrected(*seen([-0.5]), spread=0.2)
    assert -0.5 < one.bias < 0.0
    assert one.inflation <= 3.0


def test_predictions_that_nothing_was_seen_of_say_nothing():
    past, data = seen([-0.3, -0.3])
    assert corrected([], data, 0.2) == Correction()
    assert corrected([replace(p, candidate=99) for p in past], data, 0.2) == Correction()


@pytest.mark.slow
def test_the_refiner_corrects_by_default_and_not_in_the_papers_mode(refiner, world, state):
    past = [Prediction(n, 1.5, 0.01) for n in range(len(world.texts))]
    machine, published = refiner(world), refiner(world, mode="paper")
    plain = machine.suggest(world.X, state, world.texts, 50)
    lowered = machine.suggest(world.X, state, world.texts, 50, past)
    assert plain.correction == published.suggest(world.X, state, world.texts, 50, past).correction == Correction()
    assert lowered.correction.bias < 0.0
    assert lowered.correction.inflation > 1.0
    assert lowered.mean < plain.mean
    assert lowered.std > plain.std


def test_a_look_remembers_what_the_model_itself_predicted():
    look = OutsideLook(8, "refine", 0.1, 0.2, 1, "A prompt.", 0.4, 0.2, 0.1, 7, bias=-0.1, inflation=2.0)
    assert look.uncorrected == Prediction(7, pytest.approx(0.5), 0.1)
    assert OutsideLook(8, "select", 0.1, 0.0).uncorrected is None
