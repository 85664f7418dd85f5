"""Predictions of rows that are consecutive in time.

Codes and each feature's own residual follow autoregressions of order one (`Temporal`). The codes of
a sequence are solved jointly by elimination along time (`linalg/autoregression.py`); residuals
between two known ones are bridged. Where a feature's own series predicts gaps better than the
factors do, it has its share (`univariate.py`).
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blocks import dense_with_holes
from ..linalg.autoregression import bridge, eliminate, substitute
from ..linalg.posterior import spread
from .e_step import encode_rows, predictive_variances
from .predict import Moments
from .robust import clip_rows, outlier_limit
from .state import State, Temporal
from .stats import Matrix, Vector
from .step import end_batch
from .univariate import bridge_series, distance_classes
from .whiten import pattern_of

# Rows whose systems are kept at a time.
PART = 128


def predict_in_time(state: State, X: Any, *, std: bool = True) -> Moments:
    """Consecutive rows with their missing entries predicted from each other as well."""
    temporal = state.temporal
    assert temporal is not None
    state = end_batch(state)
    rows = dense_with_holes(X).astype(state.params.C.dtype)
    W = in_noise_units(state, rows)
    missing = np.isnan(rows)
    codes, variances = _codes_in_time(state, rows, missing if std else None)
    E = residuals(state, W, codes)
    means, remains = np.zeros_like(E), np.ones_like(E)
    bridge(E, temporal.residual_ar, means, remains)
    made = codes @ state.params.C.T.astype(np.float64) + means
    size = np.sqrt(variances - 1.0 + remains) if std else np.zeros(1)
    if temporal.series_weight.any():
        own = bridge_series(state, W, temporal.series_ar)
        share = temporal.series_weight[distance_classes(missing), np.arange(W.shape[1])]
        made += share * (own.mean - made)
        size = size + share * (own.std - size)
    np.copyto(rows, made * state.params.noise_std + state.params.center, where=missing)
    if not std:
        return Moments(rows, None)
    return Moments(rows, np.where(missing, size, 0.0) * state.spread)


def forecast(state: State, steps: int) -> tuple[Matrix, Matrix]:
    """Means and standard deviations (steps, n_features) of the rows that follow the last one."""
    temporal = state.temporal
    assert temporal is not None
    state = end_batch(state)
    ahead = [steps_ahead(state, temporal, step) for step in range(1, steps + 1)]
    means, deviations = (np.array(each).reshape(steps, -1) for each in zip(*ahead, strict=True))
    return means * state.params.noise_std + state.params.center, deviations * state.spread


def steps_ahead(state: State, temporal: Temporal, step: int) -> tuple[Vector, Vector]:
    """Mean and standard deviation of each feature `step` rows after the last one."""
    C = state.params.C.astype(np.float64)
    left = temporal.code_ar**step
    x = np.append(left * temporal.last_code, state.one)
    covariance = np.outer(left, left) * temporal.last_code_cov
    covariance += np.diag(1.0 - left**2)
    variance, every = np.empty(len(C)), np.arange(len(C), dtype=np.int32)
    spread(C, covariance, state.batch.Sigma, x, state.batch.inverse_coverage, every, variance)
    known = temporal.residual_ar ** (temporal.residual_age + step)
    return C @ x + known * temporal.last_residual, np.sqrt(variance - known**2)


def in_noise_units(state: State, rows: NDArray[Any]) -> Matrix:
    """Rows, centred, in units of the noise."""
    return (rows.astype(np.float64) - state.params.center) / state.params.noise_std


def residuals(state: State, W: Matrix, X: Matrix) -> Matrix:
    """Residuals of rows in units of the noise, clipped: neighbours should not follow a spike."""
    limit = state.config.hyper.clip_limit
    return np.clip(W - X @ state.params.C.T.astype(np.float64), -limit, limit)


def _codes_in_time(
    state: State, rows: NDArray[Any], missing: NDArray[np.bool_] | None
) -> tuple[Matrix, Matrix]:
    """Codes (n, R) of rows, and the variances of their missing entries in units of the noise."""
    temporal, batch = state.temporal, state.batch
    assert temporal is not None
    n, r, m = len(rows), state.n_components, len(state.params.C)
    given = clip_rows(state, rows)
    if missing is None and not temporal.code_ar.any():
        return encode_rows(state, given, limit=outlier_limit(state)).X, np.empty((0, m))
    entries = given.entries
    C, phi = state.params.C.astype(np.float64, copy=False), temporal.code_ar
    starts = list(range(0, n, PART))
    carries = [np.zeros((r, r + 1))]
    inverses, eta = np.empty((PART, r, r)), np.empty((PART, r))

    def eliminated(first: int, carry: Matrix) -> int:
        last = min(first + PART, n)
        eliminate(
            C, batch.G, batch.Sigma, batch.inverse_coverage, state.one, phi, *entries, first, last,
            n, carry, inverses, eta,
        )  # fmt: skip
        return last

    for first in starts:
        carry = carries[-1].copy()
        eliminated(first, carry)
        carries.append(carry)
    X, variances = np.empty((n, r + 1)), np.ones((n if missing is not None else 0, m))
    X[:, r] = state.one
    x_next, covariance_next = np.zeros(r), np.zeros((r, r))
    covariances = np.empty((1 if missing is None else PART, r, r))
    for first, carry in reversed(list(zip(starts, carries[:-1], strict=True))):
        last = eliminated(first, carry.copy())
        q = last - first
        substitute(
            inverses[:q], eta[:q], phi, last < n, x_next, covariance_next, X[first:last],
            covariances,
        )  # fmt: skip
        if missing is None:
            continue
        asked = missing[first:last]
        variances[first:last][asked] = predictive_variances(
            state, X[first:last], covariances[:q], *pattern_of(asked)
        )
    return X, variances
