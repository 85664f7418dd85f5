"""Seasons: cycles of known length that features follow beside their mean.

A feature i has the season s_i(t) = Σ_k a_ik cos(2π f_k t) + b_ik sin(2π f_k t) at all times, past
and future: atoms whose codes are known. What is left follows the factors and autoregressions.

Loadings are those of a regression with autocorrelated errors. An entry minus φ^Δ times the known
one before it, Δ steps earlier, over the deviation of that difference, is independent of the past.
Features share the prior variance of each frequency (automatic relevance determination).

Candidates are a day, a week and a year, where rows have times, and the peaks of the periodogram.
One after the other is added if it helps to predict stretches of the sequence that were left out.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .clock import Clock
from .state import Seasons
from .stats import Matrix, Vector

DAY = 86400.0
CALENDAR = (DAY, 7.0 * DAY, 365.2425 * DAY)
# Parts of the sequence that are left out in turn.
N_FOLDS = 8
# Features that cycles are chosen by, at most: of more, evenly spread ones.
MOST_FEATURES = 16
# Harmonics of a cycle, at most: a day is none of a week.
HARMONICS = 6
# A cycle has at least so many rows, and the rows have at least so many cycles.
LEAST_ROWS, LEAST_CYCLES = 3.0, 2.0
# Cycles in all, and peaks of the periodogram that are tried.
MOST_PERIODS, PEAKS = 3, 4
# A peak is so many times the median of its neighbours.
PEAK = 4.0
# Rounds in which coefficients and their prior variances are estimated in turn.
ROUNDS = 4
# Rows without times: shifts that are tried, rows that they are tried on, and what must be gained.
MOST_SHIFTS, SHIFTED_ROWS, SHIFT_GAIN = 400, 256, 0.02
# No autoregression is taken to be nearer to a random walk: differences would vanish.
MOST_AR = 0.999


def season_codes(frequencies: Vector, times: Vector) -> Matrix:
    """The known codes (n, 2 K): cosines, then sines."""
    turns = np.outer(times, frequencies)
    angles = 2.0 * np.pi * (turns - np.floor(turns))
    return np.hstack([np.cos(angles), np.sin(angles)])


def season_of(seasons: Seasons | None, times: Vector) -> Matrix | float:
    """Seasons (n, m) of the features, in units of the noise; 0 if there are none."""
    if seasons is None:
        return 0.0
    season: Matrix = season_codes(seasons.frequencies, times) @ seasons.loadings.T
    return season


def best_shift(seasons: Seasons | None, W: Matrix, times: Vector, step: float) -> float:
    """By how much times must be later for the seasons to suit rows best; 0 if it hardly matters."""
    if seasons is None:
        return 0.0
    period = float(seasons.periods.max())
    count = int(min(np.ceil(period / step), MOST_SHIFTS))
    some = np.unique(np.linspace(0, len(W) - 1, SHIFTED_ROWS).astype(int))
    some = some[~np.isnan(W[some]).all(axis=1)]
    if len(some) == 0:
        return 0.0
    Y, seen = np.nan_to_num(W[some]), ~np.isnan(W[some])
    Y = Y - np.sum(Y, axis=0) / np.maximum(seen.sum(axis=0), 1)
    Y *= seen
    shifts = np.rint(np.arange(count) * (period / count) / step) * step
    errors = []
    for shift in shifts:
        season = season_of(seasons, times[some] + shift)
        errors.append(float(np.sum((Y - season) ** 2, where=seen)))
    best = int(np.argmin(errors))
    return float(shifts[best]) if errors[best] < (1.0 - SHIFT_GAIN) * errors[0] else 0.0


def find_seasons(
    W: Matrix, clock: Clock, step: float, periods: Vector | None, stamped: bool, gain: float
) -> Seasons | None:
    """Seasons of rows, or None if they have none.

    Parameters
    ----------
    W : ndarray of shape (n, m)
        Rows in units of the noise, clipped; NaN is missing.
    clock : Clock
    step : float
        The usual time between two rows.
    periods : ndarray or None
        Lengths of the cycles; None is to look for them.
    stamped : bool
        Whether times are in seconds, so that days mean something.
    gain : float
        Share by which a cycle must lower the error of what is left out.
    """
    if periods is None:
        periods = _chosen(W, clock, step, stamped, gain)
    frequencies = _frequencies(periods, clock, step)
    if len(frequencies) == 0:
        return None
    equations = _normal_equations(W, clock, frequencies, n_folds=1)
    loadings, _ = _solved(equations, np.arange(len(frequencies)))
    return Seasons(periods, frequencies, loadings * equations.noise[:, None])


def known_effects(
    W: Matrix, clock: Clock, step: float, periods: Vector | None, stamped: bool, gain: float,
    known: Matrix,
) -> Matrix:  # fmt: skip
    """Loadings (m, q) of known columns (n, q) beside seasons; see `find_seasons`.

    They are 0 for columns without which parts left out are predicted no worse.
    """
    effects = np.zeros((W.shape[1], known.shape[1]))
    seen = np.flatnonzero(np.sum(~np.isnan(W), axis=0) >= 2)  # others would blur the priors
    if len(W) < 4 or len(seen) == 0:
        return effects
    if periods is None:
        periods = _chosen(W, clock, step, stamped, gain, known)
    frequencies = _frequencies(periods, clock, step)
    equations = _normal_equations(W[:, seen], clock, frequencies, N_FOLDS, known)
    which = np.arange(len(frequencies))
    kept = np.arange(known.shape[1])
    for column in range(known.shape[1]):
        others = kept[kept != column]
        with_it = float(_losses(equations, which, kept).sum())
        if float(_losses(equations, which, others).sum()) <= with_it:
            kept = others
    loadings, _ = _solved(equations, which, kept)
    effects[np.ix_(seen, kept)] = loadings[:, 2 * len(which) :] * equations.noise[:, None]
    return effects


def _chosen(
    W: Matrix, clock: Clock, step: float, stamped: bool, gain: float, known: Matrix | None = None
) -> Vector:
    """Lengths of the cycles without which parts left out are predicted worse."""
    none = np.empty(0)
    count = np.sum(~np.isnan(W), axis=0)
    usable = np.flatnonzero(count >= max(4 * N_FOLDS, 0.25 * float(count.max(initial=0))))
    if len(usable) == 0:
        return none
    some = W[:, usable[np.unique(np.linspace(0, len(usable) - 1, MOST_FEATURES).astype(int))]]
    left = _candidates(some, clock, step, stamped)
    if not left:
        return none
    every = _frequencies(np.array(left), clock, step)
    equations = _normal_equations(some, clock, every, N_FOLDS, known)
    chosen: list[float] = []
    losses = _losses(equations, np.empty(0, np.int64))
    for period in sorted(left):
        # A cycle has the shorter ones that divide it as its harmonics.
        others = [each for each in chosen if not _divides(each, period)]
        wanted = _frequencies(np.array([*others, period]), clock, step)
        which = np.unique([int(np.argmin(np.abs(every - each))) for each in wanted])
        tried = _losses(equations, which)
        if len(others) < MOST_PERIODS and _is_better(tried, losses, gain):
            chosen, losses = [*others, period], tried
    return np.array(chosen)


def _divides(short: float, long: float) -> bool:
    """Whether a cycle is among the harmonics of a longer one."""
    times = long / short
    return abs(times - round(times)) < 1e-6 and round(times) <= HARMONICS


def _is_better(losses: Matrix, before: Matrix, gain: float) -> bool:
    """Whether parts left out are predicted better, by more than chance and by more than `gain`."""
    gained = before.sum(axis=0) - losses.sum(axis=0)
    sure = float(gained.mean()) > 2.0 * float(gained.std(ddof=1)) / np.sqrt(len(gained))
    return sure and float(losses.sum()) < (1.0 - gain) * float(before.sum())


def _candidates(W: Matrix, clock: Clock, step: float, stamped: bool) -> list[float]:
    """Lengths of cycles that may be there, each so that enough of it is seen."""
    length = _length(clock, step)
    kept: list[float] = []
    for period in (*(CALENDAR if stamped else ()), *_peaks(W, clock, step)):
        inside = LEAST_ROWS * step <= period <= length / LEAST_CYCLES
        # A peak near a day is the day: n rows know frequencies up to 1 / n only.
        if inside and all(abs(1.0 / period - 1.0 / other) > 0.75 / length for other in kept):
            kept.append(float(period))
    return kept


def _length(clock: Clock, step: float) -> float:
    return float(clock.times[-1] - clock.times[0]) + step


def _peaks(W: Matrix, clock: Clock, step: float) -> list[float]:
    """Periods of the strongest peaks of the periodogram of the innovations."""
    at = np.rint(clock.at_step).astype(np.int64)
    n = int(at[-1]) + 1
    if n > 8 * len(W) or n < 16:
        return []
    grid = np.zeros((n, W.shape[1]))
    for i in range(W.shape[1]):
        seen = np.flatnonzero(~np.isnan(W[:, i]))
        w = W[seen, i] - W[seen, i].mean()
        rho, size = _fading(_ar(w, clock.at_step[seen]), clock.at_step[seen])
        np.add.at(grid[:, i], at[seen], _differenced(w, rho, size))
    length = 4 * n
    energy = np.maximum(np.sum(grid**2, axis=0), 1e-300)
    power = np.sum(np.abs(np.fft.rfft(grid, length, axis=0)) ** 2 / energy, axis=1)
    ratio = power / np.maximum(_running_median(power, 65), 1e-300)
    peak = np.flatnonzero((ratio[1:-1] > ratio[:-2]) & (ratio[1:-1] >= ratio[2:])) + 1
    peak = peak[(ratio[peak] > PEAK) & (peak >= 4)]
    strongest = peak[np.argsort(-ratio[peak], kind="stable")][:PEAKS]
    found: list[float] = []
    for k in sorted(strongest.tolist(), reverse=True):
        found.append(_whole(length / k, n, found))
    return [step * period for period in found]


def _whole(period: float, n: int, shorter: list[float]) -> float:
    """The next multiple of a shorter cycle, or whole number, that n rows could not tell from it."""
    for unit in [*shorter, 1.0]:
        nearest = unit * round(period / unit)
        if nearest > unit and abs(period - nearest) < period**2 / (2.0 * n):
            return float(nearest)
    return period


def _running_median(power: Vector, width: int) -> Vector:
    padded = np.pad(power, width // 2, mode="edge")
    medians: Vector = np.median(np.lib.stride_tricks.sliding_window_view(padded, width), axis=1)
    return medians


def _frequencies(periods: Vector, clock: Clock, step: float) -> Vector:
    """Frequencies of cycles and their harmonics, as many as the rows can tell apart."""
    length, n = _length(clock, step), len(clock.times)
    found: list[float] = []
    for period in periods.tolist():
        most = min(HARMONICS, int(np.ceil(0.5 * period / step)) - 1, max(1, n // 50))
        for k in range(1, most + 1):
            if all(abs(k / period - other) > 0.5 / length for other in found):
                found.append(k / period)
    return np.array(found)


class _Equations(NamedTuple):
    """Normal equations of m features in F folds, in units of their innovations' deviations.

    Unknown are a constant and two coefficients for each frequency.
    """

    A: NDArray[np.float64]
    """(m, F, k, k)."""
    b: NDArray[np.float64]
    """(m, F, k)."""
    squares: Matrix
    """(m, F)."""
    noise: Vector
    """(m,): the deviations."""
    n_known: int = 0
    """Further columns of the regression, the last ones."""


def _normal_equations(
    W: Matrix, clock: Clock, frequencies: Vector, n_folds: int, known: Matrix | None = None
) -> _Equations:
    """Normal equations of the regression of rows on seasons, with autocorrelated errors.

    And on `known` columns, if given.
    """
    more = [] if known is None else [known]
    Z = np.hstack([np.ones((len(W), 1)), season_codes(frequencies, clock.times), *more])
    m, k = W.shape[1], Z.shape[1]
    A, b = np.zeros((m, n_folds, k, k)), np.zeros((m, n_folds, k))
    squares, noise = np.zeros((m, n_folds)), np.ones(m)
    cuts = np.linspace(0, len(W), n_folds + 1)
    for i in range(m):
        seen = np.flatnonzero(~np.isnan(W[:, i]))
        if len(seen) < 2:
            continue
        w, z, at = W[seen, i], Z[seen], clock.at_step[seen]
        least = 1e-3 * len(seen) * np.eye(k)  # of few rows, coefficients may not be unique
        phi = _ar(w - z @ np.linalg.solve(z.T @ z + least, z.T @ w), at)
        rho, size = _fading(phi, at)
        y, x = _differenced(w, rho, size), _differenced(z, rho, size)
        beta = np.linalg.solve(x.T @ x + least, x.T @ y)
        noise[i] = max(float(np.sqrt(np.mean((y - x @ beta) ** 2))), 1e-6)
        y /= noise[i]
        ends = np.searchsorted(seen, cuts)
        for fold in range(n_folds):
            part = slice(ends[fold], ends[fold + 1])
            A[i, fold], b[i, fold] = x[part].T @ x[part], x[part].T @ y[part]
            squares[i, fold] = y[part] @ y[part]
    return _Equations(A, b, squares, noise, 0 if known is None else known.shape[1])


def _ar(w: Vector, at: Vector) -> float:
    """AR(1) coefficient for one step of a series known at some steps."""
    squares = 0.5 * float(w[1:] @ w[1:] + w[:-1] @ w[:-1])
    if squares <= 0.0:
        return 0.0
    share = float(w[1:] @ w[:-1]) / squares
    apart = float(at[-1] - at[0]) / (len(at) - 1)
    return float(min(max(share, 0.0) ** (1.0 / max(apart, 1e-3)), MOST_AR))


def _fading(phi: float, at: Vector) -> tuple[Vector, Vector]:
    """What is left of the known value before, and the deviation of the rest."""
    rho = np.concatenate([[0.0], phi ** np.diff(at)])
    return rho, np.sqrt(1.0 - rho**2)


def _differenced(w: Matrix, rho: Vector, size: Vector) -> Matrix:
    """Values without what is left of those before, over the deviation of the rest."""
    before = np.concatenate([w[:1], w[:-1]])
    if w.ndim == 2:
        rho, size = rho[:, None], size[:, None]
    return (w - rho * before) / size


def _solved(
    equations: _Equations, which: NDArray[np.int64], known: NDArray[np.int64] | None = None
) -> tuple[Matrix, Vector]:
    """Coefficients (m, 2 K + q) of some frequencies over all folds, and their prior precisions.

    The last ones are those of known columns: all, or some.
    """
    A, b = _of(equations, which, known)
    A, b = A.sum(axis=1), b.sum(axis=1)
    prior = np.zeros(A.shape[1])
    beta = np.zeros_like(b)
    for _ in range(ROUNDS):
        inverse = np.linalg.inv(A + np.diag(prior + 1e-6))
        beta = np.einsum("ijk,ik->ij", inverse, b)
        squares = np.mean(beta**2 + np.diagonal(inverse, axis1=1, axis2=2), axis=0)
        K = len(which)
        both = 0.5 * (squares[1 : K + 1] + squares[K + 1 : 2 * K + 1])
        prior = np.concatenate([[0.0], 1.0 / both, 1.0 / both, 1.0 / squares[2 * K + 1 :]])
    return beta[:, 1:], prior


def _losses(
    equations: _Equations, which: NDArray[np.int64], known: NDArray[np.int64] | None = None
) -> Matrix:
    """Mean squared innovations (m, F) of each fold, by coefficients from the others."""
    _, prior = _solved(equations, which, known)
    A, b = _of(equations, which, known)
    others = A.sum(axis=1, keepdims=True) - A + np.diag(prior + 1e-6)
    beta = np.linalg.solve(others, (b.sum(axis=1, keepdims=True) - b)[..., None])[..., 0]
    left = equations.squares - 2.0 * np.sum(beta * b, axis=-1)
    losses: Matrix = left + np.einsum("...i,...ij,...j->...", beta, A, beta)
    return losses


def _of(
    equations: _Equations, which: NDArray[np.int64], known: NDArray[np.int64] | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The equations of the constant, some frequencies, and known columns: all, or some."""
    K = (equations.A.shape[-1] - 1 - equations.n_known) // 2
    known = np.arange(equations.n_known) if known is None else known
    kept = np.concatenate([[0], 1 + which, 1 + K + which, 1 + 2 * K + known]).astype(np.int64)
    return equations.A[..., kept[:, None], kept], equations.b[..., kept]
