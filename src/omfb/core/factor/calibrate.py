"""How wide intervals must be for a short table: its own gaps, moved to where the truth is known.

The entries that rows hide while a model learns (`check.py`) are alone: the rows before and after
show them. Where a sensor fails for a day, or a column for half of the table, the dictionary has not
seen what it is to fill, and errs more than they tell. So the pattern of all that is missing is
moved down by a third of the table. What it covers there is taken away, the table is learned without
it, and what is then filled in is compared with what was taken.

The features are solved again (`polish.py`), but units, noise and the number of components still
know what was taken. So a small table is also learned anew, and the wider intervals of both are
used: a table with more missing knows better how unsure it is. And if its gaps are few, they are
moved several times.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..conformal import binned
from .features import still_constant
from .holdout_scores import rescore
from .init import init
from .predict import predict
from .prune import sparing
from .refine import polished, work_of_a_round
from .state import State, evolve
from .stats import Vector
from .step import end_batch, step

# Rounds after which the features have forgotten what was taken away, if they cost no more than so
# many multiply-adds, and how many there are at least.
ROUNDS, MOST_WORK, FEWEST_ROUNDS = 6, 4e8, 2
# Of the observed entries, at most about so much is taken.
MOST_TAKEN = 0.25
# Tables of at most so many entries are learned anew.
SMALL = 40_000
# By what part of the table gaps are moved, one after the other, until so many errors are known.
SHIFTS, ENOUGH_ENTRIES = (1 / 3, 1 / 2, 2 / 3), 1000
# The share of errors by which widths are compared.
WIDE = 0.9
# Checked rows that must be there to calibrate by what single rows hide.
FEWEST_CHECKS = 10
# Fewer entries say nothing.
FEWEST_ENTRIES = 30


def calibrated(state: State, X: Any) -> State:
    """The model whose intervals come from what rows of X hide now, and from nothing before.

    Rows that were learned from, but for what they hide; so nothing is found where the stream has no
    missing entries, and nothing was hidden.
    """
    if not state.schedule.has_missing:
        return state
    fresh = rescore(state, X)
    return (
        state
        if fresh.holdout.n_scored < FEWEST_CHECKS
        else evolve(state, histogram=fresh.holdout.histogram)
    )


def calibrated_by_moving(state: State, X: Any) -> State | None:
    """The model whose intervals held what was taken away; None if that says nothing.

    Parameters
    ----------
    model : Model
    X : ndarray of shape (n_samples, n_features)
        The whole table, in its order.
    """
    if scipy.sparse.issparse(X) or not state.schedule.has_missing:
        return None
    small = X.size <= SMALL
    ways = (_solved_again, _relearned) if small else (_solved_again,)
    sizes = [np.empty(0) for _ in ways]
    for moved in _moved(np.isnan(X), state.seed):
        taken = moved & ~still_constant(state)
        shown = np.where(taken, np.nan, X)
        for at, way in enumerate(ways):
            sizes[at] = np.append(sizes[at], _errors(way(state, shown), X, shown, taken))
        if len(sizes[0]) >= ENOUGH_ENTRIES or not small:
            break
    if min(map(len, sizes)) < FEWEST_ENTRIES:
        return None
    widest = max(sizes, key=lambda found: float(np.quantile(found, WIDE)))
    return evolve(state, histogram=binned(widest, np.ones(len(widest))))


def _moved(missing: NDArray[np.bool_], seed: int) -> Iterator[NDArray[np.bool_]]:
    """What is missing, moved down, where it is not missing there; in some rows, if it is much."""
    rng = np.random.default_rng(seed)
    chance = MOST_TAKEN / max(float(missing.mean()), MOST_TAKEN)
    for shift in SHIFTS:
        taken = np.roll(missing, round(shift * len(missing)), axis=0) & ~missing
        # Whole rows: single entries that are left of a gap would tell what is in it.
        yield taken & (rng.random((len(missing), 1)) < chance)


def _errors(
    without: State | None, X: NDArray[Any], shown: NDArray[Any], taken: NDArray[np.bool_]
) -> Vector:
    """Errors of what was taken away, in units of their deviation."""
    if without is None or not taken.any():
        return np.empty(0)
    filled, deviations = predict(without, shown)
    assert deviations is not None
    sizes: Vector = np.abs(filled - X)[taken] / deviations[taken]
    return sizes[np.isfinite(sizes)]


def _relearned(state: State, X: NDArray[Any]) -> State | None:
    """What the model were, had it learned from X alone; None if it could not."""
    rows = X[np.random.default_rng(state.seed).permutation(len(X))]
    try:
        with np.errstate(over="raise", invalid="raise"):
            fresh = init(rows, state.config, seed=state.seed)
            for n_pass in range(max(1, round(state.schedule.n_seen / len(rows)))):
                fresh = evolve(fresh, pass_rows=len(rows) if n_pass else 0)
                fresh, _, _ = step(fresh, rows)
            return polished(sparing(end_batch(fresh), rows), rows)
    except (ValueError, FloatingPointError, np.linalg.LinAlgError):  # at the ends of floats
        return None


def _solved_again(state: State, X: NDArray[Any]) -> State | None:
    """The model whose features are solved from X alone; None if that takes too long."""
    work = work_of_a_round(state, int(np.count_nonzero(np.isnan(X))), X.size)
    rounds = int(np.clip(MOST_WORK // max(work, 1.0), FEWEST_ROUNDS, ROUNDS))
    solved = polished(state, X, rounds)
    return None if solved is state else solved
