"""Rows and comparisons that the tests of the estimators share."""

import pickle

import numpy as np
import pytest
import scipy.sparse

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.datasets import make_ratings

ALL = pytest.mark.parametrize("estimator", [OMFB, OnlineFactorAnalysis, OMFBImputer])
DECOMPOSITIONS = pytest.mark.parametrize("estimator", [OMFB, OnlineFactorAnalysis])
PREDICTIVE = pytest.mark.parametrize("estimator", [OnlineFactorAnalysis, OMFBImputer])


def rows(rng, n=50, m=10, holes=0.0, dtype=np.float64):
    Y = rng.normal(size=(n, 3)) @ rng.normal(size=(3, m)) + 0.1 * rng.normal(size=(n, m))
    Y[rng.random(Y.shape) < holes] = np.nan
    return Y.astype(dtype)


def same(a, b, tolerance=1e-10):
    """Equal to rounding: over some fifty well-conditioned steps it stays far below this."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape == b.shape and np.abs(a - b).max() <= tolerance * np.abs(b).max()


def snapshot(model):
    """Everything a model holds, to compare bit by bit."""
    return pickle.dumps(model)


def sparse(X):
    row, column = np.nonzero(~np.isnan(X))
    return scipy.sparse.csr_array((X[row, column], (row, column)), shape=X.shape)


def generated_ratings(seed, n_users, n_items, n, selected=0.0):
    """Ratings by `make_ratings`, with strong components of a low rank."""
    users, items, ratings = make_ratings(
        n_users, n_items, n, n_components=2, noise=0.4, selection=selected, random_state=seed
    )
    order = np.lexsort((items, users))
    return users[order], items[order], ratings[order]
