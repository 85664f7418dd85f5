"""NMF against its formula, entry by entry, and against scikit-learn's."""

import numpy as np
import pytest
import sklearn.decomposition

from omfb.paper.competitors import NMF
from omfb.paper.competitors.nmf import updated_codes

from .making import low_rank, objective, with_missing


def start(rng, X, r):
    return rng.random((len(X), r)) + 0.1, rng.random((r, X.shape[1])) + 0.1


def test_nmf_is_scikit_learns_where_nothing_is_missing(rng):
    X = rng.random((30, 12))
    W, H = start(rng, X, 4)
    theirs = sklearn.decomposition.NMF(4, solver="mu", init="custom", max_iter=50, tol=0.0)
    their_codes = theirs.fit_transform(X, W=W.copy(), H=H.copy())
    ours = NMF(4, max_iter=50, init=(W, H)).fit(X)
    # Same formula, other order of the sums: rounding, grown over 50 iterations.
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-9)
    np.testing.assert_allclose(ours.codes_, their_codes, rtol=1e-9)
    fresh = rng.random((5, 12))
    np.testing.assert_allclose(ours.transform(fresh), theirs.transform(fresh), rtol=1e-9)


def test_nmf_is_its_formula_entry_by_entry(rng):
    X = with_missing(rng.random((6, 5)), rng)
    W, H = start(rng, X, 2)
    expected_W, expected_H = W.copy(), H.copy()
    for i in range(6):
        seen = np.flatnonzero(~np.isnan(X[i]))
        for k in range(2):
            above = sum(X[i, j] * H[k, j] for j in seen)
            below = sum((W[i] @ H[:, j]) * H[k, j] for j in seen)
            expected_W[i, k] *= above / below
    for j in range(5):
        seen = np.flatnonzero(~np.isnan(X[:, j]))
        for k in range(2):
            above = sum(X[i, j] * expected_W[i, k] for i in seen)
            below = sum((expected_W[i] @ H[:, j]) * expected_W[i, k] for i in seen)
            expected_H[k, j] *= above / below
    model = NMF(2, max_iter=1, init=(W, H)).fit(X)
    np.testing.assert_allclose(model.codes_, expected_W, rtol=1e-12)
    np.testing.assert_allclose(model.components_, expected_H, rtol=1e-12)


def test_nmf_with_a_mask_of_ones_is_nmf_without(rng):
    X = rng.random((8, 6))
    W, H = start(rng, X, 3)
    masked = updated_codes(X, np.ones_like(X), W, H)
    np.testing.assert_allclose(masked, updated_codes(X, None, W, H), rtol=1e-12)


def test_nmf_objective_never_rises(rng):
    X = with_missing(rng.random((40, 15)), rng)
    model = NMF(4, max_iter=1, warm_start=True, random_state=0)
    errors = [objective(model.fit(X), X) for _ in range(100)]
    assert (np.diff(errors) <= 1e-12 * errors[0]).all()
    assert errors[-1] < 0.5 * errors[0]


def test_nmf_fills_what_is_missing(rng):
    truth = low_rank(rng)
    X = with_missing(truth, rng)
    filled = NMF(3, max_iter=3000, random_state=0).fit(X).complete(X)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.abs(filled - truth).max() < 0.05


def test_nmf_refuses_negative_numbers_and_unknown_starts():
    with pytest.raises(ValueError, match="Negative values"):
        NMF(1).fit([[1.0, -1.0]])
    with pytest.raises(ValueError, match="init"):
        NMF(1, init="nndsvd").fit([[1.0, 1.0]])
