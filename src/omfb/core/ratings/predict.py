"""Predict ratings of pairs, and all items for a user."""

import numpy as np

from ..conformal import quantile
from ..linalg.rating_rounds import Side
from ..linalg.rating_stream import predict_pairs
from .state import Floats, Integers, State

UNKNOWN = -1


def predict(
    state: State, user: Integers, item: Integers, low: float | None = None,
    high: float | None = None,
) -> tuple[Floats, Floats]:  # fmt: skip
    """Means and standard deviations of ratings; `UNKNOWN` users and items have their prior.

    Means are kept between `low` and `high`: None is the smallest, and the largest, rating seen.
    """
    n = len(user)
    mean, variance = np.empty(n), np.empty(n)
    r = state.config.n_components
    users, user = _with_unknown(state.users, user, r + 1)
    items, item = _with_unknown(state.items, item, r)
    predict_pairs(user, item, users, items, state.noise, mean, variance)
    mean = state.center + state.unit * mean
    return np.clip(mean, *bounded(state, low, high)), state.unit * np.sqrt(variance)


def bounded(state: State, low: float | None, high: float | None) -> tuple[float, float]:
    """The bounds of predictions: those given, or the smallest and the largest rating seen."""
    return state.low if low is None else low, state.high if high is None else high


def scores_of(state: State, user: int) -> Floats:
    """Predicted ratings of all items by one user, not bounded: bounds would make ties."""
    r = state.config.n_components
    p = prior_mean(state.users, r + 1) if user == UNKNOWN else state.users.mean[user]
    scores: Floats = state.center + state.unit * (state.items.mean[: state.n_items] @ p)
    return scores


def seen_items(state: State, user: int) -> Integers:
    """The items that a user has rated."""
    items, at = [], int(state.users.heads[user]) if user != UNKNOWN else -1
    while at >= 0:
        items.append(int(state.entries.item[at]))
        at = int(state.entries.user_links[at])
    return np.array(items, np.int64)


def interval_width(state: State, level: float) -> float:
    """Number of standard deviations on either side that hold a share `level` of the ratings."""
    return quantile(state.scores.histogram, level)


def prior_mean(side: Side, fixed: int) -> Floats:
    """The vector of a user or an item without ratings."""
    return np.insert(side.base, fixed, 1.0)


def _with_unknown(side: Side, which: Integers, fixed: int) -> tuple[Side, Integers]:
    """The side with one more entry, the prior, to which unknown ones point."""
    if not (which == UNKNOWN).any():
        return side, which
    wanted, which = np.unique(which, return_inverse=True)  # UNKNOWN comes first
    mean = prior_mean(side, fixed)
    rows, columns = np.tril_indices(len(mean))
    moments = mean[rows] * mean[columns]
    free = np.delete(np.arange(len(mean)), fixed)
    moments[free * (free + 3) // 2] += side.variance
    known = wanted[1:]
    return side._replace(
        mean=np.vstack([mean, side.mean[known]]),
        moments=np.vstack([moments, side.moments[known]]),
        weight=np.append(1.0, side.weight[known]),
    ), which.astype(np.int64)
