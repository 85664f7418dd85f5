"""Fit all ratings at once: rounds of updates, as many as held-out ratings ask for."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ..conformal import binned
from ..linalg.rating_rounds import sweep_rounds
from .predict import predict
from .state import ROUNDS, Config, Floats, Integers, Scores, State, new_state

# With fewer ratings than this none is held out.
FEWEST = 200
# Most ratings that are held out: the error is known to 1 % then.
MOST_HELD_OUT = 10_000
# Rounds without a better error on held-out ratings, after which no more are made.
PATIENCE = 5


@dataclass(frozen=True, slots=True)
class Fit:
    """A fitted state, and its error on held-out ratings, if there were any."""

    state: State
    holdout_rmse: float | None


def run_rounds(state: State, n_rounds: int) -> None:
    """Make rounds of updates, in place."""
    sweep_rounds(
        n_rounds, state.place, state.known, state.users, state.items, state.entries,
        state.first_variances, state.config.implicit, state.workspace,
    )  # fmt: skip


def fit_ratings(
    config: Config, user: Integers, item: Integers, rating: Floats, n_users: int, n_items: int,
    *, max_iter: int, holdout: float, seed: int,
) -> Fit:  # fmt: skip
    """Fit the ratings; those held out choose the number of rounds and calibrate the intervals.

    Parameters
    ----------
    config : Config
    user, item : ndarray of shape (n,)
        Numbers from 0; no pair is there twice.
    rating : ndarray of shape (n,)
    n_users, n_items : int
    max_iter : int
        The largest number of rounds.
    holdout : float
        Share of the ratings that are held out; 0 holds out none.
    seed : int
    """
    n = len(rating)
    n_held = min(int(holdout * n), MOST_HELD_OUT)
    n_rounds, rmse, scores = min(ROUNDS, max_iter), None, Scores.empty()
    if n >= FEWEST and n_held > 0:
        held = np.zeros(n, np.bool_)
        held[np.random.RandomState(seed).permutation(n)[:n_held]] = True
        trial = new_state(
            config, user[~held], item[~held], rating[~held], n_users, n_items, seed,
            (float(rating.min()), float(rating.max())),
        )  # fmt: skip
        n_rounds, rmse, histogram = _trial(trial, user[held], item[held], rating[held], max_iter)
        scores = replace(scores, histogram=histogram)
    state = new_state(config, user, item, rating, n_users, n_items, seed)
    run_rounds(state, n_rounds)
    return Fit(replace(state, scores=scores, n_rounds=n_rounds), rmse)


def _trial(
    state: State, user: Integers, item: Integers, rating: Floats, max_iter: int
) -> tuple[int, float, NDArray[np.float64]]:
    """The best number of rounds, its error, and the histogram of its standardised errors."""
    best, n_best, sizes = np.inf, 0, np.empty(0)
    for n_rounds in range(1, max_iter + 1):
        run_rounds(state, 1)
        mean, deviation = predict(state, user, item)
        errors = np.abs(rating - mean)
        rmse = float(np.sqrt(np.mean(errors**2)))
        if rmse < best:
            best, n_best, sizes = rmse, n_rounds, errors / deviation
        elif n_rounds >= n_best + PATIENCE:
            break
    return n_best, best, binned(sizes, np.ones(len(sizes)))
