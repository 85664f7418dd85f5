"""Univariate AR: a feature's own series, where it predicts gaps better than the factors do.

The factors explain a feature by what it shares with others. A gap of one that shares little is
better bridged from its own values before and after, as an autoregression of order one does. The
weight of this depends on the feature and on the distance to the nearest known value: a single hour
is filled otherwise than a day. Held-out gaps decide.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.autoregression import series_likelihoods, smooth
from .hyper import Hyper
from .innovations import communality, shared_path
from .state import Flags, Innovations, State
from .stats import Matrix, Vector

# Rows to the nearest known value from which on the series has another weight.
DISTANCES = (1, 2, 3, 6, 12, 25)
# What is tried: 1 − φ, and the noise beside an innovation's variance.
SLACKS = (0.0, 0.003, 0.01, 0.03, 0.1, 0.2, 0.4, 0.7, 1.0)
NOISE_RATIOS = (0.0, 0.3, 1.0, 3.0, 10.0)
# Entries that series are estimated from, at most: of more rows, the last ones.
MOST_ENTRIES = 1 << 19
# Held-out entries at a distance below which the weight is that of the next smaller distance.
FEWEST = 100
# No error counts as more deviations: a few spikes must not decide.
LARGEST_ERROR = 5.0
# Errors beyond this come from numbers at the end of their range.
HUGE = 1e100


class Bridged(NamedTuple):
    """Values (n, m) by features' own series, and their deviations, in units of the noise."""

    mean: Matrix
    std: Matrix


class Series(NamedTuple):
    """Each feature's own series, an autoregression of order one that is observed with noise."""

    ar: Vector
    noise: Vector
    """The noise's share of the variance."""
    size: Vector
    """Standard deviations, in units of the factors' noise."""


def fit_series(state: State, W: Matrix, at_step: Vector) -> Series:
    """The series of features from rows W, in units of the noise, by maximum likelihood.

    All features together count as `ar_pairs` entries of each.
    """
    Z = away_from_mean(state, W)[0]
    Z = Z[-max(MOST_ENTRIES // Z.shape[1], 2) :]
    at_step, hyper = at_step[-len(Z) :], state.config.hyper
    slack, ratio = (each.ravel() for each in np.meshgrid(SLACKS, NOISE_RATIOS, indexing="ij"))
    phi = np.minimum(1.0 - slack, hyper.max_ar)
    noise = ratio * (1.0 - phi**2)
    noise /= 1.0 + noise
    out = np.empty((Z.shape[1], len(phi), 2))
    left = phi[:, None] ** np.diff(at_step)
    series_likelihoods(Z, left, 1.0 - noise, noise, out)
    counts = np.maximum(np.sum(~np.isnan(Z), axis=0), 1)
    variances = np.maximum(out[..., 1] / counts[:, None], 1e-300)
    loss = out[..., 0] + counts[:, None] * np.log(variances)
    loss -= loss.min(axis=1, keepdims=True)
    usual = hyper.ar_pairs * loss.sum(axis=0) / counts.sum()
    best = np.argmin(loss + usual, axis=1)
    size = np.sqrt(variances[np.arange(len(best)), best])
    return Series(phi[best], noise[best], size)


def series_of(state: State) -> Series:
    """The series of the features of a state; files of older versions have no noise and sizes."""
    temporal = state.temporal
    assert temporal is not None
    if len(temporal.series_size):
        return Series(temporal.series_ar, temporal.series_noise, temporal.series_size)
    return Series(temporal.series_ar, np.zeros(len(state.C)), marginal_sizes(state))


def bridge_series(
    state: State, W: Matrix, series: Series, at_step: Vector,
    innovations: Innovations | None = None,
) -> Bridged:  # fmt: skip
    """Missing entries of rows W, in units of the noise, by each feature's own autoregression.

    And by what its innovations share with those of others, if that is known.
    """
    away, share = away_from_mean(state, W)[0], np.zeros(W.shape[1])
    path, unknown = np.zeros_like(away), np.zeros(len(away))
    if innovations is not None:
        path, unknown = shared_path(innovations, away, series.ar, at_step, state.config.hyper)
        share = communality(innovations)
    means, variances = np.zeros_like(away), np.zeros_like(away)
    signal = (1.0 - series.noise) * (1.0 - share)
    smooth(away - path, series.ar, signal, series.noise, at_step, means, variances)
    of_signal = np.maximum(variances - series.noise, 0.0)
    variances += of_signal * np.outer(unknown, share / (1.0 - share))
    return Bridged(means + path + _mean(state), np.sqrt(variances) * series.size)


def ar_coefficients(E: Matrix, elapsed: Vector, prior: float, largest: float) -> Vector:
    """AR(1) coefficient of each column for one step, shrunk by `prior` uncorrelated pairs."""
    before, now = E[:-1], E[1:]
    both = ~np.isnan(before * now)
    products = np.sum(before * now, axis=0, where=both)
    squares = np.sum(0.5 * (before**2 + now**2), axis=0, where=both)
    typical = float(np.nanmean(E**2)) if np.isfinite(E).any() else 1.0
    coefficients = products / np.maximum(squares + prior * typical, 1e-300)
    apart = (elapsed @ both) / np.maximum(both.sum(axis=0), 1)
    per_step = np.maximum(coefficients, 0.0) ** (1.0 / np.maximum(apart, 1e-3))
    return np.clip(np.where(apart == 1.0, coefficients, per_step), 0.0, largest)


def away_from_mean(state: State, W: Matrix) -> tuple[Matrix, Vector]:
    """Rows without the mean, clipped, and their marginal standard deviations."""
    size = marginal_sizes(state)
    limit = state.config.hyper.clip_limit * size
    return np.clip(W - _mean(state), -limit, limit), size


def marginal_sizes(state: State) -> Vector:
    """Standard deviations of the features, in units of the noise."""
    C = state.params.C[:, :-1].astype(np.float64)
    sizes: Vector = np.sqrt(1.0 + np.einsum("ij,ij->i", C, C))
    return sizes


def series_weight(
    own: Matrix, shared: Matrix, held_out: Flags, missing: Flags, hyper: Hyper
) -> Matrix:
    """Weight of the feature's own series in a filled value, for each distance and feature.

    For each distance all features begin with the weight that suits them together, which is 0
    unless it lowers the squared error by `series_gain`.

    Parameters
    ----------
    own, shared : ndarray of shape (n, m)
        Errors of each feature's own series and of the factors, in units of the features.
    held_out, missing : ndarray of shape (n, m)
        Entries that are known and were held out, and all that had to be filled.
    hyper : Hyper
    """
    usable = held_out & (np.abs(own) < HUGE) & (np.abs(shared) < HUGE)  # neither NaN
    apart = np.where(usable, own - shared, 0.0)
    error = np.where(usable, np.clip(-shared, -LARGEST_ERROR, LARGEST_ERROR), 0.0)
    classes = distance_classes(missing)
    weight = np.zeros((len(DISTANCES), own.shape[1]))
    for at in range(len(DISTANCES)):
        chosen = usable & (classes == at)
        count = int(chosen.sum())
        if count < FEWEST:
            weight[at] = weight[at - 1] if at else 0.0
            continue
        along = np.sum(apart * error, axis=0, where=chosen)
        squares = np.sum(apart**2, axis=0, where=chosen)
        total, typical = float(squares.sum()), float(squares.sum()) / count
        usual = min(max(float(along.sum()) / max(total, 1e-300), 0.0), 1.0)
        gained = usual * (2.0 * float(along.sum()) - usual * total)
        if gained < hyper.series_gain * float(np.sum(error**2, where=chosen)):
            usual = 0.0
        prior = hyper.series_prior * typical
        weight[at] = (along + usual * prior) / np.maximum(squares + prior, 1e-300)
    return np.clip(weight, 0.0, 1.0)


def distance_classes(missing: Flags) -> NDArray[np.int64]:
    """Index into `DISTANCES` of each entry's distance to the nearest known one of its column."""
    rows = np.arange(len(missing))[:, None]
    far = len(missing) + DISTANCES[-1]
    before = np.maximum.accumulate(np.where(missing, -far, rows), axis=0)
    after = np.minimum.accumulate(np.where(missing, 2 * far, rows)[::-1], axis=0)[::-1]
    classes = np.searchsorted(DISTANCES, np.minimum(rows - before, after - rows), side="right") - 1
    return np.maximum(classes, 0)


def _mean(state: State) -> Vector:
    mean: Vector = state.one * state.params.C[:, -1].astype(np.float64)
    return mean
