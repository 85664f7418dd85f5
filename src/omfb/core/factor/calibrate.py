"""Refinement of a whole table, and what held-out gaps say of it.

Where the whole table is at hand its own gaps, moved to where the truth is known, are held out. The
model is refined without them (`refine.py`), so it forgets what the stream had learned of them, and
predicts them. Their errors decide two things:

1. How far the codes follow the entries: with noise 1, 2, 4, … times as large (`temper`). Residuals
   that are alike within a row, as of smooth curves or of series that drift, tell less than the
   model thinks, which counts them as independent.
2. How wide intervals must be: errors in units of their predicted deviation, as a histogram.

Then the model is refined with all entries. It starts as the stream left it: components that are
dropped without what is held out (19 became 14 in a table of 569 rows) would be missed.

Where rows are in time, the model without them also judges what neighbours tell (`temporal.py`).

Intervals of a longer table come from what its rows hold out (`holdout_scores.py`).
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..conformal import binned, normal_sizes
from ..linalg.rows import Rows
from ..weighted import values_of, weights_of
from .e_step import encode_rows
from .feature_posterior import posterior_of, with_posterior
from .holdout import owners
from .holdout_scores import rescore
from .hyper import Hyper
from .refine import Posterior, predict, refine
from .restrict import with_only, with_others
from .robust import clip_rows, outlier_limit
from .state import State, evolve
from .stats import Vector
from .table import Table
from .whiten import select

# Scored rows that must be there to calibrate by what single rows hold out.
FEWEST_SCORED = 10
# By which parts of the table gaps are moved down, one after the other until enough is held out.
SHIFTS = (1 / 3, 1 / 2, 2 / 3)
# Held-out entries that are enough, with fewer of which nothing is decided, and to choose temper by.
ENOUGH, FEWEST, ENOUGH_TO_CHOOSE = 300, 30, 10_000


class Trial(NamedTuple):
    """A model that knows nothing of some entries of its table."""

    state: State
    held_out: NDArray[np.bool_]
    """(n, m)."""


def calibrate(state: State, X: Any, numbers: NDArray[np.int64] | None = None) -> State:
    """The state whose intervals come from what rows of X hold out now, and from nothing before.

    The rows were learned from, but for what they hold out. Complete rows withheld nothing.
    """
    if not state.schedule.has_missing:
        return state
    fresh = rescore(state, X, numbers)
    if fresh.holdout.n_scored < FEWEST_SCORED:
        return state
    return evolve(state, histogram=fresh.holdout.histogram)


def refine_and_calibrate(state: State, X: Any) -> tuple[State, Trial | None]:
    """The state refined with its whole table X, in its order, and calibrated by held-out gaps.

    And the state without these if rows are in time, unless they are too few. If they are not,
    features that are not known, which have no entries, take no part.
    """
    known, everything = state.features.known, _entries(state, X)
    if state.config.temporal or known.all() or not known.any():
        return _refined(state, X, *everything)
    which, (rows, kept, precisions) = np.flatnonzero(known), everything
    position = (np.cumsum(known) - 1).astype(np.int32)
    rows = Rows(rows.starts, position[rows.features], rows.values)
    after, _ = _refined(with_only(state, which), X, rows, kept, precisions)
    return with_others(after, state, which), None


def _refined(
    state: State, X: Any, everything: Rows, kept: NDArray[np.bool_], precisions: Vector | None
) -> tuple[State, Trial | None]:
    """`refine_and_calibrate` by the entries of X, in units of the noise, of which some are kept."""
    hyper, one, in_time = state.config.hyper, state.one, state.config.temporal
    precisions = None if precisions is None else precisions[kept]
    rows = select(everything, kept)
    table = Table(rows, len(state.params.C), weights_of(X), precisions)
    shared, in_order = state.config.noise == "isotropic", not scipy.sparse.issparse(values_of(X))
    start = posterior_of(state, table)
    # Gaps have outliers, too, and intervals in time are to hold them.
    gaps = held_out(
        everything if in_time else rows, ~start.fixed, state.seed, hyper, in_order, in_time
    )
    away = gaps[kept] if in_time else gaps
    if np.count_nonzero(away) < FEWEST:
        return with_posterior(state, table, refine(table, start, one, shared, hyper)), None
    rest = table.part(~away)
    without = refine(rest, start, one, shared, hyper)
    gone, of_rows = select(rows, away), table.entry_weights()[away]
    own = np.ones(len(of_rows)) if precisions is None else precisions[away]
    temper = _best_temper(rest, without, one, gone, of_rows * own, state.seed, hyper)
    mean, variance = predict(rest, without, one, gone, temper, variances=True)
    variance += temper * without.noise[gone.features] * (1.0 / own - 1.0)
    expected = normal_sizes(hyper.calibration_prior) / np.sqrt(temper)
    sizes = np.append(np.abs(gone.values - mean) / np.sqrt(variance), expected)
    weights = np.append(of_rows, np.ones(len(expected)))
    after = with_posterior(state, table, refine(table, start, one, shared, hyper), temper)
    after = evolve(after, histogram=binned(sizes, weights))
    if not (in_time and state.schedule.has_missing):
        return after, None
    missing, mask = select(everything, gaps), np.zeros(X.shape, bool)
    mask[owners(missing), missing.features] = True
    return after, Trial(with_posterior(state, rest, without, temper), mask)


def _best_temper(
    rest: Table, without: Posterior, one: float, away: Rows, weights: Vector, seed: int,
    hyper: Hyper,
) -> float:  # fmt: skip
    """How many times the noise predicts held-out entries best; of many, by some of the rows."""
    share = ENOUGH_TO_CHOOSE / away.n_entries
    if share < 1.0:
        rng, n = np.random.default_rng(seed), len(away)
        some = np.sort(rng.choice(n, max(1, round(share * n)), replace=False))
        weights = away.with_values(weights).take(some).values
        rest, away = rest.take(some), away.take(some)

    def loss(temper: float) -> float:
        mean, _ = predict(rest, without, one, away, temper, variances=False)
        return float(np.sum(weights * (away.values - mean) ** 2 / without.sizes[away.features]))

    first = loss(1.0)
    best, least = 1.0, (1.0 - hyper.temper_gain) * first
    temper = 2.0
    while temper <= hyper.max_temper:
        now = loss(temper)
        if now < least:
            best, least = temper, now
        elif now > first:
            break
        temper *= 2.0
    return best


def held_out(
    rows: Rows, usable: NDArray[np.bool_], seed: int, hyper: Hyper, in_order: bool = True,
    in_time: bool = False,
) -> NDArray[np.bool_]:  # fmt: skip
    """Which entries of a table are held out: where its gaps are, if they are moved down.

    Single entries at random if rows are in no order (`in_order`), miss most or miss nothing.

    Parameters
    ----------
    rows : Rows
    usable : ndarray of shape (n_features,)
        Features of which entries may be held out.
    seed : int
    hyper : Hyper
    in_order : bool, default=True
    in_time : bool, default=False
        Whether neighbouring rows tell of a gap: then it is held out in one piece.
    """
    rng, n, m = np.random.default_rng(seed), len(rows), len(usable)
    at = np.repeat(np.arange(n), np.diff(rows.starts)), rows.features
    missing_share = 1.0 - rows.n_entries / max(n * m, 1)
    if not in_order or (missing_share > 0.5 and not in_time) or missing_share == 0.0:
        return usable[rows.features] & (rng.random(rows.n_entries) < hyper.held_out_of_table / 2.0)
    missing = np.ones((n, m), bool)
    missing[at] = False
    taken = np.zeros((n, m), bool)
    # Whole rows: single entries that are left of a gap would tell what is in it.
    chosen = rng.random((n, 1)) < hyper.held_out_of_table / max(
        missing_share, hyper.held_out_of_table
    )
    for shift in SHIFTS:
        gaps = np.roll(missing, round(shift * n), axis=0)
        taken |= gaps & (chosen[_first_rows(gaps), 0] if in_time else chosen)
        taken &= ~missing & usable
        if taken.sum() >= min(ENOUGH, hyper.held_out_of_table * rows.n_entries / 2.0):
            break
    allowed = hyper.held_out_of_column * (~missing).sum(axis=0)
    taken &= np.cumsum(taken, axis=0) <= allowed  # the first of them, so in one piece
    return taken[at]


def _first_rows(gaps: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The row in which each entry's gap begins: gaps of several features begin together."""
    begins = gaps.copy()
    begins[1:] &= ~gaps[:-1]
    rows = np.arange(len(gaps))[:, None]
    first: NDArray[np.int64] = np.maximum.accumulate(np.where(begins, rows, 0), axis=0)
    return first


def _entries(
    state: State, X: Any, together: int = 256
) -> tuple[Rows, NDArray[np.bool_], Vector | None]:
    """The table's entries in units of the noise, clipped; which are no outliers; their weights."""
    parts, all_kept, precisions = [], [], []
    for start in range(0, X.shape[0], together):
        part = clip_rows(state, X[start : start + together])
        limit = outlier_limit(state)
        entries = part.entries
        usable = state.features.known[entries.features] & np.isfinite(entries.values)
        kept = usable.copy()
        if limit is not None:
            kept &= ~encode_rows(state, part, limit=limit).dropped
        parts.append(select(entries, usable))
        all_kept.append(kept[usable])
        if part.precisions is not None:
            precisions.append(part.precisions[usable])
    counts = np.concatenate([np.diff(part.starts) for part in parts])
    rows = Rows(
        np.concatenate([[0], np.cumsum(counts)]),
        np.concatenate([part.features for part in parts]),
        np.concatenate([part.values for part in parts]),
    )
    return rows, np.concatenate(all_kept), np.concatenate(precisions) if precisions else None
