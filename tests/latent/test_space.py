import numpy as np
import pytest

from bestprompt.latent import SoftSpace
from bestprompt.rng import stream


def test_distances_are_kept_when_the_rank_fits() -> None:
    X = stream(0, "x").standard_normal((7, 30))
    space = SoftSpace.fit(X)
    Z = space.to_soft(X)
    assert Z.shape == (7, 6)
    assert np.linalg.norm(Z[0] - Z[1]) == pytest.approx(np.linalg.norm(X[0] - X[1]))
    assert space.to_latent(Z) == pytest.approx(X)
    assert space.explained.sum() == pytest.approx(1.0)


def test_wanted_dimension_limits_and_orders_the_variance() -> None:
    X = stream(0, "x").standard_normal((20, 10)) * np.arange(1, 11)
    space = SoftSpace.fit(X, dim=4)
    assert space.components.shape == (4, 10)
    assert np.all(np.diff(space.explained) < 0)
    assert space.components @ space.components.T == pytest.approx(np.eye(4))


@pytest.mark.parametrize("X", [np.ones((1, 5)), np.ones((4, 5))])
def test_no_variance_leaves_one_zero_coordinate(X: np.ndarray) -> None:
    space = SoftSpace.fit(X)
    assert space.to_soft(X).tolist() == [[0.0]] * len(X)
