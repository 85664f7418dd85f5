"""Refuse states, as read from a file, that no sequence of steps can have led to."""

from dataclasses import astuple
from typing import Any

import numpy as np

from ..conformal import N_BINS
from ..linalg.drift import COUNT, DOWN, MEMORY, RUNNING_VARIANCE, UNIT, UP, VARIANCE
from ..require import require
from .drift import MOST_ALARMS
from .hyper import Hyper
from .state import (
    Drift,
    FeaturePosterior,
    Horizons,
    Innovations,
    Regressors,
    Seasons,
    State,
    Temporal,
)
from .univariate import DISTANCES

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
# No stream is longer; numbers beyond it would overflow where they meet floats.
LARGEST_COUNT = 2**62


def check_state(state: State) -> None:
    """Raise a ValueError that says what does not fit."""
    C = state.params.C
    m, R = C.shape if C.ndim == 2 else (0, 0)
    r = R - 1
    require(m > 0 and r > 0 and C.dtype in FLOATS, "its dictionary is no matrix")
    _check_floats(
        state.params, v=(R,), center=(m,), scale=(m,), noise_std=(m,), basis_change=(R, R)
    )
    _check_floats(state.batch, G=(R, R), Sigma=(R, R), S_inverse=(R, R), inverse_coverage=(m,))
    _check_floats(state.stats, S=(R, R), code_cov_sum=(r, r), counts=(m,), residual_sums=(2, m))
    _check_floats(state.holdout, histogram=(N_BINS,), sse=(2, 2))
    _check_floats(state.outliers, votes=(3,))
    _check_floats(state.features, pending_moments=(3, m), constant_value=(m,))
    last = state.features.last_seen
    require(last.shape in ((0,), (m,)) and last.dtype == np.int64, "last_seen does not fit")
    within = bool(((last >= 0) & (last <= state.n_seen)).all())
    require(within, "features seen in rows that it has not seen")
    require(state.config.drop_after is None or state.config.drop_after > 0, "drop_after")
    codes = state.batch.C_batch
    require(codes is None or (codes.shape == (m, R) and codes.dtype == C.dtype), "C_batch")
    for counts in (state.outliers.n_dropped, state.outliers.run_length):
        require(counts.shape == (m,) and counts.dtype == np.int64, "counts that do not fit")
    known = state.features
    for flags in (known.known, known.integer, known.constant, known.varied):
        require(flags.shape == (m,) and flags.dtype == np.bool_, "flags that do not fit")
    masks = state.holdout.masks
    require(masks.ndim == 2 and masks.shape[1] == m, "masks do not fit")
    require(masks.dtype == np.bool_ and len(masks) > 0, "masks are none")
    _check_ranges(state)
    _check_hyper(state.config.hyper)
    _check_drift(state.drift, state.n_seen)
    require(all(0 <= at < m for at in state.config.known), "covariates that are no features")
    if state.temporal is not None:
        _check_temporal(state.temporal, m, r)
    if state.posterior is not None:
        _check_posterior(state.posterior, m, R)


def _check_ranges(state: State) -> None:
    params, stats, schedule = state.params, state.stats, state.schedule
    for positive in (params.v, params.scale, params.noise_std, state.batch.inverse_coverage):
        require(bool((positive > 0.0).all()), "a variance or scale that is not above zero")
    votes = state.outliers.votes
    require(votes[0] >= 0.0 and votes[2] >= 0.0, "votes below zero")
    for sums in (stats.counts, stats.residual_sums, state.holdout.histogram, state.holdout.sse):
        require(bool((sums >= 0.0).all()), "a sum of squares or counts below zero")
    counts = (schedule.n_seen, schedule.n_entries, schedule.pass_rows, state.holdout.n_scored)
    require(all(0 <= count < LARGEST_COUNT for count in counts), "a count that is none")
    require(0.0 < state.batch.count_fade <= 1.0, "count_fade is no share")
    require(0.0 <= stats.start_weight <= 1.0, "start_weight is no share")
    weights = schedule.n_seen + schedule.extra_weight
    require(0.0 <= weights < np.inf, "weights that are not above zero")
    require(0.0 < params.precision < np.inf, "a weight of its noise that is not above zero")
    require(schedule.batch_left > 0 and schedule.update_left > 0, "no rows are left to its batch")
    most = state.config.components_for(len(params.C))
    require(state.n_components <= most, "more components than it may have")
    require(bool((np.diagonal(stats.S) > 0.0).all()), "a precision that is not above zero")


def _check_drift(drift: Drift, n_seen: int) -> None:
    _check_floats(drift, memory=(MEMORY,))
    memory, alarms = drift.memory, drift.alarms
    require(bool((memory[[COUNT, VARIANCE, RUNNING_VARIANCE, UNIT, UP, DOWN]] >= 0.0).all()),
            "a memory of errors that is negative")  # fmt: skip
    require(alarms.ndim == 1 and alarms.dtype == np.int64, "alarms that are no rows")
    require(len(alarms) <= MOST_ALARMS, "too many alarms")
    rising = bool((np.diff(alarms) > 0).all())
    within = len(alarms) == 0 or (alarms[0] > 0 and alarms[-1] <= n_seen)
    require(rising and bool(within), "alarms at rows that it has not seen")
    require(0 <= drift.origin <= n_seen, "a past that was forgotten in the future")


def _check_hyper(hyper: Hyper) -> None:
    for value in astuple(hyper):
        for number in value if isinstance(value, tuple) else (value,):
            require(0.0 <= number <= LARGEST_COUNT, "a constant that cannot be")


def _check_temporal(temporal: Temporal, m: int, r: int) -> None:
    _check_floats(
        temporal, code_ar=(r,), residual_ar=(m,), last_code=(r,), last_code_cov=(r, r),
        last_residual=(m,), series_ar=(m,), series_weight=(len(DISTANCES), m), histogram=(N_BINS,),
        one_step_histogram=(N_BINS,),
    )  # fmt: skip
    require(temporal.last_value.shape in ((0,), (m,)), "last_value does not fit")  # of old files
    _check_floats(temporal, last_value=temporal.last_value.shape)
    for name in ("series_noise", "series_size"):
        shape = getattr(temporal, name).shape
        require(shape in ((0,), (m,)), f"{name} does not fit")
        _check_floats(temporal, **{name: shape})
    noise, size = temporal.series_noise, temporal.series_size
    require(bool(((noise >= 0.0) & (noise < 1.0)).all()), "series_noise is no share")
    require(len(noise) == len(size) and bool((size > 0.0).all()), "series without a size")
    require(np.isfinite(temporal.last_time) and 0.0 < temporal.step < np.inf, "no step in time")
    if temporal.seasons is not None:
        _check_seasons(temporal.seasons, m, r)
    start = temporal.window_start
    require(start is None or bool(np.isfinite(start)), "window_start is no time")
    if temporal.regressors is not None:
        _check_regressors(temporal.regressors, m, r)
    if temporal.horizons is not None:
        _check_horizons(temporal.horizons, m)
        require(len(temporal.last_value) == m, "last_value does not fit")
    if temporal.innovations is not None:
        _check_innovations(temporal.innovations, m)
    age = temporal.residual_age
    require(age.shape == (m,) and age.dtype == np.int64, "residual_age does not fit")
    for ar in (temporal.code_ar, temporal.residual_ar, temporal.series_ar):
        require(bool(((ar >= 0.0) & (ar < 1.0)).all()), "an autoregression that is not stationary")
    weight = temporal.series_weight
    require(bool(((weight >= 0.0) & (weight <= 1.0)).all()), "a weight that is no share")


def _check_seasons(seasons: Seasons, m: int, r: int) -> None:
    p, k = len(seasons.periods), len(seasons.frequencies)
    require(p > 0 and k > 0, "seasons without periods")
    _check_floats(seasons, periods=(p,), frequencies=(k,), loadings=(m, 2 * k))
    basis = seasons.code_basis
    require(basis.ndim == 2 and basis.shape in ((0, 0), (r, r)), "code_basis does not fit")
    _check_floats(seasons, code_basis=basis.shape)
    for positive in (seasons.periods, seasons.frequencies):
        require(bool((positive > 0.0).all()), "a season without length")


def _check_regressors(found: Regressors, m: int, r: int) -> None:
    columns, q = found.columns, len(found.columns)
    require(columns.shape == (q,) and columns.dtype == np.int64 and q > 0, "regressors.columns")
    within = bool((columns >= 0).all() and (columns < m).all())
    require(within and len(set(columns.tolist())) == q, "regressors that are no features")
    _check_floats(found, mean=(q,), scale=(q,), loadings=(m, q))
    require(bool((found.scale > 0.0).all()), "a regressor without scale")
    _check_floats(found, code_basis=(r, r))


def _check_horizons(horizons: Horizons, m: int) -> None:
    q = len(horizons.steps)
    require(q > 0, "no horizon")
    _check_floats(horizons, steps=(q,), weight=(q, m), ratio=(q, m), histogram=(N_BINS,))
    rising = bool((np.diff(horizons.steps) > 0.0).all()) and horizons.steps[0] > 0.0
    require(rising and bool((horizons.ratio > 0.0).all()), "horizons that do not rise")
    share = horizons.weight
    require(bool(((share >= 0.0) & (share <= 1.0)).all()), "a weight that is no share")
    require(bool((horizons.histogram >= 0.0).all()), "counts below zero")


def _check_innovations(innovations: Innovations, m: int) -> None:
    k = innovations.C.shape[-1]
    require(k > 0, "innovations without factors")
    _check_floats(innovations, C=(m, k), noise_std=(m,))
    require(bool((innovations.noise_std > 0.0).all()), "innovations without noise")


def _check_posterior(posterior: FeaturePosterior, m: int, R: int) -> None:
    active, k = posterior.active, len(posterior.active)
    require(active.ndim == 1 and active.dtype == np.int64 and k > 0, "posterior.active")
    rising = bool((np.diff(active) > 0).all())
    require(rising and active[0] >= 0 and active[-1] == R - 1, "posterior.active does not fit")
    _check_floats(posterior, covariances=(m, k, k))
    diagonals = np.diagonal(posterior.covariances, axis1=1, axis2=2)
    require(bool((diagonals >= 0.0).all()), "posterior.covariances are negative")


def _check_floats(group: Any, **shapes: tuple[int, ...]) -> None:
    for name, shape in shapes.items():
        array = getattr(group, name)
        require(array.shape == shape and array.dtype == np.float64, f"{name} does not fit")
        require(bool(np.isfinite(array).all()), f"{name} is not finite")
