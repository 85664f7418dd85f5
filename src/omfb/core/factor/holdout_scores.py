"""Scores on held-out entries.

They are predicted from the rest of their rows, and nothing that predicts them has seen them, so
their errors are honest. They give the width of intervals (a histogram of |error| over predictive
deviation, which makes them *conformal*), the running error, and votes on dropping outliers.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conformal import N_BINS, binned
from ..linalg.rows import check_finite_step, gram
from .e_step import encode_rows, predictive_variances
from .holdout import HoldoutRows, hold_out, owners
from .robust import clip_entries, outlier_limit
from .state import State, evolve
from .stats import Matrix, Vector
from .whiten import Whitened

# Rows that `rescore` scores together.
TOGETHER = 256
# Errors beyond this cannot be squared.
SQUARED = -1e150, 1e150
# A histogram loses 2 / (scored rows + 50) of itself with each scored row.
ROWS_BEFORE = 50.0


def score(state: State, rows: HoldoutRows | None) -> State:
    """The state with the scores of some rows."""
    if rows is None:
        return state
    C = state.coding.astype(np.float64, copy=False)
    shown, (starts, which, truth), position = rows.shown, rows.held_out, rows.position
    check_finite_step(truth)  # no product of the step has them
    n, owner, precisions = len(position), owners(rows.held_out), rows.shown_precisions
    given = Whitened(
        len(C), None, None, np.diff(shown.starts), clip_entries(state, shown, precisions),
        precisions=precisions,
    )  # fmt: skip
    codes = encode_rows(state, given, limit=outlier_limit(state), keep_covariances=True)
    variance = predictive_variances(state, codes.X, codes.covariances, starts, which)
    size, weight = (state.params.noise_std / state.params.scale)[which], 1.0 / np.diff(starts)
    if rows.held_out_precisions is not None:
        variance += 1.0 / rows.held_out_precisions - 1.0
        size = size * np.sqrt(rows.held_out_precisions)
    if rows.weights is not None:
        weight = weight * rows.weights
    errors = truth - _predicted(C, which, codes.X[owner])
    of_mean = truth - state.one * C[which, -1]
    if state.outliers.drop:  # held-out outliers cannot be predicted, and do not count
        limit = state.config.hyper.outlier_limit
        size = np.where(np.abs(errors) > limit * np.sqrt(variance), 0.0, size)
    fades = 1.0 - 2.0 / (state.holdout.n_scored + np.arange(n) + ROWS_BEFORE)
    left = np.append(np.cumprod(fades[:0:-1])[::-1], 1.0)[position]  # after the rows behind it
    histogram = np.prod(fades) * state.holdout.histogram
    histogram += binned(np.abs(errors) / np.sqrt(variance), (left * weight)[owner])
    squares = [np.clip(e * size, *SQUARED) ** 2 for e in (errors, of_mean)]
    now = [weight * np.bincount(owner, each, n) for each in squares]
    sse = np.array([state.holdout.sse[0] + np.sum(now, axis=1), state.holdout.sse[1]])
    votes = state.outliers.votes
    if state.outliers.detect:
        votes = np.prod(fades) * votes + _votes(state, C, rows, given, codes.X, left)
    n_scored = state.holdout.n_scored + n
    return evolve(state, histogram=histogram, sse=sse, votes=votes, n_scored=n_scored)


def _votes(
    state: State, C: Matrix, rows: HoldoutRows, given: Whitened, X: Matrix, left: Vector
) -> Vector:
    """Votes on dropping outliers of rows, faded to what is left of each.

    The codes of the rows by the policy are X.
    """
    _, which, truth = rows.held_out
    left = left if rows.weights is None else left * rows.weights
    owner, n = owners(rows.held_out), len(rows.position)
    size = (state.params.noise_std / state.params.scale)[which]
    if rows.held_out_precisions is not None:
        size = size * np.sqrt(rows.held_out_precisions)
    drops = state.outliers.drop
    limit = None if drops else state.config.hyper.outlier_limit
    other = encode_rows(state, given, limit=limit).X

    def squared_errors(X: Matrix) -> Vector:
        errors = np.clip((truth - _predicted(C, which, X[owner])) * size, *SQUARED)
        return np.bincount(owner, errors**2, n).astype(np.float64, copy=False)

    plain, dropping = map(squared_errors, (other, X) if drops else (X, other))
    vote = (plain - dropping) / np.maximum(plain + dropping, 1e-300)
    return np.array([np.sum(left), np.sum(left * vote), np.sum(left * vote**2)])


def _predicted(C: Matrix, which: NDArray[np.int32], X: Matrix) -> Vector:
    """Predictions of the features `which`, one for each code."""
    return np.einsum("ij,ij->i", C[which], X)


def rescore(state: State, X: Any, numbers: NDArray[np.int64] | None = None) -> State:
    """The state with scores of X alone: all its rows that hold out are scored.

    Numbers that are not given are counted from 0.
    """
    numbers = np.arange(X.shape[0]) if numbers is None else numbers
    fresh = evolve(
        state, histogram=np.zeros(N_BINS), sse=np.zeros((2, 2)), n_scored=0, C_batch=None,
        G=gram(state.params.C), detect=False,
    )  # fmt: skip
    for start in range(0, X.shape[0], TOGETHER):
        here = slice(start, start + TOGETHER)
        fresh = score(fresh, hold_out(fresh, X[here], numbers[here], score_all=True)[1])
    return fresh
