"""Predictions of rows that are consecutive in time.

Codes and each feature's own residual follow autoregressions of order one (`Temporal`). The codes of
a sequence are solved jointly by elimination along time (`linalg/autoregression.py`); residuals
between two known ones are bridged. Where a feature's own series predicts gaps better than the
factors do, it has its share (`univariate.py`). All of this is about the seasons (`seasons.py`).
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blocks import dense_with_holes
from ..linalg.autoregression import bridge, eliminate, substitute
from ..linalg.rows import gram
from .clock import Clock, clock_of, even_clock
from .e_step import encode_rows, predictive_variances
from .predict import Moments
from .robust import clip_rows, outlier_limit
from .seasons import best_shift, season_of
from .state import Seasons, State, Temporal, evolve
from .stats import Matrix, Vector
from .step import end_batch
from .univariate import bridge_series, distance_classes, series_of
from .whiten import pattern_of

# Rows whose systems are kept at a time.
PART = 128


def predict_in_time(
    state: State, X: Any, *, std: bool = True, times: Vector | None = None,
    clock: Clock | None = None,
) -> Moments:  # fmt: skip
    """Consecutive rows with their missing entries predicted from each other as well.

    Rows come at given times, or by a given clock; others are one step apart (`rows_clock`).
    """
    temporal = state.temporal
    assert temporal is not None
    state = end_batch(state)
    rows = dense_with_holes(X).astype(state.params.C.dtype)
    W = in_noise_units(state, rows)
    clock = rows_clock(temporal, W, times) if clock is None else clock
    start = None if temporal.seasons is None else temporal.window_start
    n_older = 0 if start is None else int(np.searchsorted(clock.times, start))
    if n_older == 0:
        return _predicted(state, rows, W, clock, std=std)
    older = evolve(state, temporal=replace(temporal, seasons=_at_other_times(temporal.seasons)))
    parts = [
        _predicted(each, rows[part], W[part], clock_of(clock.times[part], temporal.step), std=std)
        for each, part in ((older, slice(n_older)), (state, slice(n_older, None)))
        if len(W[part])
    ]
    means, deviations = zip(*parts, strict=True)
    return Moments(np.concatenate(means), np.concatenate(deviations) if std else None)


def _at_other_times(seasons: Seasons | None) -> Seasons | None:
    """Seasons of rows before those that they are estimated from.

    A day in summer is not one in winter, so codes are left their whole covariance.
    """
    return None if seasons is None else replace(seasons, code_basis=np.zeros((0, 0)))


def _predicted(state: State, rows: NDArray[Any], W: Matrix, clock: Clock, *, std: bool) -> Moments:
    """Rows, in units of the noise in W, filled; both are written into."""
    temporal = state.temporal
    assert temporal is not None
    missing = np.isnan(rows)
    season = season_of(temporal.seasons, clock.times)
    W -= season
    state = about_seasons(state)
    codes, variances = codes_in_time(state, W, clock, missing if std else None)
    E = residuals(state, W, codes)
    means, remains = np.zeros_like(E), np.ones_like(E)
    bridge(E, temporal.residual_ar, clock.at_step, means, remains)
    made = codes @ state.params.C.T.astype(np.float64) + means
    size = np.sqrt(variances - 1.0 + remains) if std else np.zeros(1)
    if temporal.series_weight.any():
        own = bridge_series(state, W, series_of(state), clock.at_step, temporal.innovations)
        share = temporal.series_weight[distance_classes(missing), np.arange(W.shape[1])]
        made += share * (own.mean - made)
        size = size + share * (own.std - size)
    made += season
    np.copyto(rows, made * state.params.noise_std + state.params.center, where=missing)
    if not std:
        return Moments(rows, None)
    return Moments(rows, np.where(missing, size, 0.0) * state.spread)


def about_seasons(state: State) -> State:
    """The state for rows without their season: its codes have covariance I again."""
    temporal = state.temporal
    if temporal is None or temporal.seasons is None:
        return state
    return about(state, temporal.seasons.code_basis)


def about(state: State, code_basis: Matrix) -> State:
    """The state for rows whose codes are `code_basis` @ u, with u of covariance I."""
    posterior = state.posterior
    if not len(code_basis):
        return state
    T = np.eye(state.n_components + 1)
    T[:-1, :-1] = code_basis
    C = np.ascontiguousarray(state.params.C @ T, state.params.C.dtype)
    if posterior is not None:
        own = T[np.ix_(posterior.active, posterior.active)]
        posterior = replace(posterior, covariances=own.T @ posterior.covariances @ own)
    Sigma = T.T @ state.batch.Sigma @ T
    return evolve(state, C=C, C_batch=None, G=gram(C), Sigma=Sigma, posterior=posterior)


def rows_clock(temporal: Temporal, W: Matrix, times: Vector | None = None) -> Clock:
    """When rows, in units of the noise, come.

    Rows without times are one step apart. Where there are seasons, their phase is the one that
    suits the rows best, and if that does not matter, the one with which the last row is the last
    one that was learned from.
    """
    if times is not None and temporal.stamped:
        return clock_of(times, temporal.step)
    clock = even_clock(len(W), temporal.last_time, temporal.step)
    shift = best_shift(temporal.seasons, W, clock.times, temporal.step)
    return clock if shift == 0.0 else clock_of(clock.times + shift, temporal.step)


def in_noise_units(state: State, rows: NDArray[Any]) -> Matrix:
    """Rows, centred, in units of the noise."""
    return (rows.astype(np.float64) - state.params.center) / state.params.noise_std


def in_data_units(state: State, W: Matrix) -> NDArray[Any]:
    """Rows, in units of the noise, as the data have them."""
    rows = W * state.params.noise_std + state.params.center
    largest = np.finfo(state.C.dtype).max  # rounding may lead beyond what the data's type holds
    return np.clip(rows, -largest, largest).astype(state.C.dtype)


def residuals(state: State, W: Matrix, X: Matrix) -> Matrix:
    """Residuals of rows in units of the noise, clipped: neighbours should not follow a spike."""
    limit = state.config.hyper.clip_limit
    return np.clip(W - X @ state.params.C.T.astype(np.float64), -limit, limit)


def codes_in_time(
    state: State, W: Matrix, clock: Clock, missing: NDArray[np.bool_] | None
) -> tuple[Matrix, Matrix]:
    """Codes (n, R) of rows without their season, in units of the noise.

    And, unless `missing` is None, the variances of missing entries in these units.
    """
    temporal, batch = state.temporal, state.batch
    assert temporal is not None
    n, r, m = len(W), state.n_components, len(state.params.C)
    given = clip_rows(state, in_data_units(state, W))
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
            C, batch.G, batch.Sigma, batch.inverse_coverage, state.one, phi, clock.elapsed,
            *entries, first, last, n, carry, inverses, eta,
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
            inverses[:q], eta[:q], phi, clock.elapsed[first : last + 1], last < n, x_next,
            covariance_next, X[first:last], covariances,
        )  # fmt: skip
        if missing is None:
            continue
        asked = missing[first:last]
        variances[first:last][asked] = predictive_variances(
            state, X[first:last], covariances[:q], *pattern_of(asked)
        )
    return X, variances
