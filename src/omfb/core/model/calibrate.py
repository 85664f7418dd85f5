"""How wide intervals must be for a short table: its own gaps, moved to where the truth is known.

The entries that rows hide while a model learns (`check.py`) are alone: the rows before and after
show them. Where a sensor fails for a day, or a column for half of the table, the dictionary has not
seen what it is to fill, and errs more than they tell. So the pattern of all that is missing is
moved down by a third of the table. What it covers there is taken away, the features are solved
without it (`polish.py`), and what is then filled in is compared with what was taken.
"""

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse

from .check import binned
from .encode import fill
from .polish import polished, work_of_a_round
from .state import Model

# Rounds after which the features have forgotten what was taken away, if they cost no more than so
# many multiply-adds, and how many there are at least.
ROUNDS, MOST_WORK, FEWEST_ROUNDS = 6, 4e8, 2
# Of the observed entries, at most about so much is taken.
MOST_TAKEN = 0.25
# Fewer entries say nothing.
FEWEST_ENTRIES = 100


def calibrated_by_moving(model: Model, X: Any) -> Model | None:
    """The model whose intervals held what was taken away; None if that says nothing.

    Parameters
    ----------
    model : Model
    X : ndarray of shape (n_samples, n_features)
        The whole table, in its order.
    """
    if scipy.sparse.issparse(X) or not model.gappy:
        return None
    missing = np.isnan(X)
    taken = np.roll(missing, len(X) // 3, axis=0) & ~missing
    chance = MOST_TAKEN / max(float(missing.mean()), MOST_TAKEN)
    taken &= np.random.default_rng(model.seed).random(X.shape) < chance
    if np.count_nonzero(taken) < FEWEST_ENTRIES:
        return None
    shown = np.where(taken, np.nan, X)
    work = work_of_a_round(model, int(np.count_nonzero(np.isnan(shown))), shown.size)
    rounds = int(np.clip(MOST_WORK // max(work, 1.0), FEWEST_ROUNDS, ROUNDS))
    without = polished(model, shown, rounds)
    if without is model:  # too large for that: it knows what was taken
        return None
    filled, deviations = fill(without, shown, deviations=True)
    assert deviations is not None
    sizes = np.abs(filled - X)[taken] / deviations[taken]
    return replace(model, histogram=binned(sizes, np.ones(len(sizes))))
