"""How consecutive rows depend on each other, estimated from the last rows in their order.

Codes and each feature's own residual follow autoregressions of order one about the seasons
(`seasons.py`). Whether any of these is used is decided by held-out gaps: the pattern of missing
entries, moved along in time, is held out and predicted with and without. So is the weight of each
feature's own series (`univariate.py`). Forecasts are judged by backtests (`horizons.py`).
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..blocks import dense_with_holes
from ..conformal import N_BINS, binned, quantile, rescaled
from .calibrate import Trial
from .clock import Clock, clock_of, even_clock, usual_step
from .e_step import encode_rows
from .horizons import backtested, filtered_at
from .innovations import fit_innovations
from .robust import clip_rows, outlier_limit
from .seasons import find_seasons, season_of
from .smoother import (
    about,
    about_seasons,
    in_data_units,
    in_noise_units,
    predict_in_time,
    residuals,
)
from .state import Innovations, Seasons, State, Temporal, evolve
from .stats import Matrix, Vector
from .step import end_batch
from .univariate import (
    DISTANCES,
    LARGEST_ERROR,
    ar_coefficients,
    away_from_mean,
    bridge_series,
    fit_series,
    series_of,
    series_weight,
)
from .whiten import Whitened

# Rows that give the last code and residuals.
RECENT = 64
# The share of errors by which widths of intervals are compared.
CENTRAL = 0.8
# Held-out entries below which nothing can be decided.
FEWEST_HELD_OUT = 50
# No mean square, in units of the features, counts as less.
LEAST_SQUARE = 1e-8
# Rounds in which the covariance of codes about the seasons is estimated.
EM_ROUNDS = 3


def fit_temporal(
    state: State, X: Any, times: Vector | None = None, trial: Trial | None = None
) -> State:
    """The state with seasons and autoregressions estimated from rows in their order.

    Parameters
    ----------
    state : State
    X : ndarray of shape (n_rows, n_features)
        Consecutive rows, the last of them those of the stream; of many, the last are used.
    times : ndarray of shape (n_rows,) or None
        Seconds since 1970, in ascending order; None if rows have no times.
    trial : Trial or None
        What knows nothing of held-out entries: of it they say how well gaps are filled. Without
        it, the state fills what it has learned from.
    """
    state, hyper = end_batch(state), state.config.hyper
    rows = dense_with_holes(X[-hyper.window :])
    times = None if times is None else np.asarray(times[-hyper.window :], np.float64)
    step = 1.0 if times is None else usual_step(times)
    clock = even_clock(len(rows), state.n_seen) if times is None else clock_of(times, step)
    stamped = times is not None
    W = in_noise_units(state, rows)
    seasons = _seasons(state, W, clock, step, stamped=stamped)
    if trial is None or trial.held_out[-len(rows) :].sum() < FEWEST_HELD_OUT:
        trial = Trial(state, _moved(np.isnan(rows)))
    held_out = trial.held_out[-len(rows) :]
    if held_out.sum() < FEWEST_HELD_OUT:
        found = replace(_estimated(state, W, clock, step, seasons), stamped=stamped)
        return _with_horizons(evolve(state, temporal=found), W, clock)
    chosen = _chosen(state, trial.state, seasons, rows, held_out, clock, step)
    if trial.state is not state:
        found = _estimated(state, W, clock, step, chosen.seasons and seasons)
        again = None
        if chosen.innovations is not None:
            about = about_seasons(evolve(state, temporal=found))
            season = season_of(found.seasons, clock.times)
            again = _innovations(about, W - season, found.series_ar, clock)
        chosen = replace(
            found, innovations=again, code_ar=found.code_ar * chosen.code_ar.any(),
            residual_ar=found.residual_ar * chosen.residual_ar.any(),
            series_weight=chosen.series_weight, histogram=chosen.histogram,
        )  # fmt: skip
    return _with_horizons(evolve(state, temporal=replace(chosen, stamped=stamped)), W, clock)


def _chosen(
    state: State, judge: State, seasons: Seasons | None, rows: NDArray[Any],
    held_out: NDArray[np.bool_], clock: Clock, step: float,
) -> Temporal:  # fmt: skip
    """What fills held-out gaps best, and its errors: seasons, autoregressions, own series.

    The judge is a state that fills them, with noise of its own.
    """
    hyper, shown = state.config.hyper, np.where(held_out, np.nan, rows)
    W = in_noise_units(judge, rows)
    plain = found = _estimated(judge, W, clock, step, None)
    if seasons is not None:
        change = state.params.noise_std / judge.params.noise_std
        own = replace(seasons, loadings=seasons.loadings * change[:, None])
        found = _estimated(judge, W, clock, step, own)

    def fill(temporal: Temporal) -> NDArray[Any]:
        made = predict_in_time(evolve(judge, temporal=temporal), shown, std=False, clock=clock)
        return made.mean

    def loss(filled: NDArray[Any]) -> float:
        return _clipped_loss(((filled - rows) / state.params.scale)[held_out])

    def relative(filled: NDArray[Any]) -> float:
        return _geometric_loss(np.where(held_out, (filled - rows) / state.params.scale, np.nan))

    best, filled = _best(found, fill, loss, hyper.temporal_gain)
    if seasons is not None and state.config.seasons == "auto":  # what users give is not judged
        other, without = _best(plain, fill, loss, hyper.temporal_gain)
        # Also in shares of each feature's error: near duplicates are told apart by seasons.
        if any(of(filled) > (1.0 + hyper.season_cost) * of(without) for of in (loss, relative)):
            best, filled = other, without
    chosen = _with_series(judge, best, filled, shown, rows, held_out, clock)
    unaided = replace(plain, code_ar=0.0 * plain.code_ar, residual_ar=0.0 * plain.residual_ar)
    alone = used = _errors_in_time(judge, unaided, shown, rows, held_out, clock)
    if _is_aided(chosen):
        used = _errors_in_time(judge, chosen, shown, rows, held_out, clock)
    if judge is not state:
        return replace(chosen, histogram=used)
    # The dictionary has learned from what is held out here, so these errors are a little small: by
    # as much as those without autoregressions are smaller than those of entries it never saw.
    optimism = quantile(state.holdout.histogram, CENTRAL) / quantile(alone, CENTRAL)
    return replace(chosen, histogram=rescaled(used, 1.0 / max(optimism, 1.0)))


def update_temporal(state: State, X: Any, times: Vector | None = None) -> State:
    """The state after more rows: last code and residuals are new, coefficients stay."""
    before = state.temporal
    assert before is not None
    rows = dense_with_holes(X[-RECENT:])
    if times is None or not before.stamped:
        clock = even_clock(len(rows), _last_time(state, before, times), before.step)
    else:
        clock = clock_of(np.asarray(times[-RECENT:], np.float64), before.step)
    W = in_noise_units(state, rows) - season_of(before.seasons, clock.times)
    temporal = _with_last_row(about_seasons(end_batch(state)), before, W, clock)
    return evolve(state, temporal=replace(temporal, n_seen=state.n_seen))


def on_time(state: State, times: Vector | None = None) -> State:
    """The state after more rows as far as it fills others: its clock has moved on.

    Where the sequence stands matters to forecasts only, and costs a filter over the last rows.
    """
    before = state.temporal
    assert before is not None
    return evolve(state, temporal=replace(before, last_time=_last_time(state, before, times)))


def _last_time(state: State, before: Temporal, times: Vector | None) -> float:
    """When the last row came."""
    if times is None or not before.stamped:
        return before.last_time + before.step * (state.n_seen - before.n_seen)
    return float(times[-1])


def _seasons(
    state: State, W: Matrix, clock: Clock, step: float, *, stamped: bool
) -> Seasons | None:
    wanted, hyper = state.config.seasons, state.config.hyper
    if wanted is None or len(W) < 4:
        return None
    away, size = away_from_mean(state, W)
    periods = None if wanted == "auto" else state.config.periods(step if stamped else None)
    found = find_seasons(away / size, clock, step, periods, stamped, hyper.season_gain)
    return None if found is None else replace(found, loadings=found.loadings * size[:, None])


def _best(found: Temporal, fill: Any, loss: Any, gain: float) -> tuple[Temporal, NDArray[Any]]:
    """With which of the autoregressions held-out gaps are filled best, and how they are filled."""
    none = np.zeros_like
    choices = [
        replace(found, code_ar=codes, residual_ar=own)
        for codes in (none(found.code_ar), found.code_ar)
        for own in (none(found.residual_ar), found.residual_ar)
    ]
    fills = [fill(each) for each in choices]
    losses = [loss(filled) for filled in fills]
    best = int(np.argmin(losses))
    best = best if losses[best] < (1.0 - gain) * losses[0] else 0
    return choices[best], fills[best]


def _is_aided(temporal: Temporal) -> bool:
    """Whether anything but its own row helps to fill an entry."""
    used = temporal.code_ar.any() or temporal.residual_ar.any() or temporal.series_weight.any()
    return bool(used) or temporal.seasons is not None


def _with_series(
    state: State, temporal: Temporal, filled: NDArray[Any], shown: NDArray[Any],
    truth: NDArray[Any], held_out: NDArray[np.bool_], clock: Clock,
) -> Temporal:  # fmt: skip
    """With the weight of each feature's own series, and factors of its innovations if they help."""
    params, hyper = state.params, state.config.hyper
    season = season_of(temporal.seasons, clock.times)
    W = in_noise_units(state, shown) - season
    about = about_seasons(evolve(state, temporal=temporal))

    def errors(found: Innovations | None) -> NDArray[Any]:
        own = bridge_series(about, W, series_of(about), clock.at_step, found).mean + season
        wrong: NDArray[Any] = (own * params.noise_std + params.center - truth) / params.scale
        return wrong

    shared, own = (filled - truth) / params.scale, errors(None)
    found = _innovations(about, W, temporal.series_ar, clock)
    if found is not None:
        together = errors(found)
        if _clipped_loss(together[held_out]) < (1.0 - hyper.series_gain) * _clipped_loss(
            own[held_out]
        ):
            temporal, own = replace(temporal, innovations=found), together
    weight = series_weight(own, shared, held_out, np.isnan(shown), hyper)
    return replace(temporal, series_weight=weight)


def _clipped_loss(errors: NDArray[Any]) -> float:
    """Sum of squares in which a few spikes do not decide."""
    return float(np.nansum(np.clip(errors, -LARGEST_ERROR, LARGEST_ERROR) ** 2))


def _geometric_loss(errors: NDArray[Any]) -> float:
    """Geometric mean of the features' mean squares, each as often as it has errors."""
    counts = np.sum(~np.isnan(errors), axis=0)
    squares = np.nansum(errors**2, axis=0) / np.maximum(counts, 1)
    return float(np.exp(counts @ np.log(squares + LEAST_SQUARE) / counts.sum()))


def _innovations(state: State, W: Matrix, series_ar: Vector, clock: Clock) -> Innovations | None:
    """Factors of the innovations of rows W without their season."""
    away = away_from_mean(state, W)[0]
    return fit_innovations(away, series_ar, clock.at_step, state.config.hyper)


def _errors_in_time(
    state: State, temporal: Temporal, shown: NDArray[Any], truth: NDArray[Any],
    held_out: NDArray[np.bool_], clock: Clock,
) -> Vector:  # fmt: skip
    """Histogram of errors of held-out entries, in units of their predicted deviation."""
    state = evolve(state, temporal=temporal)
    filled, deviations = predict_in_time(state, shown, clock=clock)
    assert deviations is not None
    sizes = np.abs(filled - truth)[held_out] / deviations[held_out]
    return binned(sizes, np.ones(len(sizes)))


def _with_horizons(state: State, W: Matrix, clock: Clock) -> State:
    """With where the sequence stands, and what backtests say of forecasts."""
    temporal = state.temporal
    assert temporal is not None
    W = W - season_of(temporal.seasons, clock.times)
    about = about_seasons(state)
    temporal = _with_last_row(about, temporal, W, clock)
    if state.n_seen > len(W):
        temporal = replace(temporal, window_start=float(clock.times[0]))
    horizons = backtested(about, W, clock)
    if horizons is not None:
        temporal = replace(temporal, horizons=horizons)
    return evolve(state, temporal=temporal)


def _with_last_row(state: State, temporal: Temporal, W: Matrix, clock: Clock) -> Temporal:
    """With the last code, residuals and values of rows W without their season."""
    n, m = W.shape
    seen = ~np.isnan(W)
    any_seen = seen.any(axis=0)
    last = n - 1 - np.argmax(seen[::-1], axis=0)
    rows = np.unique(np.append(last[any_seen & (last >= n - RECENT)], n - 1))
    found = filtered_at(state, W, clock, rows)
    at = np.searchsorted(rows, last)
    fresh = any_seen & (last >= n - RECENT)
    column = np.arange(m)
    residual = np.array([each.residual for each in found])
    known = temporal.last_value if len(temporal.last_value) else state.params.C[:, -1]
    age = np.rint(clock.at_step[-1] - clock.at_step[last]).astype(np.int64)
    return replace(
        temporal,
        last_code=found[-1].code,
        last_code_cov=found[-1].code_cov,
        last_residual=np.where(fresh, residual[np.where(fresh, at, 0), column], 0.0),
        residual_age=np.where(fresh, age, 0),
        last_value=np.where(any_seen, W[last, column], known).astype(np.float64),
        last_time=float(clock.times[-1]),
    )


def _estimated(
    state: State, W: Matrix, clock: Clock, step: float, seasons: Seasons | None
) -> Temporal:
    """AR coefficients of codes, residuals and series about the seasons."""
    params, hyper = state.params, state.config.hyper
    W = W - season_of(seasons, clock.times)
    rows = clip_rows(state, in_data_units(state, W))
    if seasons is not None:
        basis = _basis(state, rows)
        seasons, state = replace(seasons, code_basis=basis), about(state, basis)
    codes = encode_rows(state, rows, limit=outlier_limit(state)).X
    E = residuals(state, W, codes)
    R, elapsed = params.C.shape[1], clock.elapsed[1:-1]
    series = fit_series(state, W, clock.at_step)
    return replace(
        _blank(state),
        code_ar=ar_coefficients(codes[:, : R - 1], elapsed, 0.0, hyper.max_ar),
        residual_ar=ar_coefficients(E, elapsed, hyper.ar_prior[0], hyper.max_ar),
        series_ar=series.ar,
        series_noise=series.noise,
        series_size=series.size,
        step=step,
        last_time=float(clock.times[-1]),
        seasons=seasons,
    )


def code_basis(state: State, rows: NDArray[Any]) -> Matrix:
    """A square root of the covariance of codes that regressors leave, from rows without these."""
    return _basis(state, clip_rows(state, rows))


def _basis(state: State, rows: Whitened) -> Matrix:
    """A square root of the covariance of codes.

    By EM: the covariance is the mean of the codes' second moments, given the last one.
    """
    r, now = state.n_components, state
    used = np.flatnonzero(state.params.C[:, :r].any(axis=0))
    basis = np.eye(r)
    for _ in range(EM_ROUNDS):
        codes = encode_rows(now, rows, limit=outlier_limit(now))
        moments = (codes.X[:, :r].T @ codes.X[:, :r] + codes.cov_sum) / len(rows)
        moments = (basis @ moments @ basis.T)[np.ix_(used, used)]
        values, vectors = np.linalg.eigh(0.5 * (moments + moments.T))
        basis = np.eye(r)
        basis[np.ix_(used, used)] = vectors * np.sqrt(np.maximum(values, 0.0))
        now = about(state, basis)
    return basis


def _blank(state: State) -> Temporal:
    """No autoregressions."""
    m, r = len(state.params.C), state.n_components
    return Temporal(
        code_ar=np.zeros(r), residual_ar=np.zeros(m), last_code=np.zeros(r),
        last_code_cov=np.eye(r), last_residual=np.zeros(m), residual_age=np.zeros(m, np.int64),
        histogram=np.zeros(N_BINS), one_step_histogram=np.zeros(N_BINS), series_ar=np.zeros(m),
        series_weight=np.zeros((len(DISTANCES), m)), n_seen=state.n_seen, last_value=np.zeros(m),
    )  # fmt: skip


def _moved(missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The pattern of missing entries a third of the sequence later, where entries are known."""
    return np.roll(missing, len(missing) // 3, axis=0) & ~missing
