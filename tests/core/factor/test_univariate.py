"""A feature's own series, and how much of it a prediction takes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.factor.hyper import Hyper
from omfb.core.factor.univariate import (
    DISTANCES,
    Series,
    away_from_mean,
    bridge_series,
    distance_classes,
    fit_series,
    series_weight,
)

from ... import reference_factor as reference
from .making import table, temporal_state, whiten


@given(
    seed=st.integers(0, 99), n=st.integers(1, 12), missing=st.sampled_from([0.2, 0.8]),
    phi=st.sampled_from([0.0, 0.3, 0.9, 0.999]), noise=st.sampled_from([0.0, 0.1]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_a_bridged_series_is_the_gaussian_given_its_known_values(seed, n, missing, phi, noise):
    X = table(seed, 80, 3)
    state = temporal_state(X, [0.5])
    rng = np.random.default_rng(seed)
    W = whiten(state, np.where(rng.random((n, 3)) < missing, np.nan, X[:n]))
    size = np.array([1.0, 2.0, 0.5])
    series = Series(np.full(3, phi), np.full(3, noise), size)
    found = bridge_series(state, W, series, np.arange(len(W), dtype=float))
    C = state.params.C
    for i in range(3):
        covariance = size[i] ** 2 * reference.noisy_covariance(phi, noise, n)
        means, variances = reference.condition(np.full(n, C[i, -1]), covariance, W[:, i])
        gone = np.isnan(W[:, i])
        np.testing.assert_allclose(found.mean[gone, i], means[gone], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(found.std[gone, i], np.sqrt(variances)[gone], rtol=1e-6)


@pytest.mark.parametrize(("phi", "ratio"), [(0.0, 0.0), (0.9, 0.0), (0.97, 3.0), (0.999, 1.0)])
def test_series_are_estimated_with_their_noise(phi, ratio):
    """`ratio` is the noise beside the variance of an innovation."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    for t in range(1, len(X)):
        X[t] += phi * X[t - 1]
    X += np.sqrt(ratio) * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < 0.2] = np.nan
    state = temporal_state(X, [0.0])
    series = fit_series(state, whiten(state, X), np.arange(len(X), dtype=float))
    noise = ratio * (1.0 - phi**2)
    next_one = (1.0 - series.noise) * series.ar  # the correlation of neighbours
    np.testing.assert_allclose(next_one, phi / (1.0 + noise), atol=0.05)
    if phi > 0.0:  # of white noise the two cannot be told apart
        np.testing.assert_allclose(series.ar, phi, atol=0.015)
        np.testing.assert_allclose(series.noise, noise / (1.0 + noise), atol=0.05)


def test_neighbours_do_not_follow_a_spike():
    X = table(1, 80, 3)
    state = temporal_state(X, [0.5])
    W = whiten(state, X[:5])
    W[2, 0] = 1e9
    away, size = away_from_mean(state, W)
    assert away[2, 0] == pytest.approx(state.config.hyper.clip_limit * size[0])
    np.testing.assert_allclose(away[2, 1:], W[2, 1:] - state.params.C[1:, -1])


def test_distances_are_those_to_the_nearest_known_value():
    missing = np.zeros((61, 2), bool)
    missing[5:60, 0] = True
    missing[:, 1] = True  # nothing is known: as far as can be
    classes = distance_classes(missing)
    nearest_of = {5: 1, 6: 2, 7: 3, 9: 5, 10: 6, 16: 12, 29: 25, 32: 28, 59: 1}
    for t, nearest in nearest_of.items():
        expected = max(at for at, least in enumerate(DISTANCES) if nearest >= least)
        assert classes[t, 0] == expected, t
    assert (classes[:, 1] == len(DISTANCES) - 1).all()
    assert (classes[~missing] == 0).all()


def gaps(rng, n, m, length):
    """Gaps of some length in each column, as flags."""
    missing = np.zeros((n, m), bool)
    for i in range(m):
        for start in range(rng.integers(1, 10), n - length - 1, 3 * length):
            missing[start : start + length, i] = True
    return missing


@given(
    seed=st.integers(0, 999), own=st.floats(0.0, 3.0), shared=st.floats(0.0, 3.0),
    length=st.sampled_from([1, 4, 30]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_weights_are_shares(seed, own, shared, length):
    rng = np.random.default_rng(seed)
    held_out = gaps(rng, 600, 4, length)
    errors = own * rng.normal(size=(600, 4)), shared * rng.normal(size=(600, 4))
    weight = series_weight(*errors, held_out, held_out, Hyper())
    assert weight.shape == (len(DISTANCES), 4)
    assert ((weight >= 0.0) & (weight <= 1.0)).all()


def test_the_weight_is_that_of_independent_errors():
    """Errors of variance a² and b² are averaged best with the weight b² / (a² + b²)."""
    rng = np.random.default_rng(0)
    held_out = gaps(rng, 20_000, 3, 1)
    errors = 1.0 * rng.normal(size=(20_000, 3)), 2.0 * rng.normal(size=(20_000, 3))
    weight = series_weight(*errors, held_out, held_out, Hyper())
    np.testing.assert_allclose(weight, 0.8, atol=0.03)  # and at distances that are not known


def test_series_that_gain_little_together_get_no_weight():
    rng = np.random.default_rng(1)
    held_out = gaps(rng, 20_000, 3, 1)
    shared = rng.normal(size=(20_000, 3))
    own = 8.0 * rng.normal(size=(20_000, 3))  # best is 1 / 65, which gains 1.5 %
    weight = series_weight(own, shared, held_out, held_out, Hyper())
    assert weight.max() < 0.016
    much = series_weight(own, shared, held_out, held_out, Hyper(series_gain=0.0, series_prior=1e9))
    assert much.min() > weight.max()


def test_a_feature_that_shares_nothing_has_weight_where_near_duplicates_have_none():
    rng = np.random.default_rng(2)
    held_out = gaps(rng, 20_000, 6, 3)
    own = 0.5 * rng.normal(size=(20_000, 6))
    shared = 0.01 * rng.normal(size=(20_000, 6))  # near duplicates of each other
    alone = series_weight(own[:, :5], shared[:, :5], *2 * (held_out[:, :5],), Hyper())
    assert alone.max() < 0.001
    shared[:, 5] = rng.normal(size=20_000)
    weight = series_weight(own, shared, held_out, held_out, Hyper())
    assert weight[0, 5] == pytest.approx(0.8, abs=0.05)
    assert weight[0, :5].max() < 0.05  # shrunk towards the weight of all features together


def test_with_few_entries_features_have_the_weight_of_all_together():
    rng = np.random.default_rng(2)
    held_out = gaps(rng, 2000, 6, 3)
    own, shared = 0.5 * rng.normal(size=(2000, 6)), 0.01 * rng.normal(size=(2000, 6))
    shared[:, 5] = rng.normal(size=2000)
    weak, strong = (
        series_weight(own, shared, held_out, held_out, Hyper(series_prior=prior))[0]
        for prior in (1.0, 1e6)
    )
    assert np.ptp(strong) < 0.01 < 0.5 < np.ptp(weak)


def test_few_entries_say_nothing():
    rng = np.random.default_rng(3)
    held_out = np.zeros((200, 2), bool)
    held_out[10:190:10, 0] = True  # 18 entries
    errors = 0.1 * rng.normal(size=(200, 2)), rng.normal(size=(200, 2))
    assert not series_weight(*errors, held_out, held_out, Hyper()).any()


def test_a_few_huge_errors_of_the_factors_do_not_decide():
    rng = np.random.default_rng(4)
    held_out = gaps(rng, 3000, 3, 1)
    own, shared = rng.normal(size=(3000, 3)), 0.1 * rng.normal(size=(3000, 3))
    usual = series_weight(own, shared, held_out, held_out, Hyper())
    at = np.flatnonzero(held_out[:, 0])[:3]
    shared[at[:2], 0], shared[at[2], 0] = 4.9, np.nan
    own[at[1], 0] = 1e200
    weight = series_weight(own, shared, held_out, held_out, Hyper())
    assert np.isfinite(weight).all()
    assert np.abs(weight - usual).max() < 0.2
