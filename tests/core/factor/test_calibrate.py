"""Intervals of short tables, calibrated by the tables' own gaps."""

import numpy as np
import pandas as pd
import pytest

from omfb import OMFBImputer
from omfb.core.factor.calibrate import held_out, refine_and_calibrate
from omfb.core.factor.check import check_state
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.hyper import Hyper
from omfb.core.factor.restrict import with_only
from omfb.core.factor.step import end_batch, step
from omfb.core.factor.whiten import pattern_of
from omfb.core.linalg.rows import Rows

from .making import learned, table


def walks(seed, n=600, m=30, gap=60):
    """Columns that walk together and a little alone, each off for two long gaps."""
    rng = np.random.default_rng(seed)
    together = np.cumsum(rng.normal(size=(n, 4)), axis=0) @ rng.normal(size=(4, m))
    Y = together + 0.5 * np.cumsum(rng.normal(size=(n, m)), axis=0)
    X = Y.copy()
    for column in X.T:
        for start in rng.integers(0, n - gap, 2):
            column[start : start + gap] = np.nan
    return Y, X


@pytest.mark.parametrize(("n", "m", "gap", "seeds"), [(600, 30, 60, 3), (60, 8, 8, 12)])
def test_intervals_nearly_hold_in_long_gaps_of_a_table_that_drifts(n, m, gap, seeds):
    """Entries that single rows hide would make them so narrow that 60 % are inside."""
    shares = []
    for seed in range(seeds):
        Y, X = walks(seed, n, m, gap)
        low, high = OMFBImputer(random_state=0).fit(X).interval(X, 0.9)
        shares.append(np.mean(((low <= Y) & (high >= Y))[np.isnan(X)]))
    assert 0.82 < np.mean(shares) < 0.96


def rows_of(X):
    seen = ~np.isnan(X)
    return Rows(*pattern_of(seen), X[seen]), seen


def test_what_is_held_out_are_the_tables_gaps_moved():
    _, X = walks(0)
    rows, seen = rows_of(X)
    usable = np.ones(X.shape[1], bool)
    usable[3] = False
    away = np.zeros(X.shape, bool)
    away[seen] = held_out(rows, usable, 0, Hyper())
    moved = np.roll(~seen, len(X) // 3, axis=0) & seen
    assert not away[:, 3].any()
    np.testing.assert_array_equal(away[:, usable], moved[:, usable])


def test_in_time_gaps_are_held_out_in_one_piece():
    """Half of the table is missing, so half of the gaps are: those that begin together."""
    X = np.random.default_rng(0).standard_normal((400, 6))
    for start in range(0, 400, 20):
        X[start : start + 10, :3] = np.nan
    for start in range(7, 390, 20):
        X[start : start + 10, 3:] = np.nan
    rows, seen = rows_of(X)
    away = np.zeros(X.shape, bool)
    away[seen] = held_out(rows, np.ones(6, bool), 0, Hyper(), in_time=True)
    moved = np.roll(~seen, 133, axis=0)
    for columns in (slice(0, 3), slice(3, 6)):
        edges = np.flatnonzero(np.diff(moved[:, columns.start].astype(int), prepend=0))
        for first, last in zip(edges[::2], edges[1::2], strict=False):
            usable = seen[first:last, columns]
            taken = away[first:last, columns]
            assert not taken.any() or (taken == usable).all()
    assert 0.3 < away.sum() / (moved & seen).sum() < 0.8


def test_at_most_half_of_a_column_is_held_out_in_one_piece():
    X = np.random.default_rng(0).standard_normal((100, 5))
    X[:80, 2] = np.nan
    rows, seen = rows_of(X)
    away = np.zeros(X.shape, bool)
    away[seen] = held_out(rows, np.ones(5, bool), 0, Hyper())
    assert np.flatnonzero(away[:, 2]).tolist() == list(range(80, 90))
    assert not away[:, [0, 1, 3, 4]].any()


def test_a_few_gaps_are_moved_to_several_places():
    X = np.random.default_rng(0).standard_normal((300, 5))
    X[:12, 1] = np.nan
    rows, _ = rows_of(X)
    assert held_out(rows, np.ones(5, bool), 0, Hyper()).sum() == 36


def test_too_few_gaps_leave_the_intervals_that_the_stream_had():
    Y, _ = walks(0)
    Y[5, 3] = np.nan
    model = OMFBImputer(random_state=0).fit(Y)
    assert model.learner_.state.posterior is not None
    assert model.learner_.state.holdout.n_scored > 0
    assert np.all(np.isfinite(model.interval(Y, 0.9)))


@pytest.mark.parametrize("wide", [False, True])
def test_series_that_wander_are_filled_better_than_by_a_line_and_intervals_hold(wide):
    """Prices: levels seem to share much by chance, what their changes share is real."""
    errors, lines, held = [], [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        n, m = (300, 60) if wide else (600, 10)
        changes = rng.standard_normal((n, 2)) @ rng.standard_normal((2, m))
        changes += 1.5 * rng.standard_normal((n, m))
        changes[rng.random((n, m)) < 0.004] *= 6.0
        Y = 100.0 + np.cumsum(changes + rng.normal(0.0, 0.1, m), axis=0)
        X = Y.copy()
        for column in X.T:
            for start in rng.integers(5, n - 25, n // 150):
                column[start : start + 20] = np.nan
        gone = np.isnan(X)
        model = OMFBImputer(random_state=0, temporal=True).fit(X)
        low, high = model.interval(X, 0.9)
        line = pd.DataFrame(X).interpolate().to_numpy()
        errors.append(np.mean((model.complete(X) - Y)[gone] ** 2))
        lines.append(np.mean((line - Y)[gone] ** 2))
        held.append(((low <= Y) & (high >= Y))[gone].mean())
    assert np.mean(errors) < (0.9 if wide else 0.95) ** 2 * np.mean(lines)
    assert 0.84 < np.mean(held) < 0.95


def test_features_that_were_never_observed_take_no_part_in_refinement():
    X = table(9, 300, 8, 0.2)
    wide = np.hstack([X[:, :3], np.full((300, 20), np.nan), X[:, 3:]])
    state = end_batch(learned(wide, FactorConfig(n_components=3)))
    known = state.features.known
    assert np.array_equal(known, ~np.isnan(wide).all(axis=0))
    after, _ = refine_and_calibrate(state, wide)
    check_state(after)
    few, _ = refine_and_calibrate(with_only(state, np.flatnonzero(known)), X)
    np.testing.assert_array_equal(after.C[known], few.C)
    np.testing.assert_array_equal(after.params.noise_std[known], few.params.noise_std)
    np.testing.assert_array_equal(after.posterior.covariances[known], few.posterior.covariances)
    np.testing.assert_array_equal(after.holdout.histogram, few.holdout.histogram)
    assert not after.C[~known].any()
    assert not after.posterior.covariances[~known].any()
    later = step(after, np.nan_to_num(wide, nan=1.0))[0]  # they are learned when they come
    assert later.features.known.all()
    assert np.isfinite(later.C).all()
