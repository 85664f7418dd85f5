"""Compiled posteriors of codes equal the naive equations, with and without outliers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.linalg.observed import compressed
from omfb.core.linalg.posterior import FEW_OF, code_rows, count_systems, spread_rows

from ... import reference_factor as reference


def problem(seed, n=12, m=8, r=3, missing=0.3):
    """Dictionary, uncertainty of its rows, shares and rows, all in units of the noise."""
    rng = np.random.default_rng(seed)
    C = 2.0 * rng.standard_normal((m, r + 1))
    root = 0.2 * rng.standard_normal((r + 1, r + 1))
    codes = np.column_stack([rng.standard_normal((n, r)), np.ones(n)])
    Y = codes @ C.T + rng.standard_normal((n, m))
    Y[rng.random(Y.shape) < missing] = np.nan
    return C, root @ root.T, rng.uniform(0.1, 1.0, m), Y


def coded(C, Sigma, shares, Y, limit=None, one=1.0):
    """Codes, covariances, their weighted sum, residuals, degrees of freedom, dropped entries."""
    (n, m), R = Y.shape, C.shape[1]
    rows = compressed(Y)
    X = np.zeros((n, R))
    X[:, -1] = one
    covariances, total = np.empty((n, R - 1, R - 1)), np.zeros((R - 1, R - 1))
    residual, dof = np.empty(n), np.empty(n)
    dropped, weights = np.zeros(len(rows.values), bool), np.linspace(0.5, 1.0, n)
    code_rows(
        C, C.T @ C, Sigma, 1.0 / shares, limit, *rows, 0, n, np.empty((0, R)), np.empty(0), X,
        covariances, total, weights, residual, dof, dropped, np.ones(m), 0, np.empty((0, 2)),
    )  # fmt: skip
    np.testing.assert_allclose(total, np.einsum("t,tij->ij", weights, covariances))
    gone = np.zeros((n, m), bool)
    gone[np.repeat(np.arange(n), np.diff(rows.starts)), rows.features] = dropped
    return X, covariances, residual, dof, gone


@given(
    seed=st.integers(0, 999), r=st.integers(1, 4), one=st.sampled_from([0.0, 1.0]),
    missing=st.sampled_from([0.0, 0.4, 1.0]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_codes_are_what_their_equations_say(seed, r, one, missing):
    C, Sigma, shares, Y = problem(seed, r=r, missing=missing)
    found = coded(C, Sigma, shares, Y, one=one)
    for t, y in enumerate(Y):
        expected = reference.code(C, Sigma, shares, one, y)
        for values, value in zip(found, expected, strict=False):
            np.testing.assert_allclose(values[t], value, rtol=1e-7, atol=1e-9)
    assert not found[-1].any()


def test_rows_that_miss_the_same_entries_share_a_system():
    C, Sigma, shares, Y = problem(1, n=9)
    Y[1:4] = np.where(np.isnan(Y[0]), np.nan, np.nan_to_num(Y[1:4], nan=0.5))
    Y[6, 0], Y[7, 0] = np.nan, 1.0
    rows = compressed(Y)
    patterns = np.isnan(Y)
    expected = 1 + np.any(patterns[1:] != patterns[:-1], axis=1).sum()
    assert count_systems(rows.starts, rows.features) == expected < 9
    found = coded(C, Sigma, shares, Y)
    for t, y in enumerate(Y):
        np.testing.assert_allclose(found[0][t], reference.code(C, Sigma, shares, 1.0, y)[0])


@given(seed=st.integers(0, 999), feature=st.integers(0, 19), sign=st.sampled_from([-1.0, 1.0]))
@settings(max_examples=30, deadline=None)
def test_a_spike_counts_as_missing(seed, feature, sign):
    """Code, covariance and residual are those of the row without it.

    Degrees of freedom are nearly so: the kernel subtracts the entry's leverage.
    """
    C, Sigma, shares, Y = problem(seed, n=3, m=20, missing=0.0)
    Sigma = 0.0 * Sigma  # a dropped entry leaves its part of w Σ in the system
    Y[1, feature] += 60.0 * sign
    *found, gone = coded(C, Sigma, shares, Y, limit=6.0)
    assert np.argwhere(gone).tolist() == [[1, feature]]
    without = np.where(gone, np.nan, Y)
    for t, y in enumerate(without):
        expected = reference.code(C, Sigma, shares, 1.0, y)
        for values, value in zip(found[:-1], expected[:-1], strict=True):
            np.testing.assert_allclose(values[t], value, rtol=1e-6, atol=1e-7)
        np.testing.assert_allclose(found[-1][t], expected[-1], rtol=0.05)


def test_a_row_with_many_outliers_keeps_all_of_them():
    """It shows something new; at most a quarter of the entries is dropped, and one more."""
    C, Sigma, shares, Y = problem(2, n=1, m=40, missing=0.0)
    rng = np.random.default_rng(0)
    for count, kept in ((3, False), (12, True)):
        spiked = Y.copy()
        at = rng.permutation(40)[:count]
        spiked[0, at] += 80.0 * rng.choice([-1.0, 1.0], count)
        *found, gone = coded(C, Sigma, shares, spiked, limit=6.0)
        if kept:
            assert not gone.any()
            plain = coded(C, Sigma, shares, spiked)
            for one, other in zip(found, plain, strict=False):
                np.testing.assert_allclose(one, other, rtol=1e-9)
        else:
            assert set(np.flatnonzero(gone[0])) == set(at)
        assert gone.sum() <= 1 + 40 // FEW_OF


def test_a_spike_that_makes_its_own_code_counts_as_missing():
    """Two other entries hardly speak of the code, so it follows the spike and leaves no residual.

    Only the prior, of which the code is far, shows that the spike is an outlier.
    """
    C, shares = np.array([[9.0, 0.0], [0.1, 0.0], [0.1, 0.0]]), np.ones(3)
    Y = np.array([[-110.0, 0.3, -0.2]])
    X, *_, residual, _, gone = coded(C, np.zeros((2, 2)), shares, Y, limit=6.0)
    assert gone.tolist() == [[True, False, False]]
    assert abs(X[0, 0]) < 0.1
    assert residual[0] < 1.0


def test_rows_after_one_with_outliers_do_not_inherit_its_system():
    C, Sigma, shares, Y = problem(3, n=4, m=20, missing=0.0)
    Y[1, 4] += 90.0
    found = coded(C, Sigma, shares, Y, limit=6.0)
    assert found[-1].any(axis=1).tolist() == [False, True, False, False]
    for t in (0, 2, 3):
        expected = reference.code(C, Sigma, shares, 1.0, Y[t])
        np.testing.assert_allclose(found[0][t], expected[0])
        np.testing.assert_allclose(found[1][t], expected[1])


@pytest.mark.parametrize("shared", [False, True])
def test_predictive_variances_are_what_their_equations_say(shared):
    C, Sigma, shares, Y = problem(4)
    if shared:
        Y[:] = np.where(np.isnan(Y[0]), np.nan, np.nan_to_num(Y))
    X, covariances, *_ = coded(C, Sigma, shares, Y)
    n, m = Y.shape
    starts, features = m * np.arange(n + 1), np.tile(np.arange(m, dtype=np.int32), n)
    found = np.empty(n * m)
    H = covariances[:1] if shared else covariances
    spread_rows(C, H, Sigma, X, 1.0 / shares, starts, features, 0, n, found)
    for t, y in enumerate(Y):
        _, variance = reference.predictive(C, Sigma, shares, 1.0, y)
        np.testing.assert_allclose(found.reshape(n, m)[t], variance, rtol=1e-8)
