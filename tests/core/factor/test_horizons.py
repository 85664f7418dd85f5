"""Forecasts hold at each horizon, whether series wander or return."""

import numpy as np
import pytest

from omfb.core.conformal import quantile
from omfb.core.factor.clock import even_clock
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.horizons import _weight, filtered_at, forecast
from omfb.core.factor.smoother import predict_in_time
from omfb.core.factor.temporal import fit_temporal

from .making import learned, table, temporal_state, whiten
from .test_temporal import ar


def fitted(X, times=None, **given):
    return fit_temporal(learned(X, FactorConfig(temporal=True, **given)), X, times)


def held(state, truth, level=0.9):
    ahead = forecast(state, len(truth))
    width = quantile(ahead.histogram, level)
    return np.abs(ahead.mean - truth) <= width * ahead.std


def test_what_is_known_at_a_row_is_the_smoother_of_the_rows_up_to_it():
    X = table(0, 200, 5)
    state = temporal_state(X, [0.9, 0.5], residual_ar=np.full(5, 0.4))
    rows = X[:40].copy()
    rows[20:30, 2] = np.nan
    now = filtered_at(state, whiten(state, rows), even_clock(40), np.array([10, 29]))
    for t, known in zip((10, 29), now, strict=True):
        past = np.vstack([rows[: t + 1], np.full((1, 5), np.nan)])
        mean = state.params.C @ np.append([0.9, 0.5] * known.code, 1.0) + 0.4 * known.residual
        expected = whiten(state, predict_in_time(state, past).mean[-1])
        seen = ~np.isnan(rows[t])
        np.testing.assert_allclose(mean[seen], expected[seen], rtol=1e-8)
        assert (np.isinf(known.age) == ~seen).all()


def test_intervals_of_random_walks_hold_at_each_horizon():
    steps = [1, 6, 24, 96]
    inside, ratio = [], []
    for seed in range(12):
        rng = np.random.default_rng(1000 + seed)
        X = np.cumsum(rng.standard_normal((900, 5)), axis=0)
        state = fitted(X[:800])
        inside.append(held(state, X[800:896])[np.array(steps) - 1])
        ahead = forecast(state, 96).mean
        ratio.append([np.mean((each - X[800:896]) ** 2) for each in (ahead, X[799])])
    share = np.mean(inside, axis=(0, 2))
    assert (share > 0.8).all(), share
    assert (share < 0.99).all(), share
    ours, last = np.sqrt(np.mean(ratio, axis=0))
    assert ours < 1.03 * last


def test_intervals_of_series_that_return_hold_at_each_horizon():
    inside = []
    for seed in range(8):
        rng = np.random.default_rng(2000 + seed)
        X = ar(rng, 1000, 2, 0.95) @ rng.standard_normal((2, 6)) + 0.3 * ar(rng, 1000, 6, 0.5)
        inside.append(held(fitted(X[:900]), X[900:950]))
    share = np.mean(inside, axis=(0, 2))
    assert share[[0, 5, 23]] == pytest.approx(0.9, abs=0.12)
    assert share.mean() == pytest.approx(0.9, abs=0.06)


def test_a_daily_cycle_goes_on_after_the_last_row():
    inside, ours, yesterday = [], [], []
    for seed in range(6):
        rng = np.random.default_rng(3000 + seed)
        t = np.arange(24 * 32)[:, None]
        X = 2.0 * np.sin(2.0 * np.pi * (t / 24 + rng.random(5))) + 0.4 * ar(rng, len(t), 5, 0.9)
        known, truth = X[:-24], X[-24:]
        state = fitted(known)
        assert state.temporal.seasons.periods.tolist() == [24.0]
        inside.append(held(state, truth))
        ours.append(forecast(state, 24).mean - truth)
        yesterday.append(known[-24:] - truth)
    assert np.mean(inside) == pytest.approx(0.9, abs=0.06)
    assert np.sqrt(np.mean(np.square(ours)) / np.mean(np.square(yesterday))) < 0.9


def test_deviations_grow_with_the_horizon_and_beyond_those_that_were_tried(rng):
    walk = np.cumsum(rng.standard_normal((400, 4)), axis=0)
    std = forecast(fitted(walk), 800).std
    assert (np.diff(std, axis=0) >= 0.0).all()
    growth = np.log(std[799] / std[199]) / np.log(4.0)
    assert growth == pytest.approx(0.5, abs=0.15)


def test_a_column_that_was_last_seen_long_ago_is_less_sure(rng):
    walk = np.cumsum(rng.standard_normal((600, 4)), axis=0)
    seen = forecast(fitted(walk), 1).std[0]
    walk[-40:, 1] = np.nan
    gone = forecast(fitted(walk), 1).std[0]
    assert gone[1] > 3.0 * seen[1]
    np.testing.assert_allclose(gone[[0, 2, 3]], seen[[0, 2, 3]], rtol=0.5)


def test_forecasts_at_given_times_are_those_of_their_steps(rng):
    X = ar(rng, 500, 4, 0.9)
    times = 1e9 + 60.0 * np.arange(500)
    state = fitted(X, times)
    every = forecast(state, 6)
    some = forecast(state, 2, times[-1] + 60.0 * np.array([2.0, 6.0]))
    np.testing.assert_allclose(some.mean, every.mean[[1, 5]], rtol=1e-6)
    np.testing.assert_allclose(some.std, every.std[[1, 5]], rtol=0.02)  # never less sure later on


def test_the_weight_of_the_last_value_is_least_squares(rng):
    """Without a prior, and where it gains more than chance."""
    shared, last = rng.standard_normal((500, 3)), 2.0 * rng.standard_normal((500, 3))
    seen = rng.random(shared.shape) < 0.8
    weight = _weight(np.where(seen, shared, 0.0), np.where(seen, last, 0.0), seen, 1e-9, 0.01)
    for i in range(3):
        a, b = shared[seen[:, i], i], last[seen[:, i], i]
        exact = -np.sum(a * (b - a)) / np.sum((b - a) ** 2)
        assert weight[i] == pytest.approx(np.clip(exact, 0.0, 1.0), rel=1e-6)
    assert (_weight(last, shared, np.ones_like(seen), 1e-9, 0.3) > 0.9).all()


def test_rows_too_few_for_backtests_still_have_a_forecast(rng):
    X = rng.standard_normal((20, 4))
    state = fitted(X)
    assert state.temporal.horizons is None
    assert np.isfinite(forecast(state, 3).mean).all()


def test_forecasts_of_walks_are_the_last_value_where_the_mean_would_have_been_another():
    """Backtests must not credit the factors with a mean that knows the rows to come."""
    X = np.cumsum(np.random.default_rng(3).standard_normal((700, 6)), axis=0)
    errors, lasts = [], []
    for origin in (500, 600):
        state = fitted(X[:origin])
        mean = forecast(state, 96).mean
        errors.append(mean - X[origin : origin + 96])
        lasts.append(X[origin - 1] - X[origin : origin + 96])
    assert np.mean(np.square(errors)) < 1.02 * np.mean(np.square(lasts))
