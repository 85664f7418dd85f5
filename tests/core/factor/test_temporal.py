"""How consecutive rows depend on each other is estimated from them."""

import numpy as np
import pytest

from omfb.core.conformal import quantile
from omfb.core.factor.calibrate import refine_and_calibrate
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.drift import end_fit
from omfb.core.factor.finalize import finalize
from omfb.core.factor.horizons import forecast
from omfb.core.factor.predict import predict
from omfb.core.factor.smoother import predict_in_time
from omfb.core.factor.state import evolve
from omfb.core.factor.step import end_batch, step
from omfb.core.factor.temporal import fit_temporal, update_temporal

from .making import assert_identical, config, learned, leaves, table


def ar(rng, n, m, phi):
    """Stationary AR(1) columns of variance 1."""
    X = rng.standard_normal((n, m))
    for t in range(1, n):
        X[t] = phi * X[t - 1] + np.sqrt(1.0 - np.square(phi)) * X[t]
    return X


def series(rng, n=1500, code=0.95, own=0.0, missing=0.15, m=10):
    """Codes and residuals that follow autoregressions, and entries missing at random."""
    X = ar(rng, n, 2, code) @ rng.standard_normal((2, m)) + 0.5 * ar(rng, n, m, own)
    return X, np.where(rng.random(X.shape) < missing, np.nan, X)


@pytest.fixture
def given():
    return FactorConfig(n_components=2, temporal=True)


def test_autoregressions_of_codes_are_estimated(rng, given):
    _, X = series(rng, code=0.95)
    temporal = fit_temporal(learned(X, given), X).temporal
    assert ((temporal.code_ar > 0.85) & (temporal.code_ar < 0.99)).all()
    assert temporal.residual_ar.max() < 0.3


def test_autoregressions_of_residuals_are_estimated(rng, given):
    _, X = series(rng, code=0.0, own=0.9)
    temporal = fit_temporal(learned(X, given), X).temporal
    assert np.median(temporal.residual_ar) > 0.6


def test_rows_in_random_order_have_none(rng, given):
    _, X = series(rng, code=0.0, own=0.0)
    temporal = fit_temporal(learned(X, given), X).temporal
    assert not temporal.code_ar.any()
    assert not temporal.residual_ar.any()
    assert np.median(temporal.series_ar) < 0.1


def test_neighbours_are_used_where_held_out_gaps_are_predicted_better(rng, given):
    truth, X = series(rng, code=0.98, missing=0.5)
    state = fit_temporal(learned(X, given), X)
    plain = evolve(state, temporal=None)
    gone = np.isnan(X)
    in_time, alone = (
        np.sqrt(np.mean((mean - truth)[gone] ** 2))
        for mean in (predict_in_time(state, X).mean, predict(plain, X).mean)
    )
    assert in_time < 0.95 * alone


def test_a_feature_that_shares_nothing_is_bridged_from_its_own_values(rng, given):
    """Eight near duplicates of noise, which are not, and a column with an autoregression."""
    n = 2000
    z = rng.standard_normal((n, 1))
    X = np.hstack([z + 0.05 * rng.standard_normal((n, 8)), ar(rng, n, 1, 0.98)])
    shown = X.copy()
    for i in range(9):
        for start in range(10 + 5 * i, n - 20, 60):
            shown[start : start + 4, i] = np.nan
    state = fit_temporal(learned(shown, given), shown)
    gone = np.isnan(shown)
    errors = predict_in_time(state, shown).mean - X
    assert np.std(errors[:, 8][gone[:, 8]]) < 0.4
    assert np.std(errors[:, :8][gone[:, :8]]) < 0.06


def test_intervals_in_time_hold(rng, given):
    truth, X = series(rng, n=2000, code=0.9, own=0.5, missing=0.2)
    state = fit_temporal(learned(X, given), X)
    mean, std = predict_in_time(state, X)
    gone = np.isnan(X)
    width = quantile(state.temporal.histogram, 0.9)
    assert np.mean((np.abs(mean - truth) <= width * std)[gone]) == pytest.approx(0.9, abs=0.03)


def test_forecasts_of_one_row_hold(rng, given):
    truth, _ = series(rng, n=2400, code=0.9, own=0.5, missing=0.0)
    state = fit_temporal(learned(truth[:2000], given), truth[:2000])
    inside = []
    for t in range(2000, 2200):
        state = update_temporal(state, truth[t - 64 : t])
        mean, std, errors = forecast(state, 1)
        width = quantile(errors, 0.9)
        inside.append(np.abs(mean[0] - truth[t]) <= width * std[0])
    assert np.mean(inside) == pytest.approx(0.9, abs=0.04)


def test_forecasts_far_ahead_are_the_mean_and_marginal_deviation(rng, given):
    truth, _ = series(rng, missing=0.0)
    state = fit_temporal(learned(truth, given), truth)
    mean, std, _ = forecast(state, 2000)
    size = truth.std(axis=0)
    assert np.abs(mean[-1] - truth.mean(axis=0)).max() < 0.3 * size.max()
    np.testing.assert_allclose(std[-1], size, rtol=0.25)
    assert (std[0] <= std[-1] * 1.0001).all()


def test_an_update_moves_the_last_row_and_keeps_the_coefficients(rng, given):
    _, X = series(rng)
    state = fit_temporal(learned(X[:1200], given), X[:1200])
    later = update_temporal(step(evolve(state, update_left=9999), X[1200:1300])[0], X[1200:1300])
    moved = {"last_code", "last_code_cov", "last_residual", "last_value", "last_time", "n_seen"}
    one, other = leaves(state.temporal), leaves(later.temporal)
    changed = {name for name, value in one.items() if not np.array_equal(value, other[name])}
    assert changed - {"residual_age"} == moved
    assert later.temporal.n_seen == 1300


def test_the_age_of_a_residual_counts_the_rows_since(rng, given):
    truth, _ = series(rng, missing=0.0)
    X = truth.copy()
    X[-7:, 3] = np.nan
    temporal = fit_temporal(learned(X, given), X).temporal
    assert temporal.residual_age.tolist() == [0, 0, 0, 7, 0, 0, 0, 0, 0, 0]


def test_only_the_last_rows_of_the_window_are_used(rng):
    given = config(2, temporal=True, hyper={"window": 300})
    _, X = series(rng, n=1000)
    state = learned(X, given)
    other = X.copy()
    other[:700] = rng.standard_normal((700, 10))
    assert_identical(fit_temporal(state, X).temporal, fit_temporal(state, other).temporal)
    other[701] += 1.0
    changed = fit_temporal(state, other).temporal
    assert not np.array_equal(changed.code_ar, fit_temporal(state, X).temporal.code_ar)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_a_few_rows_give_finite_coefficients_below_one(rng, given, n):
    X = table(0, 300, 6, 0.1)
    state = fit_temporal(learned(X, given), X[:n])
    for ar_ in (state.temporal.code_ar, state.temporal.residual_ar, state.temporal.series_ar):
        assert ((ar_ >= 0.0) & (ar_ <= 0.999)).all()
    ahead = forecast(state, 3)
    assert np.isfinite(ahead.mean).all()
    assert np.isfinite(ahead.std).all()


def test_a_temporal_fit_ends_with_autoregressions_of_the_final_dictionary(rng, given):
    """Finalizing is: all that other fits do, then the autoregressions, from the last rows."""
    _, X = series(rng, n=400)
    state = learned(X, given)
    first, trial = refine_and_calibrate(end_batch(state), X)
    expected = fit_temporal(end_fit(evolve(first, pass_rows=0)), X[-200:], None, trial)
    assert_identical(finalize(state, lambda: (X, np.arange(200)), lambda: X[-200:]), expected)
