"""Forecasts, and what backtests from many origins say of them, for each horizon.

The factors predict the code by φ^h and each residual by φ_i^h, about the seasons. A series that
wanders is predicted better by its last known value. The weight of that value, and how wide
intervals must be, depend on the horizon and on the feature. Backtests decide: from origins along
the last rows, forecasts are compared with what came.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..conformal import binned, normal_sizes, student_factor
from ..linalg.autoregression import eliminate
from ..linalg.posterior import spread
from .clock import Clock
from .hyper import Hyper
from .robust import clip_rows
from .seasons import season_of
from .smoother import PART, about_seasons, in_data_units, residuals
from .state import Horizons, State, Temporal
from .stats import Matrix, Vector
from .step import end_batch
from .univariate import LARGEST_ERROR, ar_coefficients, away_from_mean

# Horizons of the backtests, in steps: at most a quarter of the rows.
STEPS = (1, 2, 3, 6, 12, 24, 48, 96, 192, 384)
# Origins of the backtests, at most, and the fewest that say something.
ORIGINS, FEWEST_ORIGINS = 64, 8
# Reversion to the mean gains by chance in n rows of a random walk at a horizon h: the first number
# times h / n, at most the second.
CHANCE = (2.0, 0.3)


class Filtered(NamedTuple):
    """What the rows up to one tell of those after it: the filtered code, and its residuals."""

    code: Vector
    code_cov: Matrix
    residual: Vector
    """0 where none is known."""
    age: Vector
    """Steps since the residual; infinite where none is known."""


class Forecast(NamedTuple):
    """Means and deviations (steps, m), and a histogram of errors in units of these."""

    mean: Matrix
    std: Matrix
    histogram: Vector


def forecast(state: State, steps: int, times: Vector | None = None) -> Forecast:
    """The rows that follow the last one; a step apart, or at given times."""
    temporal = state.temporal
    assert temporal is not None
    state = about_seasons(end_batch(state))
    if times is None:
        times = temporal.last_time + temporal.step * np.arange(1.0, steps + 1.0)
    ahead = (times - temporal.last_time) / temporal.step
    known = temporal.last_residual != 0.0
    age = np.where(known, temporal.residual_age, np.inf)
    now = Filtered(temporal.last_code, temporal.last_code_cov, temporal.last_residual, age)
    both = [steps_ahead(state, temporal, now, step) for step in ahead.tolist()]
    means, deviations = (np.array(each).reshape(len(both), -1) for each in zip(*both, strict=True))
    histogram = temporal.one_step_histogram
    if temporal.horizons is not None:
        late = np.where(known, temporal.residual_age, 0.0)
        weight, ratio = _at_horizons(temporal.horizons, ahead, late)
        means += weight * (temporal.last_value - means)
        # What is nearer is known better: that it seems not to be in some column is chance.
        deviations = np.maximum.accumulate(ratio * deviations, axis=0)
        histogram = temporal.horizons.histogram
    means += season_of(temporal.seasons, times)
    means = means * state.params.noise_std + state.params.center
    return Forecast(means, deviations * state.spread, histogram)


def steps_ahead(
    state: State, temporal: Temporal, now: Filtered, step: float
) -> tuple[Vector, Vector]:
    """Mean and standard deviation of each feature by the factors, `step` steps after a row."""
    C = state.params.C.astype(np.float64, copy=False)
    left = temporal.code_ar**step
    x = np.append(left * now.code, state.one)
    covariance = np.outer(left, left) * now.code_cov
    covariance += np.diag(1.0 - left**2)
    variance, every = np.empty(len(C)), np.arange(len(C), dtype=np.int32)
    spread(C, covariance, state.batch.Sigma, x, state.batch.inverse_coverage, every, variance)
    known = temporal.residual_ar ** (now.age + step)
    return C @ x + known * now.residual, np.sqrt(variance - known**2)


def filtered_at(state: State, W: Matrix, clock: Clock, rows: NDArray[np.int64]) -> list[Filtered]:
    """What is known at some rows, in rising order, of those after them.

    The filter: Λ_t of `autoregression.py` without what ties a code to the one after it.
    """
    temporal, batch = state.temporal, state.batch
    assert temporal is not None
    C = state.params.C.astype(np.float64, copy=False)
    n, r, phi = len(W), state.n_components, temporal.code_ar
    entries = clip_rows(state, in_data_units(state, W)).entries
    carry, inverses, eta = np.zeros((r, r + 1)), np.empty((PART, r, r)), np.empty((PART, r))
    found: list[Filtered] = []
    for first in range(0, int(rows[-1]) + 1, PART):
        last = min(first + PART, n)
        eliminate(
            C, batch.G, batch.Sigma, batch.inverse_coverage, state.one, phi, clock.elapsed,
            *entries, first, last, n, carry, inverses, eta,
        )  # fmt: skip
        for t in rows[(rows >= first) & (rows < last)].tolist():
            precision = np.linalg.inv(inverses[t - first])
            if t + 1 < n:
                after = phi ** clock.elapsed[t + 1]
                precision -= np.diag(after**2 / (1.0 - after**2))
            covariance = np.linalg.inv(precision)
            code = covariance @ eta[t - first]
            E = residuals(state, W[t : t + 1], np.append(code, state.one)[None])[0]
            age = np.where(np.isnan(E), np.inf, 0.0)
            found.append(Filtered(code, 0.5 * (covariance + covariance.T), np.nan_to_num(E), age))
    return found


def backtested(state: State, W: Matrix, clock: Clock) -> Horizons | None:
    """Weights and widths of forecasts from backtests on rows W without their season.

    W is in units of the noise. None if there are too few rows.
    """
    temporal, hyper = state.temporal, state.config.hyper
    assert temporal is not None
    n, m = W.shape
    steps = np.array([step for step in STEPS if step <= max(n / 4, 1)], np.float64)
    if n < 4 * FEWEST_ORIGINS:
        return None
    origins = np.unique(np.linspace(n // 4, n - 2, ORIGINS).astype(np.int64))
    errors = np.full((2, len(origins), len(steps), m), np.nan)
    deviations = np.ones((len(origins), len(steps), m))
    target, reached = _targets(clock, origins, steps)
    past, away = _past_means(W), away_from_mean(state, W)[0]
    slack = ar_coefficients(away, clock.elapsed[1:-1], hyper.ar_prior[1], hyper.max_ar)
    everything = past[-1]
    for at, (t, now) in enumerate(
        zip(origins.tolist(), filtered_at(state, W, clock, origins), strict=True)
    ):
        for k in np.flatnonzero(reached[at]).tolist():
            row = int(target[at, k])
            step = float(clock.at_step[row] - clock.at_step[t])
            mean, deviations[at, k] = steps_ahead(state, temporal, now, step)
            # The mean knows the rows to come: a forecast at that time would have had the past's.
            mean = mean + (1.0 - slack**step) * (past[t] - everything)
            truth = np.where(np.isnan(W[t]), np.nan, W[row])
            errors[0, at, k], errors[1, at, k] = mean - truth, W[t] - truth
    errors = np.clip(errors / _sizes(state), -LARGEST_ERROR, LARGEST_ERROR)
    return _judged(steps, errors, deviations / _sizes(state), origins, hyper)


def _judged(
    steps: Vector, errors: NDArray[np.float64], deviations: NDArray[np.float64],
    origins: NDArray[np.int64], hyper: Hyper,
) -> Horizons | None:  # fmt: skip
    """Weights, ratios and histograms from errors (2, origins, steps, m) of both forecasts."""
    n_rows = int(origins[-1]) + 2
    apart = (n_rows - int(origins[0])) / len(origins)
    weights, ratios, found = [], [], [normal_sizes(hyper.calibration_prior)]
    for k, step in enumerate(steps.tolist()):
        shared, last, size = errors[0, :, k], errors[1, :, k], deviations[:, k]
        seen = ~np.isnan(shared)
        if np.count_nonzero(seen.any(axis=1)) < FEWEST_ORIGINS:
            break
        # Errors of origins that are nearer to each other than the horizon are nearly the same.
        prior = hyper.horizon_prior * max(1.0, step / apart)
        chance = min(CHANCE[0] * step / n_rows, CHANCE[1])
        weight = _weight(np.nan_to_num(shared), np.nan_to_num(last), seen, prior, chance)
        relative = np.where(seen, shared + weight * (last - shared), 0.0) / size
        count = seen.sum(axis=0)
        usual = float(np.sum(relative**2)) / max(int(count.sum()), 1)
        ratio = np.sqrt((np.sum(relative**2, axis=0) + prior * usual) / (count + prior))
        ratio = np.maximum(ratio * _few_errors(relative, max(1.0, step / apart)), 1e-3)
        weights.append(weight)
        ratios.append(ratio)
        found.append(np.abs(relative / ratio)[seen])
    if not weights:
        return None
    sizes = np.concatenate(found)
    histogram = binned(sizes, np.ones(len(sizes)))
    return Horizons(steps[: len(weights)], np.array(weights), np.array(ratios), histogram)


def _few_errors(relative: Matrix, overlap: float) -> float:
    """By how much intervals from few independent errors must be wider: Student's t.

    Errors of features that move together count once: by the participation ratio.
    """
    total = float(np.sum(relative**2))
    squares = float(np.sum((relative.T @ relative) ** 2))
    features = max(total**2 / max(squares, 1e-300), 1.0)
    dof = max(len(relative) / overlap * features, 3.0)
    return float(student_factor(0.9, np.array([dof]))[0])


def _weight(
    shared: Matrix, last: Matrix, seen: NDArray[np.bool_], prior: float, chance: float
) -> Vector:
    """Weight of the last value for each feature: what suits all of them, and then itself.

    It is 1 unless less lowers the squared error by more than a share `chance`.
    """
    apart = np.where(seen, shared - last, 0.0)
    along, squares = -np.sum(apart * last, axis=0, where=seen), np.sum(apart**2, axis=0)
    losses = np.sum(last**2, axis=0, where=seen)
    count = max(int(seen.sum()), 1)

    def best(along: Vector, squares: Vector, losses: Vector) -> Vector:
        share = np.clip(along / np.maximum(squares, 1e-300), 0.0, 1.0)
        gained = share * (2.0 * along - share * squares)
        return np.where(gained > chance * losses, share, 0.0)

    usual = best(along.sum(), squares.sum(), losses.sum())
    weight: Vector = 1.0 - best(
        along + prior * usual * squares.sum() / count,
        squares + prior * squares.sum() / count,
        losses + prior * losses.sum() / count,
    )
    return weight


def _at_horizons(horizons: Horizons, ahead: Vector, late: Vector) -> tuple[Matrix, Matrix]:
    """Weights and ratios (q, m) for some horizons.

    Features of which the last value is older have so much longer horizons.
    """
    log_steps = np.log(horizons.steps)
    wanted = np.log(np.maximum(ahead[:, None] + late, 1e-9))
    inside = np.clip(wanted, log_steps[0], log_steps[-1])
    after = np.clip(np.searchsorted(log_steps, inside), 1, max(len(log_steps) - 1, 1))
    after = np.minimum(after, len(log_steps) - 1)
    before = np.maximum(after - 1, 0)
    span = np.maximum(log_steps[after] - log_steps[before], 1e-9)
    share = np.clip((inside - log_steps[before]) / span, 0.0, 1.0)
    column = np.arange(horizons.ratio.shape[1])
    weight, ratio = (
        (1.0 - share) * table[before, column] + share * table[after, column]
        for table in (horizons.weight, horizons.ratio)
    )
    return weight, ratio * _growth(horizons, wanted)


def _growth(horizons: Horizons, wanted: Matrix) -> Matrix:
    """By how much deviations grow beyond the longest horizon: those of a random walk as √h."""
    beyond = np.maximum(wanted - np.log(horizons.steps[-1]), 0.0)
    grown: Matrix = np.exp(0.5 * horizons.weight[-1] * beyond)
    return grown


def _targets(
    clock: Clock, origins: NDArray[np.int64], steps: Vector
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """The row nearest to each horizon after each origin, and whether it is near."""
    at = clock.at_step
    wanted = at[origins][:, None] + steps
    after = np.clip(np.searchsorted(at, wanted - 1e-6), 1, len(at) - 1)
    nearest = np.where(wanted - at[after - 1] < at[after] - wanted, after - 1, after)
    near = np.abs(at[nearest] - wanted) <= np.maximum(0.25 * steps, 0.5)
    return nearest, near & (nearest > origins[:, None])


def _past_means(W: Matrix) -> Matrix:
    """Means of each feature up to each row."""
    seen = ~np.isnan(W)
    means: Matrix = np.cumsum(np.where(seen, W, 0.0), axis=0)
    return means / np.maximum(np.cumsum(seen, axis=0), 1)


def _sizes(state: State) -> Vector:
    """Marginal standard deviations of the features, in units of the noise."""
    C = state.params.C[:, :-1].astype(np.float64)
    sizes: Vector = np.sqrt(1.0 + np.einsum("ij,ij->i", C, C))
    return sizes
