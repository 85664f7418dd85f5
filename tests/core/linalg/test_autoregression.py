"""Gaps are bridged as a stationary autoregression has them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from omfb.core.linalg.autoregression import bridge, series_likelihoods, smooth

from ... import reference_factor as reference


def bridged(E, phi):
    means, variances = np.zeros_like(E), np.ones_like(E)
    bridge(E, np.asarray(phi, float), np.arange(len(E), dtype=float), means, variances)
    return means, variances


@given(
    seed=st.integers(0, 999), n=st.integers(1, 15), missing=st.sampled_from([0.1, 0.5, 0.9]),
    phi=st.sampled_from([0.0, 0.2, 0.9, 0.999]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_gap_is_the_gaussian_given_all_known_values(seed, n, missing, phi):
    rng = np.random.default_rng(seed)
    E = rng.standard_normal((n, 2))
    E[rng.random(E.shape) < missing] = np.nan
    means, variances = bridged(E, [phi, phi])
    for i in range(2):
        gone = np.isnan(E[:, i])
        exact = reference.condition(np.zeros(n), reference.ar_covariance(phi, n), E[:, i])
        np.testing.assert_allclose(means[gone, i], exact[0][gone], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(variances[gone, i], exact[1][gone], rtol=1e-6, atol=1e-9)


@given(seed=st.integers(0, 999), n=st.integers(1, 12), phi=st.sampled_from([0.2, 0.9, 0.999]))
@settings(max_examples=40, deadline=None)
def test_a_gap_between_rows_that_are_unevenly_spaced_is_the_gaussian_at_their_times(seed, n, phi):
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.uniform(0.1, 5.0, n))
    E = rng.standard_normal((n, 1))
    E[rng.random(E.shape) < 0.5] = np.nan
    means, variances = np.zeros_like(E), np.ones_like(E)
    bridge(E, np.array([phi]), steps, means, variances)
    exact = reference.condition(np.zeros(n), reference.ar_covariance(phi, n, steps), E[:, 0])
    gone = np.isnan(E[:, 0])
    np.testing.assert_allclose(means[gone, 0], exact[0][gone], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(variances[gone, 0], exact[1][gone], rtol=1e-6, atol=1e-9)


def test_a_gap_at_an_end_fades_to_zero():
    E = np.full((6, 1), np.nan)
    E[2] = 4.0
    means, variances = bridged(E, [0.5])
    np.testing.assert_allclose(means[[0, 1, 3, 4, 5], 0], [1.0, 2.0, 2.0, 1.0, 0.5])
    np.testing.assert_allclose(variances[[1, 3, 4], 0], [0.75, 0.75, 1.0 - 0.25**2])


def test_a_column_of_which_nothing_is_known_has_mean_zero_and_variance_one():
    means, variances = bridged(np.full((5, 1), np.nan), [0.9])
    assert not means.any()
    assert variances == pytest.approx(1.0)


@given(
    seed=st.integers(0, 999), n=st.integers(1, 12), phi=st.sampled_from([0.0, 0.2, 0.9, 0.999]),
    noise=st.sampled_from([0.0, 0.01, 0.5]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_gap_of_a_noisy_series_is_the_gaussian_given_all_known_values(seed, n, phi, noise):
    rng = np.random.default_rng(seed)
    steps = np.cumsum(rng.uniform(0.1, 5.0, n))
    Z = rng.standard_normal((n, 2))
    Z[rng.random(Z.shape) < 0.5] = np.nan
    means, variances = np.zeros_like(Z), np.zeros_like(Z)
    both = np.ones(2)
    smooth(Z, phi * both, (1.0 - noise) * both, noise * both, steps, means, variances)
    covariance = reference.noisy_covariance(phi, noise, n, steps)
    for i in range(2):
        exact = reference.condition(np.zeros(n), covariance, Z[:, i])
        gone = np.isnan(Z[:, i])
        np.testing.assert_allclose(means[gone, i], exact[0][gone], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(variances[gone, i], exact[1][gone], rtol=1e-6, atol=1e-8)
        assert not variances[~gone, i].any()


def test_likelihoods_of_series_are_those_of_their_known_values():
    rng = np.random.default_rng(0)
    steps = np.cumsum(rng.uniform(0.5, 2.0, 20))
    Z = rng.standard_normal((20, 3))
    Z[rng.random(Z.shape) < 0.3] = np.nan
    settings = [(0.9, 0.2), (0.5, 0.0)]
    phi, noise = (np.array(each) for each in zip(*settings, strict=True))
    out = np.empty((3, 2, 2))
    series_likelihoods(Z, phi[:, None] ** np.diff(steps), 1.0 - noise, noise, out)
    for i in range(3):
        seen = ~np.isnan(Z[:, i])
        for s, setting in enumerate(settings):
            covariance = reference.noisy_covariance(*setting, 20, steps)[np.ix_(seen, seen)]
            exact = multivariate_normal(np.zeros(seen.sum()), covariance).logpdf(Z[seen, i])
            found = -0.5 * (out[i, s].sum() + seen.sum() * np.log(2.0 * np.pi))
            assert found == pytest.approx(exact, rel=1e-9)
