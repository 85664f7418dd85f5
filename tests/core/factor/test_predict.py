"""Predictions, samples and likelihoods are what their equations say."""

from dataclasses import replace

import numpy as np
import pytest

from omfb.core.factor.predict import (
    decode,
    encode,
    error_histogram,
    log_likelihood,
    predict,
    sample,
    score_held_out,
)
from omfb.core.factor.state import evolve
from omfb.core.factor.step import end_batch

from ... import reference_factor as reference
from .making import config, learned, table, temporal_state, whiten


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("center", [False, True])
def test_predictions_are_what_their_equations_say(missing, center):
    X = table(7, 200, 9, missing)
    state = end_batch(learned(X, config(center=center)))
    params, shares, one = state.params, 1.0 / state.batch.inverse_coverage, float(center)
    row = X[:1].copy()
    row[0, [1, 4]] = np.nan
    y = whiten(state, row[0])
    gone = np.isnan(y)
    mean, variance = reference.predictive(params.C, state.batch.Sigma, shares, one, y)
    found = predict(state, row)
    expected = (mean * params.noise_std + params.center)[gone]
    np.testing.assert_allclose(found.mean[0, gone], expected, rtol=1e-7)
    expected = (np.sqrt(variance) * params.noise_std)[gone]
    np.testing.assert_allclose(found.std[0, gone], expected, rtol=1e-7)
    assert np.array_equal(found.mean[0, ~gone], row[0, ~gone])
    assert not found.std[0, ~gone].any()
    exact = reference.log_likelihood(params.C, one, y) - np.log(params.noise_std[~gone]).sum()
    assert log_likelihood(state, row)[0] == pytest.approx(exact, rel=1e-8)


def test_predictions_use_every_row_learned_so_far():
    """In the middle of a batch codes are still made by the dictionary at its start."""
    X = table(7, 200, 9, 0.2)
    state = learned(X[:190], config())
    assert state.batch.C_batch is not None
    np.testing.assert_array_equal(
        predict(state, X[190:]).mean, predict(end_batch(state), X[190:]).mean
    )
    stale = evolve(state, C=state.batch.C_batch, C_batch=None)
    assert not np.allclose(predict(state, X[190:]).mean, predict(stale, X[190:]).mean, rtol=1e-9)


@pytest.mark.parametrize("center", [False, True])
def test_codes_of_complete_rows_by_products_equal_those_row_by_row(center):
    X = table(5, 300, 9)
    state = end_batch(learned(X, config(center=center)))
    Sigma, shares = state.batch.Sigma, 1.0 / state.batch.inverse_coverage
    codes = [
        reference.code(state.params.C, Sigma, shares, float(center), y)[0][:-1]
        for y in whiten(state, X[:40])
    ]
    np.testing.assert_allclose(encode(state, X[:40]), codes, rtol=1e-7, atol=1e-9)
    # and so with means far larger than the noise, where products would lose digits
    far = evolve(state, center=state.params.center + 1e8 * state.params.noise_std)
    rows = X[:40] + 1e8 * state.params.noise_std
    np.testing.assert_allclose(encode(far, rows), codes, rtol=1e-4, atol=1e-5)


def test_decoding_the_codes_of_a_row_gives_its_prediction():
    X = table(6, 300, 9, 0.2)
    state = learned(X, config())
    missing = np.isnan(X)
    rows = decode(end_batch(state), encode(state, X))
    np.testing.assert_allclose(rows[missing], predict(state, X).mean[missing], rtol=1e-10)


def test_samples_have_the_mean_and_deviation_of_the_prediction(rng):
    X = table(8, 300, 6, 0.1)
    state = learned(X, config(2))
    row = X[:1].copy()
    row[0, :3] = np.nan
    mean, std = predict(state, row)
    drawn = np.array(list(sample(state, row, 4000, rng)))[:, 0]
    assert np.abs(drawn[:, :3].mean(axis=0) - mean[0, :3]).max() < 5 * std.max() / np.sqrt(4000)
    np.testing.assert_allclose(drawn[:, :3].std(axis=0), std[0, :3], rtol=0.15)
    observed = ~np.isnan(row[0])
    assert (drawn[:, observed] == row[0, observed]).all()


def test_samples_of_one_row_are_correlated_as_its_features_are(rng):
    """Two copies of a column, both missing: samples draw one code for both."""
    z = rng.standard_normal((500, 1))
    X = np.hstack([z, z, z, z]) + 0.1 * rng.standard_normal((500, 4))
    state = learned(X, config(1))
    row = np.array([[np.nan, np.nan, np.nan, np.nan]])
    drawn = np.array(list(sample(state, row, 2000, rng)))[:, 0]
    assert np.corrcoef(drawn[:, 0], drawn[:, 1])[0, 1] > 0.95


def test_the_score_of_held_out_entries_is_that_of_rows_without_them(rng):
    X = table(9, 400, 8)
    state = learned(X, config())
    signal = score_held_out(state, X)
    assert signal.residual < 0.3 * signal.energy
    noise = rng.standard_normal(X.shape) * X.std(axis=0) + X.mean(axis=0)
    unexplained = score_held_out(state, noise)
    assert unexplained.residual > 0.8 * unexplained.energy


def test_intervals_come_from_errors_in_time_only_where_there_are_some():
    state = temporal_state(table(1, 100, 4), code_ar=[0.5, 0.5])
    assert error_histogram(state) is state.holdout.histogram
    histogram = np.ones_like(state.holdout.histogram)
    state = evolve(state, temporal=replace(state.temporal, histogram=histogram))
    assert error_histogram(state) is histogram
