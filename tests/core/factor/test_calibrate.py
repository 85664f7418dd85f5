"""Intervals of short tables, calibrated by the tables' own gaps."""

import numpy as np

from omfb import OMFBImputer
from omfb.core.factor.calibrate import calibrated_by_moving


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


def test_intervals_nearly_hold_in_long_gaps_of_a_table_that_drifts():
    """Entries that single rows hide would make them so narrow that 60 % are inside."""
    shares = []
    for seed in range(4):
        Y, X = walks(seed)
        low, high = OMFBImputer(random_state=0).fit(X).interval(X, 0.9)
        shares.append(np.mean(((low <= Y) & (high >= Y))[np.isnan(X)]))
    assert 0.82 < np.mean(shares) < 0.95


def test_intervals_nearly_hold_in_tables_of_some_hundred_entries():
    """By the features solved again alone, 77 % would be inside."""
    shares = []
    for seed in range(12):
        Y, X = walks(seed, n=60, m=8, gap=8)
        low, high = OMFBImputer(random_state=0).fit(X).interval(X, 0.9)
        shares.append(np.mean(((low <= Y) & (high >= Y))[np.isnan(X)]))
    assert 0.82 < np.mean(shares) < 0.95


def test_too_few_gaps_say_nothing():
    Y, _ = walks(0)
    Y[5, 3] = np.nan
    model = OMFBImputer(random_state=0).fit(Y).learner_.state
    assert calibrated_by_moving(model, Y) is None
