"""Rows cut into pieces for the kernels, and rows that cannot be used."""

import pickle

import numpy as np
import pytest
import scipy.sparse

from omfb.core.blocks import (
    Alike,
    Complete,
    UnusableError,
    alike,
    check_finite,
    dense_rows,
    dense_with_holes,
    largest_allowed,
    pieces,
    sparse_rows,
    sparse_with_holes,
)


def test_pieces_are_complete_rows_or_observed_entries(rng):
    X = rng.normal(size=(10, 4))
    X[7, 2] = np.nan
    first, second, last = pieces(X, 4)
    assert isinstance(first, Complete)
    np.testing.assert_allclose(first.squares, np.sum(X[:4] ** 2, axis=1))
    assert (len(second), len(second.values)) == (4, 15)
    assert isinstance(last, Complete)
    assert len(last) == 2


def test_consecutive_rows_with_equal_patterns_are_grouped(rng):
    X = rng.normal(size=(30, 200))
    X[5:25, :7] = np.nan
    X[0, 3] = X[1, 4] = X[2, 5] = X[3, 6] = X[4, 8] = np.nan
    before, block, after = alike(dense_rows(X), r=20)
    assert isinstance(block, Alike)
    assert (len(before), len(block), len(after)) == (5, 20, 5)
    np.testing.assert_array_equal(block.features, np.arange(7, 200))
    np.testing.assert_array_equal(block.Y, X[5:25, 7:])
    np.testing.assert_array_equal(block.rows(18).values, X[23:25, 7:].ravel())


@pytest.mark.parametrize("kind", ["csr_array", "coo_array", "csc_array"])
def test_absent_entries_and_stored_nan_are_missing(kind, rng):
    X = np.where(rng.random((6, 5)) < 0.5, rng.normal(size=(6, 5)), np.nan)
    stored = getattr(scipy.sparse, kind)(sparse_with_holes(X))
    np.testing.assert_array_equal(dense_with_holes(stored), X)
    stored.data[0] = np.nan
    assert len(sparse_rows(stored).values) == np.count_nonzero(~np.isnan(X)) - 1


@pytest.mark.parametrize("sparse", [False, True])
def test_infinity_is_located_by_row_and_column_from_1(sparse, rng):
    X = rng.normal(size=(6, 5))
    X[3, 2] = -np.inf
    with pytest.raises(UnusableError, match=r"^X contains infinity at row 4, column 3 \(the"):
        sparse_rows(scipy.sparse.csr_array(X)) if sparse else dense_rows(X)
    with pytest.raises(UnusableError, match="row 14, column 3"):
        check_finite(X, first_row=10)


def test_values_whose_squares_overflow_are_refused():
    X = np.full((2, 4), 1e200)
    with pytest.raises(UnusableError, match="values up to 1e\\+200, too large for float64"):
        check_finite(X)
    check_finite(X, squares=False)
    assert np.isfinite(4 * largest_allowed(X) ** 2 * 0.999)


def test_an_error_can_come_from_another_process():
    error = pickle.loads(pickle.dumps(UnusableError("contains infinity.")))
    assert (str(error), error.problem) == ("X contains infinity.", "contains infinity.")
