"""A score that cannot be fooled: entries are judged that did not make their row's code."""

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .blocks import dense_with_holes
from .state import Info

# Rows that are judged together, and into how many parts the features are cut: a row hides one.
ROWS, FOLDS = 2048, 8

Predict = Callable[[NDArray[Any], NDArray[np.bool_]], NDArray[Any]]
"""What is predicted of hidden features (n, h), from rows (n, m) and which features are visible."""


def judge_hidden_parts(
    X: Any, center: NDArray[np.float64], unit: NDArray[np.float64], predict: Predict
) -> Info:
    """Squared errors of hidden entries, and the squares of those entries, both over unit².

    Each row hides an eighth of the features and is judged by these; which eighth that is changes
    from row to row.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n_samples, n_features)
    center, unit : ndarray of shape (n_features,)
        What entries are measured from, and in.
    predict : callable
    """
    m = X.shape[1]
    n_folds = min(FOLDS, m)
    fold = np.random.default_rng(0).permutation(m) % n_folds
    residual = energy = 0.0
    for number in range(n_folds):
        hidden = fold == number
        which, middle = np.flatnonzero(hidden), center[hidden]
        for start in range(0, X.shape[0], ROWS * n_folds):
            rows = X[start : start + ROWS * n_folds][number::n_folds]
            if rows.shape[0] == 0:
                continue
            rows = dense_with_holes(rows) if scipy.sparse.issparse(rows) else rows
            rows = np.ascontiguousarray(rows)
            truth = rows[:, which].astype(np.float64)
            away = truth - middle
            errors = away
            if n_folds > 1:
                errors = truth - predict(rows, ~hidden)
            residual += float(np.sum(_squares(errors / unit[hidden])))
            energy += float(np.sum(_squares(away / unit[hidden])))
    return Info(residual, energy)


def _squares(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums of squares by column, of what is not missing."""
    total: NDArray[np.float64] = np.einsum("ti,ti->i", errors, errors)
    if np.isfinite(total).all():
        return total
    known: NDArray[np.float64] = np.nansum(errors**2, axis=0)
    return known
