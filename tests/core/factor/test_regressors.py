"""Known columns: what they add to the others is learned beside seasons and autoregressions."""

import numpy as np
import pytest

from omfb.core.factor.clock import even_clock
from omfb.core.factor.seasons import known_effects

from ...reference_factor import regression_with_ar_errors


def _series(n=600, m=3, phi=0.7, seed=0):
    """Autocorrelated series with the effects of two of three known columns."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 3))
    Z[:, 1] = np.repeat(rng.random(n // 12) < 0.2, 12)
    E = rng.normal(size=(n, m))
    for t in range(1, n):
        E[t] = phi * E[t - 1] + np.sqrt(1.0 - phi**2) * E[t]
    B = rng.normal(size=(m, 3))
    B[:, 2] = 0.0
    return E + Z @ B.T, Z, B


def _effects(W, Z):
    return known_effects(W, even_clock(len(W)), 1.0, np.empty(0), False, 0.005, Z)


def test_effects_are_those_of_a_regression_with_autocorrelated_errors():
    W, Z, B = _series(2004)
    W[np.random.default_rng(1).random(W.shape) < 0.2] = np.nan
    found = _effects(W, Z)
    for i in range(W.shape[1]):
        naive = regression_with_ar_errors(W[:, i], Z[:, :2])
        np.testing.assert_allclose(found[i, :2], naive, atol=0.03)
    np.testing.assert_allclose(found[:, :2], B[:, :2], atol=0.2)


def test_columns_that_explain_nothing_are_switched_off():
    shares = [np.all(_effects(*_series(seed=seed)[:2])[:, 2] == 0.0) for seed in range(12)]
    assert np.mean(shares) > 0.5
    largest = [np.abs(_effects(*_series(seed=seed)[:2])[:, 2]).max() for seed in range(12)]
    assert max(largest) < 0.15


def test_series_that_are_not_known_have_no_effects():
    W, Z, _ = _series()
    W = np.column_stack([W, np.full(len(W), np.nan)])
    found = _effects(W, Z)
    np.testing.assert_allclose(found[:3], _effects(W[:, :3], Z))
    assert not found[3].any()


@pytest.mark.parametrize("n", [0, 1, 3])
def test_too_few_rows_have_no_effects(n):
    W, Z, _ = _series()
    assert not _effects(W[:n], Z[:n]).any()
