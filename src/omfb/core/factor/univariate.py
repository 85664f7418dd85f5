"""What each feature's own series tells of its gaps, where that fills better than other features do.

The model explains a feature by what it shares with others. Of one that shares little, a gap is
better bridged from its own values before and after it, as an autoregression of order one does. How
much that is trusted depends on the feature, and on how far off the next value is that is known: a
single hour is filled otherwise than a day. It is found by hiding.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.autoregression import bridge
from .state import Matrix, Model, Vector
from .whiten import REACH

# Rows to the next value that is known, from which on another trust is found.
DISTANCES = (1, 2, 3, 6, 12, 25)
# Hidden entries that a trust is found from at least, and those that all features begin with.
FEWEST, SHARED = 100, 200.0
# What it must lower the squared error by, as a share; no error counts as more deviations.
WORTH, MOST = 0.05, 5.0
# Errors beyond this tell nothing but that numbers have come to their end.
HUGE = 1e100


class Alone(NamedTuple):
    """Values (n, m) by features' own series, and their deviations, in units of the noise."""

    values: Matrix
    deviations: Matrix


def alone(model: Model, W: Matrix, series: Vector) -> Alone:
    """What a feature's series, of which it keeps so much from row to row, makes of missing entries.

    W are the rows in units of the noise.
    """
    away, size = away_from_mean(model, W)
    means, remains = np.zeros_like(away), np.ones_like(away)
    bridge(away, series, means, remains)
    return Alone(means + _mean(model), np.sqrt(remains) * size)


def away_from_mean(model: Model, W: Matrix) -> tuple[Matrix, Vector]:
    """Rows without the mean, and how far they usually are from it."""
    C = model.C[:, :-1].astype(np.float64)
    size = np.sqrt(1.0 + np.einsum("ij,ij->i", C, C))
    return np.clip(W - _mean(model), -REACH * size, REACH * size), size


def trust_in(
    own: Matrix, shared: Matrix, hidden: NDArray[np.bool_], missing: NDArray[np.bool_]
) -> Matrix:
    """What of a filled value is to be the feature's own, for each distance and feature.

    Parameters
    ----------
    own, shared : ndarray of shape (n, m)
        Errors of what each feature's series and the model make of the rows, in units of the
        features.
    hidden, missing : ndarray of shape (n, m)
        Entries that are known and were hidden, and all that had to be filled.
    """
    hidden = hidden & (np.abs(own) < HUGE) & (np.abs(shared) < HUGE)  # neither NaN
    apart = np.where(hidden, own - shared, 0.0)
    error = np.where(hidden, np.clip(-shared, -MOST, MOST), 0.0)
    classes = distance_classes(missing)
    trust = np.zeros((len(DISTANCES), own.shape[1]))
    for at in range(len(DISTANCES)):
        chosen = hidden & (classes == at)
        count = int(chosen.sum())
        if count < FEWEST:  # as at the next smaller distance
            trust[at] = trust[at - 1] if at else 0.0
            continue
        along = np.sum(apart * error, axis=0, where=chosen)
        squares = np.sum(apart**2, axis=0, where=chosen)
        total, typical = float(squares.sum()), float(squares.sum()) / count
        usual = min(max(float(along.sum()) / max(total, 1e-300), 0.0), 1.0)
        gained = usual * (2.0 * float(along.sum()) - usual * total)
        if gained < WORTH * float(np.sum(error**2, where=chosen)):
            usual = 0.0
        found = (along + SHARED * usual * typical) / np.maximum(squares + SHARED * typical, 1e-300)
        trust[at] = np.clip(found, 0.0, 1.0)
    return trust


def distance_classes(missing: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Which of the distances each entry has to the nearest row, before or after, that is known."""
    rows = np.arange(len(missing))[:, None]
    far = len(missing) + DISTANCES[-1]
    before = np.maximum.accumulate(np.where(missing, -far, rows), axis=0)
    after = np.minimum.accumulate(np.where(missing, 2 * far, rows)[::-1], axis=0)[::-1]
    classes = np.searchsorted(DISTANCES, np.minimum(rows - before, after - rows), side="right") - 1
    return np.maximum(classes, 0)


def _mean(model: Model) -> Vector:
    mean: Vector = model.one * model.C[:, -1].astype(np.float64)
    return mean
