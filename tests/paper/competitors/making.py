"""Rows that the tests of the competitors share."""

import numpy as np


def with_missing(X, rng, share=0.2):
    X = X.copy()
    X[rng.random(X.shape) < share] = np.nan
    return X


def low_rank(rng, n=60, m=25, r=3):
    return rng.random((n, r)) @ rng.random((r, m))


def objective(model, X):
    return np.nansum((X - model.codes_ @ model.components_) ** 2)
