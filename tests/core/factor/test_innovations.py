"""What the changes of features share, and the levels that it adds up to."""

import numpy as np
import pytest

from omfb.core.factor.hyper import Hyper
from omfb.core.factor.innovations import (
    communality,
    fit_innovations,
    innovations,
    shared_path,
)
from omfb.core.factor.state import Innovations

from ... import reference_factor as reference

HYPER = Hyper()


def walks(seed, n=800, m=12, missing=0.1, own=1.0):
    """Walks whose steps share two factors."""
    rng = np.random.default_rng(seed)
    C = rng.standard_normal((m, 2))
    steps = rng.standard_normal((n, 2)) @ C.T + own * rng.standard_normal((n, m))
    Z = np.cumsum(steps, axis=0)
    Z[rng.random(Z.shape) < missing] = np.nan
    return Z, C


def test_innovations_are_known_where_an_entry_and_the_one_before_it_are():
    Z = np.array([[1.0], [2.0], [np.nan], [4.0], [6.0]])
    found = innovations(Z, np.array([0.6]), np.array([0.0, 1.0, 2.0, 3.0, 5.0]))
    expected = [np.nan, (2.0 - 0.6) / 0.8, np.nan, np.nan, (6.0 - 0.36 * 4.0) / np.sqrt(1 - 0.1296)]
    np.testing.assert_allclose(found[:, 0], expected)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_shared_path_is_that_of_the_posterior_means(missing):
    rng = np.random.default_rng(1)
    Z, C = walks(2, n=40, m=6, missing=missing)
    noise_std, steps = rng.uniform(5.0, 9.0, 6), np.cumsum(rng.uniform(0.5, 3.0, 40))
    phi = rng.uniform(0.9, 0.99, 6)
    path, unknown = shared_path(Innovations(C, noise_std), Z, phi, steps, HYPER)
    expected = reference.shared_path(C, noise_std, Z, phi, steps)
    np.testing.assert_allclose(path, expected, rtol=1e-8, atol=1e-8)
    assert ((unknown[1:] > 0.0) & (unknown[1:] < 1.0)).all()
    assert unknown[0] == pytest.approx(1.0)


def test_what_changes_share_is_found_however_levels_wander():
    Z, C = walks(3)
    phi, at_step = np.full(12, 0.999), np.arange(len(Z), dtype=float)
    found = fit_innovations(Z, phi, at_step, HYPER)
    shares = np.sum(C**2, axis=1) / (1.0 + np.sum(C**2, axis=1))
    np.testing.assert_allclose(communality(found), shares, atol=0.1)


def test_jumps_of_a_few_features_hardly_change_what_is_shared():
    Z, _ = walks(4)
    phi, at_step = np.full(12, 0.999), np.arange(len(Z), dtype=float)
    jumping = Z.copy()
    jumping[400:, :3] += 200.0
    clean, found = (fit_innovations(each, phi, at_step, HYPER) for each in (Z, jumping))
    np.testing.assert_allclose(communality(found), communality(clean), atol=0.1)


def test_series_that_share_nothing_have_no_factors():
    Z = np.cumsum(np.random.default_rng(5).standard_normal((800, 12)), axis=0)
    assert fit_innovations(Z, np.full(12, 0.999), np.arange(800.0), HYPER) is None


@pytest.mark.parametrize(("n", "m"), [(800, 1), (12, 5), (1, 5)])
def test_too_few_rows_or_features_have_no_factors(n, m):
    Z = np.cumsum(np.random.default_rng(6).standard_normal((n, m)), axis=0)
    assert fit_innovations(Z, np.full(m, 0.99), np.arange(float(n)), HYPER) is None
