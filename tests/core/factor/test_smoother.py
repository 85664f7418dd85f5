"""Predictions of consecutive rows equal the conditioning of one dense Gaussian."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.factor.e_step import encode_rows
from omfb.core.factor.horizons import forecast
from omfb.core.factor.predict import predict
from omfb.core.factor.robust import clip_rows
from omfb.core.factor.seasons import season_of
from omfb.core.factor.smoother import predict_in_time
from omfb.core.factor.state import Seasons, evolve

from ... import reference_factor as reference
from .making import table, temporal_state, whiten


def with_gaps(rng, X, missing):
    """Single missing entries, one column in a gap, and two rows of which nothing is known."""
    X = np.where(rng.random(X.shape) < missing, np.nan, X)
    X[2:9, 1] = np.nan
    X[5:7] = np.nan
    return X


def in_data_units(state, means, variances):
    params = state.params
    return means * params.noise_std + params.center, np.sqrt(variances) * params.noise_std


@given(
    seed=st.integers(0, 99), missing=st.sampled_from([0.05, 0.5]),
    code_ar=st.lists(st.sampled_from([0.0, 0.3, 0.9, 0.99]), min_size=1, max_size=3),
)  # fmt: skip
@settings(max_examples=30, deadline=None)
def test_the_smoother_is_the_gaussian_given_all_observed_entries(seed, missing, code_ar):
    X = table(seed, 60, 5)
    # No row is clipped: the reference knows nothing of outliers.
    state = temporal_state(X, code_ar, hyper={"clip_limit": 1e6})
    rows = with_gaps(np.random.default_rng(seed), X[:12], missing)
    exact = reference.smoothed(state.params.C, code_ar, 1.0, whiten(state, rows))
    mean, std = in_data_units(state, *exact)
    found, gone = predict_in_time(state, rows), np.isnan(rows)
    np.testing.assert_allclose(found.mean[gone], mean[gone], rtol=1e-7)
    np.testing.assert_allclose(found.std[gone], std[gone], rtol=1e-7)
    assert np.array_equal(found.mean[~gone], rows[~gone])
    assert not found.std[~gone].any()


@given(
    seed=st.integers(0, 99), code_ar=st.lists(st.sampled_from([0.3, 0.99]), min_size=1, max_size=2)
)
@settings(max_examples=20, deadline=None)
def test_rows_that_are_unevenly_spaced_are_as_far_apart_as_their_times(seed, code_ar):
    """Rows that are missing altogether are the same as rows of which nothing is observed."""
    X, rng = table(seed, 60, 4), np.random.default_rng(seed)
    state = temporal_state(X, code_ar, step=60.0, stamped=True)
    rows = with_gaps(rng, X[:10], 0.2)
    steps = np.cumsum(rng.uniform(0.2, 4.0, len(rows)))
    exact = reference.smoothed(state.params.C, code_ar, 1.0, whiten(state, rows), steps)
    mean, std = in_data_units(state, *exact)
    found, gone = predict_in_time(state, rows, times=1.6e9 + 60.0 * steps), np.isnan(rows)
    np.testing.assert_allclose(found.mean[gone], mean[gone], rtol=1e-5)
    np.testing.assert_allclose(found.std[gone], std[gone], rtol=1e-5)


def test_the_season_of_a_time_is_added_wherever_the_row_is():
    """With seasons, rows are what they are without them, plus the season of their times."""
    X, rng = table(0, 60, 4), np.random.default_rng(0)
    seasons = Seasons(np.array([24.0]), np.array([1 / 24]), rng.standard_normal((4, 2)))
    state = temporal_state(X, [0.9], residual_ar=np.full(4, 0.5), stamped=True)
    without = state.temporal
    times = 1000.0 + np.arange(30.0)
    rows = with_gaps(rng, X[:30], 0.2)
    season = season_of(seasons, times) * state.params.noise_std
    state = evolve(state, temporal=replace(without, seasons=seasons))
    found = predict_in_time(state, rows + season, times=times)
    expected = predict_in_time(evolve(state, temporal=without), rows, times=times)
    gone = np.isnan(rows)
    np.testing.assert_allclose(found.mean[gone], (expected.mean + season)[gone], rtol=1e-9)
    np.testing.assert_allclose(found.std, expected.std, rtol=1e-9)


def test_about_seasons_codes_have_the_covariance_that_is_left():
    """As if the dictionary were C T, for codes x = T u with u of covariance I."""
    X, rng = table(1, 60, 4), np.random.default_rng(1)
    T = np.array([[0.2, 0.1], [0.0, 0.7]])
    seasons = Seasons(np.array([24.0]), np.array([1 / 24]), np.zeros((4, 2)), T)
    state = temporal_state(X, [0.9, 0.3], seasons=seasons, stamped=True)
    rows = with_gaps(rng, X[:12], 0.2)
    C = state.params.C.copy()
    C[:, :2] = C[:, :2] @ T
    exact = reference.smoothed(C, [0.9, 0.3], 1.0, whiten(state, rows))
    mean, std = in_data_units(state, *exact)
    found, gone = predict_in_time(state, rows, times=np.arange(12.0)), np.isnan(rows)
    np.testing.assert_allclose(found.mean[gone], mean[gone], rtol=1e-7)
    np.testing.assert_allclose(found.std[gone], std[gone], rtol=1e-7)


def test_long_sequences_are_smoothed_in_parts_that_meet():
    """More rows than systems are kept at a time, with a gap across the cut."""
    X = table(1, 300, 3)
    state = temporal_state(X, [0.95])
    rows = with_gaps(np.random.default_rng(1), X, 0.1)
    rows[120:136] = np.nan
    exact = reference.smoothed(state.params.C, [0.95], 1.0, whiten(state, rows))
    mean, std = in_data_units(state, *exact)
    found, gone = predict_in_time(state, rows), np.isnan(rows)
    np.testing.assert_allclose(found.mean[gone], mean[gone], rtol=1e-7)
    np.testing.assert_allclose(found.std[gone], std[gone], rtol=1e-7)


def test_means_are_the_same_whether_deviations_are_asked_for_or_not():
    X = table(2, 200, 6)
    rows = with_gaps(np.random.default_rng(2), X[:150], 0.2)
    for code_ar in ([0.0, 0.0], [0.9, 0.4]):
        state = temporal_state(X, code_ar, residual_ar=np.full(6, 0.5))
        with_std, without = (predict_in_time(state, rows, std=std) for std in (True, False))
        np.testing.assert_allclose(with_std.mean, without.mean, rtol=1e-9)
        assert without.std is None


def test_without_autoregressions_rows_are_predicted_each_by_itself():
    X = table(3, 200, 6)
    rows = with_gaps(np.random.default_rng(3), X[:50], 0.2)
    state = temporal_state(X, [0.0, 0.0, 0.0], known_dictionary=False)
    in_time, alone = predict_in_time(state, rows), predict(state, rows)
    np.testing.assert_allclose(in_time.mean, alone.mean, rtol=1e-8)
    np.testing.assert_allclose(in_time.std, alone.std, rtol=1e-8)


def test_residuals_of_neighbours_are_bridged():
    """Without any signal in the codes, an entry is its neighbours' residual times φ."""
    X = table(4, 200, 4)
    state = temporal_state(X, [0.0], residual_ar=np.full(4, 0.8))
    mean = state.params.C[:, -1:]
    no_loadings = np.hstack([np.zeros((4, 1)), mean])
    state = evolve(state, C=no_loadings, G=no_loadings.T @ no_loadings)
    rows = X[:3].copy()
    rows[1, 2] = np.nan
    residual = (whiten(state, rows) - mean.T)[:, 2]
    means, variances = reference.condition(np.zeros(3), reference.ar_covariance(0.8, 3), residual)
    exact, std = in_data_units(state, means[1] + mean[2], variances[1])
    found = predict_in_time(state, rows)
    assert found.mean[1, 2] == pytest.approx(exact[2], rel=1e-9)
    assert found.std[1, 2] == pytest.approx(std[2], rel=1e-9)


def test_a_weight_of_one_leaves_only_the_series_of_the_feature():
    X = table(5, 200, 4)
    weight = np.zeros((6, 4))
    weight[:, 0] = 1.0
    state = temporal_state(X, [0.9, 0.9], series_weight=weight, series_ar=np.zeros(4))
    rows = X[:30].copy()
    rows[10:15, :2] = np.nan
    found = predict_in_time(state, rows).mean[10:15]
    params = state.params
    level = params.center[0] + params.noise_std[0] * params.C[0, -1]
    np.testing.assert_allclose(found[:, 0], level, rtol=1e-10)
    assert found[:, 1].std() > 0.1 * X[:, 1].std()


@pytest.mark.parametrize("code_ar", [[0.9], [0.5, 0.0]])
def test_a_forecast_after_one_row_is_the_gaussian_given_that_row(code_ar):
    X = table(6, 200, 5)
    state = temporal_state(X, code_ar)
    row = X[:1].copy()
    row[0, 3] = np.nan
    codes = encode_rows(state, clip_rows(state, row), keep_covariances=True)
    temporal = replace(
        state.temporal, last_code=codes.X[0, :-1], last_code_cov=codes.covariances[0]
    )
    sequence = np.vstack([whiten(state, row), np.full((3, 5), np.nan)])
    exact = reference.smoothed(state.params.C, code_ar, 1.0, sequence)
    mean, std = in_data_units(state, *(each[1:] for each in exact))
    found = forecast(evolve(state, temporal=temporal), 3)
    np.testing.assert_allclose(found[0], mean, rtol=1e-8)
    np.testing.assert_allclose(found[1], std, rtol=1e-8)


def test_the_last_residual_fades_from_a_forecast_with_its_age():
    X = table(7, 200, 3)
    state = temporal_state(
        X, [0.0], residual_ar=np.array([0.5, 0.5, 0.0]), last_residual=np.full(3, 4.0),
        residual_age=np.array([0, 2, 0]),
    )  # fmt: skip
    params, level = (
        state.params,
        evolve(state, temporal=replace(state.temporal, last_residual=np.zeros(3))),
    )
    moved = (forecast(state, 2)[0] - forecast(level, 2)[0]) / params.noise_std
    np.testing.assert_allclose(moved, [[2.0, 0.5, 0.0], [1.0, 0.25, 0.0]], atol=1e-9)
