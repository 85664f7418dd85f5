"""Entries beyond what their features reach to."""

import numpy as np
import pytest
import scipy.sparse
from omfb.core.factor.winsorize import REACH, believed, reach_of

from omfb.core.factor.config import Settings
from omfb.core.factor.init import start
from omfb.core.factor.step import learn
from omfb.core.factor.whiten import whitened


@pytest.fixture
def model(rng):
    """Twelve stations that report one weather, and eight features of nothing but noise."""
    weather = rng.normal(size=(600, 1))
    X = np.hstack([weather + 0.3 * rng.normal(size=(600, 12)), rng.normal(size=(600, 8))])
    X[rng.random(X.shape) < 0.05] = np.nan
    return learn(start(X, Settings(n_components=4), 0), X)[0]


def in_units(model, row):
    return (row - model.center) / model.noise


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize("feature", [0, 15])
def test_an_entry_alone_is_held_back(model, rng, feature, kind):
    row = np.full((1, 20), 0.1)
    row[0, feature] = -1e4
    values = believed(model, kind(row)).entries.values
    assert values[feature] == pytest.approx(-reach_of(model)[feature], rel=0.05)
    others = np.arange(20) != feature
    np.testing.assert_allclose(values[others], in_units(model, row)[0, others])


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_array])
def test_what_all_stations_report_is_believed(model, kind):
    row = np.full((1, 20), 0.1)
    row[0, :12] = 40.0
    assert (in_units(model, row)[0, :12] > reach_of(model)[:12]).all()
    np.testing.assert_allclose(believed(model, kind(row)).entries.values, in_units(model, row)[0])


def test_what_is_near_stays_to_the_last_bit(model, rng):
    rows = rng.normal(size=(50, 20))
    assert np.abs(in_units(model, rows)).max() < REACH
    np.testing.assert_array_equal(believed(model, rows).values, whitened(model, rows).values)
