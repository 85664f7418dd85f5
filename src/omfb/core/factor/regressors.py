"""Regressors: columns that are always known, such as holidays or the weather, in time.

The values z of known columns have loadings B on the others beside what the factors, seasons and
autoregressions say:

    y_t = B (z_t − mean) / scale + what is left,

and it is what is left that `temporal.py` and `smoother.py` see: rows without B z, in which the
known columns themselves are missing. B is estimated with the seasons, as further columns of one
regression with autocorrelated errors (`seasons.py`), whose prior variances switch off regressors
that explain nothing.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blocks import dense_with_holes
from .calibrate import Trial
from .clock import clock_of, even_clock, usual_step
from .horizons import Forecast
from .horizons import forecast as forecast_rest
from .predict import Moments
from .seasons import known_effects
from .smoother import about, in_noise_units, predict_in_time
from .state import Regressors, State, Temporal, evolve
from .stats import Matrix, Vector
from .step import end_batch
from .temporal import code_basis, fit_temporal, update_temporal
from .univariate import away_from_mean

# Regressors that vary less than this share of their size do not vary.
CONSTANT = 1e-9


def fit_in_time(
    state: State, X: Any, times: Vector | None = None, trial: Trial | None = None
) -> State:
    """`fit_temporal` of what regressors leave, after these."""
    if not state.config.known:
        return fit_temporal(state, X, times, trial)
    state = end_batch(state)
    rows = dense_with_holes(X[-state.config.hyper.window :])
    found = _estimated(state, rows, None if times is None else times[-len(rows) :])
    rest = _without(rows, found)
    if trial is not None:
        own = replace(found, code_basis=code_basis(trial.state, rest))
        held_out = trial.held_out[-len(rows) :] & ~np.isnan(rest)
        trial = Trial(_about(trial.state, own), held_out)
    return _with(state, fit_temporal(_about(state, found), rest, times, trial), found)


def update_in_time(state: State, X: Any, times: Vector | None = None) -> State:
    """`update_temporal` of what regressors leave."""
    assert state.temporal is not None
    found = state.temporal.regressors
    if found is None:
        return update_temporal(state, X, times)
    left = update_temporal(_about(state, found), _without(dense_with_holes(X), found), times)
    return _with(state, left, found)


def predict(state: State, X: Any, *, std: bool, times: Vector | None = None) -> Moments:
    """`predict_in_time` of what regressors leave, and these."""
    assert state.temporal is not None
    found = state.temporal.regressors
    if found is None:
        return predict_in_time(state, X, std=std, times=times)
    rows = dense_with_holes(X).astype(state.C.dtype)
    made = predict_in_time(_about(state, found), _without(rows, found), std=std, times=times)
    missing = np.isnan(rows)
    mean = np.where(missing, made.mean + _effects(rows, found), rows).astype(rows.dtype)
    size = None if made.std is None else np.where(missing, made.std, 0.0)
    return Moments(mean, size)


def forecast(
    state: State, steps: int, times: Vector | None = None, known: Matrix | None = None
) -> Forecast:
    """The rows that follow the last one, given the values (steps, q) that known columns will have.

    Raises
    ------
    ValueError
        If they are not given.
    """
    assert state.temporal is not None
    found = state.temporal.regressors
    if found is None:
        return forecast_rest(state, steps, times)
    if known is None:
        raise ValueError("the values that covariates will have are not given")
    made = forecast_rest(_about(state, found), steps, times)
    rows = np.zeros((steps, len(state.C)))
    rows[:, found.columns] = known
    mean, size = made.mean + _effects(rows, found), made.std.copy()
    mean[:, found.columns], size[:, found.columns] = known, 0.0
    return Forecast(mean, size, made.histogram)


def _estimated(state: State, rows: NDArray[Any], times: Vector | None) -> Regressors:
    """Loadings of the known columns, and the covariance of codes that they leave."""
    columns = np.array(state.config.known, np.int64)
    Z = rows[:, columns].astype(np.float64)
    mean, scale = Z.mean(axis=0), Z.std(axis=0)
    scale = np.where(scale > CONSTANT * np.abs(mean), scale, 1.0)
    found = Regressors(columns, mean, scale, np.zeros((len(state.C), len(columns))))
    step = 1.0 if times is None else usual_step(times)
    clock = even_clock(len(rows), state.n_seen) if times is None else clock_of(times, step)
    W = in_noise_units(state, rows)
    W[:, columns] = np.nan
    away, size = away_from_mean(state, W)
    hyper, wanted = state.config.hyper, state.config.seasons
    given = None if wanted == "auto" else state.config.periods(None if times is None else step)
    loadings = known_effects(
        away / size, clock, step, given, times is not None, hyper.season_gain, (Z - mean) / scale
    )
    found = replace(found, loadings=loadings * (size * state.params.noise_std)[:, None])
    return replace(found, code_basis=code_basis(state, _without(rows, found)))


def _effects(rows: NDArray[Any], found: Regressors) -> Matrix:
    """What the known columns of rows add to the others, in the data's units."""
    z = (rows[:, found.columns].astype(np.float64) - found.mean) / found.scale
    effects: Matrix = z @ found.loadings.T
    return effects


def _without(rows: NDArray[Any], found: Regressors) -> NDArray[Any]:
    """Rows without the effects of their known columns, and without these."""
    left = (rows - _effects(rows, found)).astype(rows.dtype)
    left[:, found.columns] = np.nan
    return left


def _about(state: State, found: Regressors) -> State:
    """The state for rows without the effects of their known columns."""
    temporal = state.temporal
    state = about(end_batch(state), found.code_basis)
    return state if temporal is None else evolve(state, temporal=replace(temporal, regressors=None))


def _with(state: State, left: State, found: Regressors) -> State:
    """The state with what was found of the rows that regressors leave."""
    temporal: Temporal | None = left.temporal
    assert temporal is not None
    return evolve(state, temporal=replace(temporal, regressors=found))
