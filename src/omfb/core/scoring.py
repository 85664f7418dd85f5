"""Scoring on held-out entries: a row is encoded without the entries that it is scored on."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .blocks import dense_with_holes
from .info import Info
from .linalg.threads import team

# Number of folds that the features are cut into; a row holds out one of them.
FOLDS = 8
# Entries scored together: few enough that they are still in the cache when held-out ones are read.
ENTRIES, ROWS = 1 << 18, 64
# For an estimate of the work per entry, which decides on threads.
SOME_COMPONENTS = 8

Predict = Callable[[NDArray[Any]], NDArray[Any]]
"""Predictions of the held-out features (n, h) of rows (n, m)."""


def score_held_out_features(
    X: Any, center: NDArray[np.float64], unit: NDArray[np.float64],
    predicting: Callable[[NDArray[np.bool_]], Predict], absent: float = np.nan,
) -> Info:  # fmt: skip
    """Squared errors of held-out entries, and the squares of these entries, both over unit².

    Each row holds out an eighth of the features; which eighth changes from row to row.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n_samples, n_features)
    center, unit : ndarray of shape (n_features,)
        Entries are measured as (entry − center) / unit.
    predicting : callable
        Called with the mask of the visible features; returns a function that predicts the others.
    absent : float
        What the absent entries of a sparse X are: NaN (missing) or 0.
    """
    n, m = X.shape
    length = max(ROWS, ENTRIES // m)
    n_folds = min(FOLDS, m)
    fold = folds(m)
    sums = [Info(0.0, 0.0)] * n_folds

    @np.errstate(over="ignore", invalid="ignore")  # `Info.plus` handles it
    def score_fold(number: int) -> None:
        held_out = fold == number
        which, middle, measure = np.flatnonzero(held_out), center[held_out], unit[held_out]
        predict = predicting(~held_out)
        for start in range(0, n, length * n_folds):
            rows = X[start : start + length * n_folds][number::n_folds]
            if rows.shape[0] == 0:
                continue
            if scipy.sparse.issparse(rows):
                rows = rows.toarray() if absent == 0.0 else dense_with_holes(rows)
            predicted = predict(rows) if n_folds > 1 else middle
            truth = rows.take(which, axis=1).astype(np.float64, copy=False)
            energy = _energy(truth - middle if middle.any() else truth, measure)
            residual = _energy(np.subtract(truth, predicted, out=truth), measure)
            sums[number] = sums[number].plus(Info(residual, energy))

    with team(n * m * SOME_COMPONENTS) as helpers:
        helpers.run(score_fold, n_folds)
    return reduce(Info.plus, sums)


def folds(n_features: int) -> NDArray[np.int64]:
    """The fold of each feature: row t holds out fold t modulo the number of folds."""
    return np.random.default_rng(0).permutation(n_features) % min(FOLDS, n_features)


def _energy(errors: NDArray[np.float64], unit: NDArray[np.float64]) -> float:
    """Sum of squares over unit² of the entries that are not missing."""
    if (unit != 1.0).any():
        errors = errors / unit
    total = float(np.vdot(errors, errors))
    return total if np.isfinite(total) else float(np.nansum(np.square(errors)))
