"""Sparse matrices as users make them: absent is missing, however what is there is stored."""

import numpy as np
import pytest
import scipy.sparse

from omfb import OMFB

from ...making import rows
from .test_numbers import ENGINES, make


def fitted(X, engine=OMFB, **parameters):
    return make(engine, 3, **parameters).fit(X)


@pytest.mark.parametrize("batch_size", [1, 5])
@ENGINES
def test_nan_stored_in_a_sparse_matrix_is_missing(rng, batch_size, engine):
    Y = rows(rng, 60, 12)
    hidden = rng.random(Y.shape) < 0.2
    X = np.where(hidden, np.nan, Y)
    stored = scipy.sparse.csr_array(Y)
    stored.data = X.ravel()
    dense, sparse = (fitted(each, engine, batch_size=batch_size) for each in (X, stored))
    assert np.allclose(sparse.components_, dense.components_, rtol=1e-9)
    assert np.allclose(sparse.complete(stored), dense.complete(X), rtol=1e-9)


def test_nan_stored_in_a_mostly_empty_sparse_matrix_is_missing_too(rng):
    X = np.where(rng.random((60, 12)) < 0.3, rows(rng, 60, 12), 0.0)
    stored = scipy.sparse.csr_array(X)
    stored.data[1] = np.nan
    absent = stored.tocoo()
    seen = ~np.isnan(absent.data)
    absent = scipy.sparse.csr_array(
        (absent.data[seen], (absent.row[seen], absent.col[seen])), shape=X.shape
    )
    expected = fitted(absent, shuffle=False).components_
    assert np.isfinite(expected).all()
    assert np.allclose(fitted(stored, shuffle=False).components_, expected, rtol=1e-9)


@ENGINES
def test_duplicate_entries_of_a_sparse_matrix_are_summed(rng, engine):
    row, column = np.repeat(np.arange(20), 6), np.tile(np.arange(6), 20)
    values = rng.normal(size=120)
    once = scipy.sparse.coo_array((values, (row, column)), shape=(20, 6)).tocsr()
    indptr = 2 * once.indptr
    twice = scipy.sparse.csr_array(
        (np.repeat(0.5 * values, 2), np.repeat(once.indices, 2), indptr), shape=(20, 6)
    )
    before = twice.data.copy(), twice.indices.copy()
    a, b = fitted(once, engine), fitted(twice, engine)
    assert np.allclose(a.components_, b.components_)
    assert np.allclose(b.complete(twice), a.complete(once))
    assert np.array_equal(twice.data, before[0])
    assert np.array_equal(twice.indices, before[1])


def test_unsorted_indices_of_a_sparse_matrix_do_not_matter(rng):
    Y = rows(rng, 20, 6)
    usual = scipy.sparse.csr_array(Y)
    reverse = scipy.sparse.csr_array(
        (Y[:, ::-1].ravel(), np.tile(np.arange(6)[::-1], 20), usual.indptr), shape=Y.shape
    )
    indices = reverse.indices.copy()
    assert np.allclose(fitted(reverse).components_, fitted(usual).components_)
    assert np.array_equal(reverse.indices, indices)
