"""Univariate AR: a feature's own series, where it predicts gaps better than the factors do.

The factors explain a feature by what it shares with others. A gap of one that shares little is
better bridged from its own values before and after, as an autoregression of order one does. The
weight of this depends on the feature and on the distance to the nearest known value: a single hour
is filled otherwise than a day. Held-out gaps decide.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.autoregression import bridge
from .hyper import Hyper
from .state import Flags, State
from .stats import Matrix, Vector

# Rows to the nearest known value from which on the series has another weight.
DISTANCES = (1, 2, 3, 6, 12, 25)
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


def bridge_series(state: State, W: Matrix, series_ar: Vector, at_step: Vector) -> Bridged:
    """Missing entries of rows W, in units of the noise, by each feature's own autoregression."""
    away, size = away_from_mean(state, W)
    means, remains = np.zeros_like(away), np.ones_like(away)
    bridge(away, series_ar, at_step, means, remains)
    return Bridged(means + _mean(state), np.sqrt(remains) * size)


def away_from_mean(state: State, W: Matrix) -> tuple[Matrix, Vector]:
    """Rows without the mean, clipped, and their marginal standard deviations."""
    C = state.params.C[:, :-1].astype(np.float64)
    size = np.sqrt(1.0 + np.einsum("ij,ij->i", C, C))
    limit = state.config.hyper.clip_limit * size
    return np.clip(W - _mean(state), -limit, limit), size


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
