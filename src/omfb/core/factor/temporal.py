"""How consecutive rows depend on each other, estimated from the last rows in their order.

Codes and each feature's own residual follow autoregressions of order one. Whether either is used is
decided by held-out gaps: the pattern of missing entries, moved along in time, is held out and
predicted with and without. So is the weight of each feature's own series (`univariate.py`).
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blocks import dense_with_holes
from ..conformal import N_BINS, binned, quantile, rescaled
from .e_step import encode_rows
from .robust import clip_rows, outlier_limit
from .smoother import in_noise_units, predict_in_time, residuals, steps_ahead
from .state import State, Temporal, evolve
from .stats import Matrix, Vector
from .step import end_batch
from .univariate import DISTANCES, away_from_mean, bridge_series, series_weight

# Rows that give the last code and residuals.
RECENT = 64
# Rows that show how sure a forecast is, and an age at which nothing is left of a residual.
AHEAD, LONG_AGO = 256, 1 << 30
# The share of errors by which widths of intervals are compared.
CENTRAL = 0.8
# Held-out entries below which nothing can be decided.
FEWEST_HELD_OUT = 50


def fit_temporal(state: State, X: Any) -> State:
    """The state with autoregressions estimated from rows in their order.

    Parameters
    ----------
    state : State
    X : ndarray of shape (n_rows, n_features)
        Consecutive rows, the last of them those of the stream; of many, the last are used.
    """
    state, hyper = end_batch(state), state.config.hyper
    rows = dense_with_holes(X[-hyper.window :])
    found = _estimated(state, in_noise_units(state, rows))
    held_out = _moved(np.isnan(rows))
    none = np.zeros_like
    choices = [
        replace(found, code_ar=codes, residual_ar=own)
        for codes in (none(found.code_ar), found.code_ar)
        for own in (none(found.residual_ar), found.residual_ar)
    ]
    if held_out.sum() < FEWEST_HELD_OUT:
        return _with_one_step_errors(evolve(state, temporal=choices[-1]), rows)
    shown = np.where(held_out, np.nan, rows)
    fills = [
        predict_in_time(evolve(state, temporal=each), shown, std=False).mean for each in choices
    ]
    scale = state.params.scale
    losses = [float(np.sum((((filled - rows) / scale)[held_out]) ** 2)) for filled in fills]
    best = int(np.argmin(losses))
    best = best if losses[best] < (1.0 - hyper.temporal_gain) * losses[0] else 0
    chosen = _with_series(state, choices[best], fills[best], shown, rows, held_out)
    plain = _errors_in_time(state, choices[0], shown, rows, held_out)
    used = plain
    if best > 0 or chosen.series_weight.any():
        used = _errors_in_time(state, chosen, shown, rows, held_out)
    # The dictionary has learned from what is held out here, so these errors are a little small: by
    # as much as those without autoregressions are smaller than those of entries it never saw.
    optimism = quantile(state.holdout.histogram, CENTRAL) / quantile(plain, CENTRAL)
    chosen = replace(chosen, histogram=rescaled(used, 1.0 / max(optimism, 1.0)))
    return _with_one_step_errors(evolve(state, temporal=chosen), rows)


def update_temporal(state: State, X: Any) -> State:
    """The state after more rows: last code and residuals are new, coefficients stay."""
    assert state.temporal is not None
    rows = dense_with_holes(X[-RECENT:])
    last = _estimated(end_batch(state), in_noise_units(state, rows))
    temporal = replace(
        state.temporal, last_code=last.last_code, last_code_cov=last.last_code_cov,
        last_residual=last.last_residual, residual_age=last.residual_age, n_seen=state.n_seen,
    )  # fmt: skip
    return evolve(state, temporal=temporal)


def _with_series(
    state: State, temporal: Temporal, filled: NDArray[Any], shown: NDArray[Any],
    truth: NDArray[Any], held_out: NDArray[np.bool_],
) -> Temporal:  # fmt: skip
    """With the weight of each feature's own series."""
    params = state.params
    own = bridge_series(state, in_noise_units(state, shown), temporal.series_ar).mean
    own = own * params.noise_std + params.center
    own, shared = ((made - truth) / params.scale for made in (own, filled))
    weight = series_weight(own, shared, held_out, np.isnan(shown), state.config.hyper)
    return replace(temporal, series_weight=weight)


def _errors_in_time(
    state: State, temporal: Temporal, shown: NDArray[Any], truth: NDArray[Any],
    held_out: NDArray[np.bool_],
) -> Vector:  # fmt: skip
    """Histogram of errors of held-out entries, in units of their predicted deviation."""
    filled, deviations = predict_in_time(evolve(state, temporal=temporal), shown)
    assert deviations is not None
    sizes = np.abs(filled - truth)[held_out] / deviations[held_out]
    return binned(sizes, np.ones(len(sizes)))


def _with_one_step_errors(state: State, rows: NDArray[Any]) -> State:
    """With a histogram of the errors of forecasts of one row, over the last rows."""
    temporal, params = state.temporal, state.params
    assert temporal is not None
    W = in_noise_units(state, rows[-AHEAD - 1 :])
    given = clip_rows(state, W * params.noise_std + params.center)
    codes = encode_rows(state, given, limit=outlier_limit(state), keep_covariances=True)
    E = residuals(state, W, codes.X)
    sizes = [np.empty(0)]
    for t in range(len(W) - 1):
        then = replace(
            temporal, last_code=codes.X[t, :-1], last_residual=np.nan_to_num(E[t]),
            last_code_cov=codes.covariances[min(t, len(codes.covariances) - 1)],
            residual_age=np.where(np.isnan(E[t]), LONG_AGO, 0),
        )  # fmt: skip
        mean, deviation = steps_ahead(state, then, 1)
        size = np.abs(W[t + 1] - mean) / deviation
        sizes.append(size[~np.isnan(size)])
    found = np.concatenate(sizes)
    histogram = binned(found, np.ones(len(found)))
    return evolve(state, temporal=replace(temporal, one_step_histogram=histogram))


def _estimated(state: State, W: Matrix) -> Temporal:
    """AR coefficients of codes, residuals and series, and the last row's code and residuals."""
    params, hyper = state.params, state.config.hyper
    rows = clip_rows(state, W * params.noise_std + params.center)
    codes = encode_rows(state, rows, limit=outlier_limit(state), keep_covariances=True)
    E = residuals(state, W, codes.X)
    r = state.n_components
    observed = np.flatnonzero(rows.shares > 0.0)
    seen = ~np.isnan(E)
    last = len(E) - 1 - np.argmax(seen[::-1], axis=0)
    residual = np.where(seen.any(axis=0), E[last, np.arange(E.shape[1])], 0.0)
    at = int(observed[-1]) if len(observed) else len(E) - 1
    series = away_from_mean(state, W)[0]
    return Temporal(
        code_ar=_ar_coefficients(codes.X[:, :r], 0.0, hyper.max_ar),
        residual_ar=_ar_coefficients(E, hyper.ar_prior[0], hyper.max_ar),
        last_code=codes.X[at, :r].copy(),
        last_code_cov=codes.covariances[min(at, len(codes.covariances) - 1)].copy(),
        last_residual=np.nan_to_num(residual),
        residual_age=np.where(seen.any(axis=0), len(E) - 1 - last, 0),
        histogram=np.zeros(N_BINS),
        one_step_histogram=np.zeros(N_BINS),
        series_ar=_ar_coefficients(series, hyper.ar_prior[1], hyper.max_ar),
        series_weight=np.zeros((len(DISTANCES), len(params.C))),
        n_seen=state.n_seen,
    )


def _ar_coefficients(E: Matrix, prior: float, largest: float) -> Vector:
    """AR(1) coefficient of each column, shrunk by `prior` uncorrelated pairs."""
    before, now = E[:-1], E[1:]
    both = ~np.isnan(before * now)
    products = np.sum(before * now, axis=0, where=both)
    squares = np.sum(0.5 * (before**2 + now**2), axis=0, where=both)
    typical = float(np.nanmean(E**2)) if np.isfinite(E).any() else 1.0
    coefficients = products / np.maximum(squares + prior * typical, 1e-300)
    return np.clip(coefficients, 0.0, largest)


def _moved(missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pattern of missing entries a third of the sequence later, where entries are known."""
    return np.roll(missing, len(missing) // 3, axis=0) & ~missing
