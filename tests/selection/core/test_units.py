import numpy as np
import pytest

from bestprompt.errors import ConfigError
from bestprompt.execution import Questions
from bestprompt.run.parts import selector_config
from bestprompt.run.settings import Settings
from bestprompt.selection import Selector, SelectorConfig
from bestprompt.selection.core.units import in_one_unit
from bestprompt.types import Observation

RISING = np.array([0.1, 1.0, 10.0, 100.0])


def coordinates(n: int = 30) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((n, RISING.size))


def test_principal_components_are_kept():
    Z = coordinates()
    Z = (Z - Z.mean(axis=0)) * RISING[::-1]
    assert in_one_unit(Z) is Z
    centred = coordinates() - coordinates().mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    np.testing.assert_array_equal(in_one_unit(left * values), left * values)


def test_units_of_other_coordinates_do_not_matter():
    Z = coordinates()
    np.testing.assert_allclose(in_one_unit(Z * RISING), in_one_unit(Z * RISING**2))
    np.testing.assert_allclose(in_one_unit(Z * RISING).std(axis=0), 1.0)


@pytest.mark.parametrize("Z", [np.zeros((5, 3)), np.arange(5.0)[:, None], np.zeros((1, 2)), np.zeros((4, 0))])
def test_coordinates_that_say_nothing_stay(Z):
    np.testing.assert_array_equal(in_one_unit(Z), Z)


def test_a_constant_coordinate_stays_constant():
    Z = np.column_stack([np.full(30, 7.0), coordinates() * RISING])
    scaled = in_one_unit(Z)
    assert np.isfinite(scaled).all()
    assert np.ptp(scaled[:, 0]) == 0.0


def asked(Z: np.ndarray, **settings: object) -> list[int]:
    """Candidates that a run on answers of our own asks."""
    selector = Selector(Z, SelectorConfig(budget=40, **settings))  # type: ignore[arg-type]
    state = selector.initial()
    while proposals := selector.ask(state):
        state = selector.tell(state, [Observation(p.candidate, p.replication, p.candidate % 2) for p in proposals])
    return state.candidates.tolist()


def test_kernels_of_a_selector_know_no_units():
    Z = coordinates()
    one, other = (Selector(Z * units, SelectorConfig(budget=40)) for units in (RISING, RISING**2))
    np.testing.assert_allclose(one._strategy.shapes.correlations, other._strategy.shapes.correlations)
    alike = Selector(Z * RISING, SelectorConfig(budget=40, units="alike"))
    assert not np.allclose(alike._strategy.shapes.correlations, one._strategy.shapes.correlations, atol=0.01)


def test_where_units_are_alike_nothing_is_divided():
    Z = coordinates()
    assert asked(Z * RISING[::-1]) == asked(Z * RISING[::-1], units="alike")
    with pytest.raises(ConfigError, match="units must be one of unknown, alike"):
        asked(Z, units="metres")


def test_a_run_keeps_the_coordinates_it_made():
    assert selector_config(Settings(), Questions(10, "never"), 50).units == "alike"
