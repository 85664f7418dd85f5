"""A score that cannot be fooled: entries are judged that did not make their row's code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .blocks import dense_with_holes
from .state import Info

# Rows that are judged together, and into how many parts the features are cut: a row hides one.
ROWS, FOLDS = 1024, 4

Predict = Callable[[NDArray[Any], NDArray[np.bool_]], NDArray[Any]]
"""What is predicted of hidden features (n, h), from visible ones (n, m − h) and which these are."""


def judge_hidden_parts(
    X: Any, center: NDArray[np.float64], unit: NDArray[np.float64], predict: Predict
) -> Info:
    """Squared errors of hidden entries, and the squares of those entries, both over unit².

    Each row shows three quarters of the features and is judged by the others; which quarter that is
    changes from row to row.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n_samples, n_features)
    center, unit : ndarray of shape (n_features,)
        What entries are measured from, and in.
    predict : callable
    """
    m = X.shape[1]
    fold = np.random.default_rng(0).permutation(m) % min(FOLDS, m)
    residual = energy = 0.0
    for start in range(0, X.shape[0], ROWS):
        rows = X[start : start + ROWS]
        rows = dense_with_holes(rows) if scipy.sparse.issparse(rows) else rows
        for number in range(min(FOLDS, m)):
            hidden, here = fold == number, rows[number :: min(FOLDS, m)]
            truth = (here[:, hidden].astype(np.float64) - center[hidden]) / unit[hidden]
            errors = truth
            if not hidden.all() and len(here):
                guess = predict(np.ascontiguousarray(here[:, ~hidden]), ~hidden)
                errors = truth - (guess - center[hidden]) / unit[hidden]
            residual += float(np.nansum(errors**2))
            energy += float(np.nansum(truth**2))
    return Info(residual, energy)
