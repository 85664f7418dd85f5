"""Seasons are found where there are any, and nowhere else."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.factor.clock import clock_of, even_clock, usual_step
from omfb.core.factor.seasons import (
    DAY,
    _normal_equations,
    _solved,
    best_shift,
    find_seasons,
    season_of,
)

from ... import reference_factor as reference
from .test_temporal import ar

GAIN = 0.005


def found(W, clock=None, step=1.0, periods=None, stamped=False):
    clock = even_clock(len(W)) if clock is None else clock
    return find_seasons(W, clock, step, periods, stamped, GAIN)


def cycles(rng, n, m, period, phi=0.9, size=1.0):
    """An autoregression about a cycle whose phase differs from feature to feature."""
    angles = 2.0 * np.pi * (np.arange(n)[:, None] / period + rng.random(m))
    return ar(rng, n, m, phi) + size * np.sin(angles)


@pytest.mark.parametrize("period", [7, 24, 52.5])
def test_a_cycle_is_found_by_its_periodogram(rng, period):
    seasons = found(cycles(rng, 1200, 5, period))
    assert len(seasons.periods) == 1
    assert seasons.periods[0] == pytest.approx(period, rel=0.01)


def test_two_cycles_are_found(rng):
    W = cycles(rng, 1500, 6, 24) + cycles(rng, 1500, 6, 168, phi=0.0)
    assert sorted(found(W).periods.tolist()) == [24.0, 168.0]


@pytest.mark.parametrize("phi", [0.0, 0.5, 0.97, 1.0])
def test_series_without_a_cycle_have_none(phi):
    n_found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        steps = rng.standard_normal((800, 5))
        W = np.cumsum(steps, axis=0) if phi == 1.0 else ar(rng, 800, 5, phi)
        n_found += found(W / W.std(axis=0)) is not None
    assert n_found <= 2


def test_days_and_weeks_are_tried_where_rows_have_times(rng):
    """Also where one row in two is missing, so that rows do not count the hours."""
    n = 24 * 7 * 12
    W = cycles(rng, n, 4, 24) + cycles(rng, n, 4, 168, phi=0.0)
    kept = np.sort(rng.choice(n, n // 2, replace=False))
    times = 3600.0 * kept
    step = usual_step(times)
    seasons = found(W[kept], clock_of(times, step), step, stamped=True)
    assert sorted(seasons.periods.tolist()) == [DAY, 7 * DAY]


def test_given_cycles_are_used_as_they_are(rng):
    W = ar(rng, 300, 3, 0.5)
    seasons = found(W, periods=np.array([10.0, 31.0]))
    assert seasons.periods.tolist() == [10.0, 31.0]
    assert found(W, periods=np.empty(0)) is None


def test_a_season_is_the_truth_at_times_that_were_never_seen(rng):
    n, m = 24 * 40, 6
    phase, t = rng.random(m), np.arange(n + 100)[:, None]
    truth = 2.0 * np.sin(2.0 * np.pi * (t / 24 + phase)) + np.cos(4.0 * np.pi * (t / 24 + phase))
    W = truth[:n] + 0.5 * rng.standard_normal((n, m))
    W[rng.random(W.shape) < 0.3] = np.nan
    seasons = found(W, even_clock(n, n - 1.0))
    ahead = season_of(seasons, np.arange(n, n + 100.0))
    assert np.sqrt(np.mean((ahead - truth[n:]) ** 2)) < 0.1


@given(seed=st.integers(0, 99), K=st.integers(1, 3))
@settings(max_examples=15, deadline=None)
def test_loadings_are_those_of_generalized_least_squares(seed, K):
    """Of rows at uneven times, with the autoregression and prior that were estimated."""
    rng = np.random.default_rng(seed)
    n, frequencies = 80, np.arange(1, K + 1) / 12.0
    steps = np.cumsum(rng.uniform(0.5, 3.0, n))
    steps -= steps[0]
    W = np.sin(2.0 * np.pi * steps / 12.0)[:, None] + 0.5 * rng.standard_normal((n, 1))
    clock = clock_of(steps, 1.0)
    equations = _normal_equations(W, clock, frequencies, n_folds=1)
    loadings, prior = _solved(equations, np.arange(K))
    from omfb.core.factor import seasons as module

    angles = 2.0 * np.pi * np.outer(steps, frequencies)
    Z = np.hstack([np.ones((n, 1)), np.cos(angles), np.sin(angles)])
    least = 1e-3 * n * np.eye(2 * K + 1)
    phi = module._ar(W[:, 0] - Z @ np.linalg.solve(Z.T @ Z + least, Z.T @ W[:, 0]), steps)
    y = W[:, 0] / equations.noise[0]
    A = np.linalg.inv(reference.ar_covariance(phi, n, steps))
    np.testing.assert_allclose(Z.T @ A @ Z, equations.A[0, 0], rtol=1e-6, atol=1e-6)
    # The last round's prior is made of its coefficients: one more solve has almost the same.
    exact = reference.season_loadings(y, steps, frequencies, phi, prior + 1e-6)[1:]
    np.testing.assert_allclose(loadings[0], exact, rtol=0.05, atol=0.05 * np.abs(exact).max())


def test_rows_without_times_are_shifted_to_where_the_seasons_fit(rng):
    n = 24 * 30
    W = cycles(rng, n, 5, 24, size=2.0)
    seasons = found(W, even_clock(n))
    window = W[100:148]
    times = even_clock(48).times
    shift = best_shift(seasons, window, times, 1.0)
    assert shift % 24 == (100 + 47 - (n - 1)) % 24
    assert best_shift(seasons, W[-48:], times, 1.0) == 0.0
    assert best_shift(None, window, times, 1.0) == 0.0
    assert best_shift(seasons, np.full((5, 5), np.nan), times[:5], 1.0) == 0.0


def test_few_rows_have_no_seasons_and_no_errors(rng):
    for n in (1, 2, 5, 30):
        assert found(rng.standard_normal((n, 3))) is None
    assert found(np.full((200, 3), np.nan)) is None
    assert found(np.zeros((200, 3))) is None
