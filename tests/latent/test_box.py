import numpy as np
import pytest

from bestprompt.latent import box
from bestprompt.rng import stream


def codes(n: int = 5, d: int = 128) -> np.ndarray:
    s = stream(0, "codes").standard_normal((n, d))
    return s / np.sqrt(np.mean(s**2, axis=1, keepdims=True))


def test_frame_is_tight() -> None:
    F = box.frame_matrix(128)
    assert F.shape == (3584, 128)
    assert pytest.approx(np.eye(128) * 28, abs=1e-9) == F.T @ F


def test_codes_survive_the_round_trip_inside_the_box() -> None:
    s = codes()
    X = box.to_latent(s)
    assert np.abs(X).max() < 1.0
    assert box.to_code(X, 128) == pytest.approx(s)


def test_independent_noise_is_averaged_out() -> None:
    s = codes(200)
    X = box.to_latent(s) + 0.1 * stream(0, "noise").standard_normal((200, 3584))
    reached = box.to_code(X, 128) - s
    assert np.std(reached) == pytest.approx(0.1 / box.SPREAD / np.sqrt(28), rel=0.15)


def test_vectors_on_the_edge_of_the_box_stay_finite() -> None:
    assert np.all(np.isfinite(box.to_code(np.ones((1, 3584)), 128)))
