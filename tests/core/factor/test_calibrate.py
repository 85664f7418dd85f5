"""Intervals of short tables, calibrated by the tables' own gaps."""

import numpy as np
import pytest

from omfb import OMFBImputer
from omfb.core.factor.calibrate import held_out
from omfb.core.factor.hyper import Hyper
from omfb.core.factor.whiten import pattern_of
from omfb.core.linalg.rows import Rows


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
