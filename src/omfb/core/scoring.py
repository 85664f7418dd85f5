"""A score that cannot be fooled: entries are judged that did not make their row's code."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .blocks import dense_with_holes
from .info import Info
from .linalg.threads import team

# Into so many parts the features are cut: a row hides one.
FOLDS = 8
# Entries that are judged together: few enough to be in the cache still when the hidden are picked.
ENTRIES, ROWS = 1 << 18, 64
# To guess the work of an entry: threads share the folds, whose products are small.
SOME_COMPONENTS = 8

Predict = Callable[[NDArray[Any]], NDArray[Any]]
"""What is predicted of the hidden features (n, h) of rows (n, m)."""


def judge_hidden_parts(
    X: Any, center: NDArray[np.float64], unit: NDArray[np.float64],
    predicting: Callable[[NDArray[np.bool_]], Predict],
) -> Info:  # fmt: skip
    """Squared errors of hidden entries, and the squares of those entries, both over unit².

    Each row hides an eighth of the features and is judged by these; which eighth that is changes
    from row to row.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n_samples, n_features)
    center, unit : ndarray of shape (n_features,)
        What entries are measured from, and in.
    predicting : callable
        Given which features are visible, gives what predicts the others from these.
    """
    n, m = X.shape
    length = max(ROWS, ENTRIES // m)
    n_folds = min(FOLDS, m)
    fold = folds(m)
    sums = [Info(0.0, 0.0)] * n_folds

    @np.errstate(over="ignore", invalid="ignore")  # `Info.plus` sees it
    def judge(number: int) -> None:
        hidden = fold == number
        which, middle, measure = np.flatnonzero(hidden), center[hidden], unit[hidden]
        predict = predicting(~hidden)
        for start in range(0, n, length * n_folds):
            rows = X[start : start + length * n_folds][number::n_folds]
            if rows.shape[0] == 0:
                continue
            rows = dense_with_holes(rows) if scipy.sparse.issparse(rows) else rows
            predicted = predict(rows) if n_folds > 1 else middle
            truth = rows.take(which, axis=1).astype(np.float64, copy=False)
            energy = _energy(truth - middle if middle.any() else truth, measure)
            residual = _energy(np.subtract(truth, predicted, out=truth), measure)
            sums[number] = sums[number].plus(Info(residual, energy))

    with team(n * m * SOME_COMPONENTS) as helpers:
        helpers.run(judge, n_folds)
    return reduce(Info.plus, sums)


def folds(n_features: int) -> NDArray[np.int64]:
    """The part that each feature belongs to: row t hides those of part t modulo their number."""
    return np.random.default_rng(0).permutation(n_features) % min(FOLDS, n_features)


def _energy(errors: NDArray[np.float64], unit: NDArray[np.float64]) -> float:
    """Sum of squares over unit², of what is not missing."""
    if (unit != 1.0).any():
        errors = errors / unit
    total = float(np.vdot(errors, errors))
    return total if np.isfinite(total) else float(np.nansum(np.square(errors)))
