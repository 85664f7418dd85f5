"""Outliers: entries are clipped at the reach of their column, and dropped where that fills better.

*Clipping.* A feature that was almost constant has almost no noise. When it varies after all, one
entry could be a thousand deviations off, and would turn codes and dictionary towards itself. So
entries are clipped at `clip_limit` marginal standard deviations. That is still far, so the noise
grows, and after some such entries they are within the limit. A storm that many stations report is
no outlier: an entry may reach `clip_agreement` times what the rest of its row predicts. Where
outliers are dropped, two in a row may support each other: there, entries beyond the limit that are
fewer than half of their row have no say.

*Dropping.* Where tails are heavy, held-out entries vote: each is predicted from a code with and
without the entries beyond `outlier_limit` predictive deviations. If dropping wins clearly, such
entries count as missing. After `level_change` consecutive outliers of one feature, the next are
taken for a change of its level.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..conformal import share_beyond
from ..linalg.entries import any_beyond
from ..linalg.rows import Rows
from ..weighted import values_of
from .e_step import Codes, encode_rows
from .state import State, evolve
from .stats import Vector
from .whiten import HeldOut, Whitened, whitened

# Rounds in which entries that agree with each other go farther.
ROUNDS = 5
# Largest leverage that is taken out of an entry's own prediction.
MOST_LEVERAGE = 0.999
# Scored rows before which nothing is known but what the head showed.
FIRST_SCORES = 50


def outlier_limit(state: State) -> float | None:
    """Predictive standard deviations beyond which an entry counts as missing; None if none does."""
    return state.config.hyper.outlier_limit if state.outliers.drop else None


def clip_rows(
    state: State, X: Any, held_out: Sequence[HeldOut] = (), out: NDArray[Any] | None = None
) -> Whitened:
    """The rows of X, which may have weights, in units of the noise (`whitened`), clipped."""
    rows, m = whitened(state, values_of(X), held_out, out), state.width
    rows = rows.weighted(X, state.params.precision)
    if rows.values is None:
        return rows.with_entries(clip_entries(state, rows.entries, rows.precisions))
    values, limits = rows.values, None if rows.within_limit else clip_limits(state)
    if limits is None or not any_beyond(values, limits):
        return rows
    at, features = np.nonzero(np.abs(values) > limits)
    which, row_of = np.unique(at, return_inverse=True)
    some, seen = values[which], None if rows.seen is None else rows.seen[which]
    counts = np.full(len(which), X.shape[1]) if seen is None else seen.sum(axis=1)
    given = values[at, features].astype(np.float64)
    far = _Far(row_of, features, given, limits[features])

    def with_far(now: Vector) -> Whitened:
        some[row_of, features] = now
        return Whitened(m, some, seen, counts)

    values[at, features] = _clipped(state, far, with_far)
    return rows


def clip_entries(state: State, rows: Rows, precisions: Vector | None = None) -> Rows:
    """Rows in units of the noise, clipped; imprecise entries may be as far off as they are."""
    if np.abs(rows.values).max(initial=0.0) <= state.config.hyper.clip_limit:
        return rows
    limits = clip_limits(state)[rows.features]
    if precisions is not None:
        limits = limits / np.sqrt(np.minimum(precisions, 1.0))
    at = np.flatnonzero(np.abs(rows.values) > limits)
    if len(at) == 0:
        return rows
    lies_in = np.searchsorted(rows.starts, at, side="right") - 1
    which, row_of = np.unique(lies_in, return_inverse=True)
    values = rows.values.astype(np.float64)
    clipped = Rows(rows.starts, rows.features, values)

    def with_far(now: Vector) -> Whitened:
        values[at] = now
        some = clipped.take(which)
        return Whitened(len(state.params.C), None, None, np.diff(some.starts), some)

    far = _Far(row_of, rows.features[at], values[at], limits[at])
    values[at] = _clipped(state, far, with_far)
    return clipped


def clip_limits(state: State) -> Vector:
    """How far from its centre an entry of each feature may be, in units of its noise."""
    C = state.coding.astype(np.float64, copy=False)
    marginal = 1.0 + np.einsum("ij,ij->i", C[:, :-1], C[:, :-1])
    return np.abs(state.one * C[:, -1]) + state.config.hyper.clip_limit * np.sqrt(marginal)


class _Far(NamedTuple):
    """Entries beyond the limit: the row of each, its feature, its value and its limit."""

    owners: NDArray[np.int64]
    features: NDArray[Any]
    given: Vector
    limits: Vector


def _clipped(state: State, far: _Far, with_far: Callable[[Vector], Whitened]) -> Vector:
    """Values of entries beyond the limit; `with_far` gives their rows with these values."""
    sizes, sign = np.abs(far.given), np.sign(far.given)
    limits = _agreed_limits(state, far, with_far)
    if state.outliers.drop:
        rows = with_far(sign * np.minimum(sizes, far.limits))
        few = (2 * np.bincount(far.owners) < rows.counts)[far.owners]
        if few.any():
            predicted = _predicted_by_others(state, far.owners[few], far.features[few], rows)
            most = state.config.hyper.clip_agreement * predicted * sign[few]
            limits[few] = np.maximum(far.limits[few], most)
    return sign * np.minimum(sizes, limits)


def _agreed_limits(state: State, far: _Far, with_far: Callable[[Vector], Whitened]) -> Vector:
    """How far entries may be off by the rest of their rows, among it others that are far off.

    Leave-one-out, an entry w is predicted as w − (w − cᵀx) / (1 − cᵀ A⁻¹ c).
    """
    row_of, features, given, limits = far
    sizes, sign = np.abs(given), np.sign(given)
    C = state.coding[features].astype(np.float64)
    agreement, limit = state.config.hyper.clip_agreement, limits
    for _ in range(ROUNDS):
        clipped = sign * np.minimum(sizes, limit)
        codes = encode_rows(state, with_far(clipped), keep_covariances=True)
        predicted = np.einsum("ij,ij->i", C, codes.X[row_of])
        A = codes.covariances[np.minimum(row_of, len(codes.covariances) - 1)]
        leverage = np.einsum("ij,ijk,ik->i", C[:, :-1], A, C[:, :-1])
        left_out = clipped - (clipped - predicted) / (1.0 - np.minimum(leverage, MOST_LEVERAGE))
        before, limit = limit, np.maximum(limit, agreement * left_out * sign)
        if np.all(np.minimum(limit, sizes) == np.minimum(before, sizes)):
            break
    return limit.copy()


def _predicted_by_others(
    state: State, row_of: NDArray[np.int64], features: NDArray[Any], rows: Whitened
) -> Vector:
    """What rows without these entries predict of them."""
    m, entries = len(state.params.C), rows.entries
    at = m * np.repeat(np.arange(len(rows)), np.diff(entries.starts)) + entries.features
    codes = encode_rows(state, rows.without(np.isin(at, m * row_of + features)))
    C = state.coding[features].astype(np.float64)
    return np.asarray(np.einsum("ij,ij->i", C, codes.X[row_of]), np.float64)


def update_outlier_policy(state: State) -> State:
    """Decide, for the batch to come, whether votes are taken and whether outliers are dropped.

    Heavy tails alone are no reason to drop entries: a peak that many features share is far from
    what is usual, too. So they are dropped only where that predicts held-out entries better.
    """
    if state.holdout.n_scored < FIRST_SCORES:
        return state
    hyper = state.config.hyper
    far, share = hyper.heavy_tails
    heavy = share_beyond(state.holdout.histogram, far) > share
    count, votes, squares = state.outliers.votes
    enough = max(hyper.outlier_gain * count, 2.0 * float(np.sqrt(squares)))
    # The policy changes only where the votes are sure.
    drop = votes > (-enough if state.outliers.drop else enough)
    robust = state.config.robust
    return evolve(state, detect=bool(robust and (heavy or drop)), drop=bool(robust and drop))


def without_outliers(state: State, rows: Whitened, codes: Codes) -> tuple[State, Whitened]:
    """The rows without entries that `codes` dropped, which are counted.

    A run of outliers of one feature is a change of its level: its last entries are kept.
    """
    dropped = codes.dropped.copy()
    features = rows.entries.features
    runs, counts = state.outliers.run_length.copy(), state.outliers.n_dropped.copy()
    runs[features[~dropped]] = 0  # at least one entry fits: the run before it has ended
    for feature in np.unique(features[dropped]).tolist():
        run = int(state.outliers.run_length[feature])
        for at in np.flatnonzero(features == feature).tolist():
            run = run + 1 if dropped[at] else 0
            if run > state.config.hyper.level_change:
                dropped[at] = False
            counts[feature] += dropped[at]
        runs[feature] = run
    return evolve(state, n_dropped=counts, run_length=runs), rows.without(dropped)
