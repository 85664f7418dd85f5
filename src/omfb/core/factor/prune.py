"""Fewer components at the end of a fit, where what rows hide says so."""

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg.rows import gram
from .holdout_scores import rescore
from .rank import active_components, drop_empty
from .state import State, evolve
from .stats import Vector

# Of the components on trial, those that the next trial keeps, and how many trials there are.
FEWER, STEPS_DOWN = 0.8, 12
# Parts of the rows that are judged each.
PARTS = 16
# Of the error, what components that do not stand out may change for better or worse to be left
# out all the same: rows are filled faster.
AS_GOOD = 1e-3
# Standard errors by which fewer components are worse, so that none are tried that are fewer still.
CLEARLY = 3.0
# Rows of a part, below which standard errors are told too small, and what they count then where
# fewer components are tried than stand out.
FEW_ROWS, SURE = 6, 2.0


def sparing(state: State, X: Any) -> State:
    """The model without its weakest components, as far as that fills what rows hide better.

    Components that do not stand out follow the noise of some tables and are a weak signal in
    others; those that do may be what spikes have left. What little is hidden decides only where
    it is sure: by more than the standard error that parts of the rows show, in short tables
    twice as much against components that stand out. Components that do not stand out and make no
    difference go as well, unless most is missing: there intervals need what is not known of them.
    """
    if not state.schedule.has_missing:
        return state
    falling, used = (
        np.argsort(-state.params.v[:-1], kind="stable"),
        int(active_components(state).sum()),
    )
    counts = {0, *(int(used * FEWER**step) for step in range(STEPS_DOWN))} - {len(falling)}
    best, least = state, _errors_by_part(state, X)
    few = X.shape[0] < PARTS * FEW_ROWS
    mostly_observed = 2 * state.schedule.n_entries >= state.schedule.n_seen * len(state.params.C)
    for count in sorted(counts, reverse=True):
        fewer = _without(state, falling[count:])
        errors = _errors_by_part(fewer, X)
        gains = least - errors
        unsure = float(np.sqrt(PARTS) * gains.std(ddof=1))
        alike = abs(gains.sum()) <= AS_GOOD * least.sum()
        sure = SURE * unsure if few and count < used else unsure
        if gains.sum() > sure or (alike and mostly_observed and count == used):
            best, least = fewer, errors
        elif gains.sum() < -CLEARLY * unsure:  # fewer still would be worse still
            break
    return best


def _without(state: State, which: NDArray[np.int64]) -> State:
    """The model whose components `which` have no loadings, and are sure of that."""
    C, Sigma = state.params.C.copy(), state.batch.Sigma.copy()
    C[:, which] = 0.0
    everything = len(which) == state.n_components
    sure = which[1:] if everything else which  # a model has one at least
    Sigma[sure] = 0.0
    Sigma[:, sure] = 0.0
    return evolve(state, C=C, C_batch=None, G=gram(C), Sigma=Sigma)


def _errors_by_part(state: State, X: Any) -> Vector:
    """Squared errors of what rows hide, in each of some parts of the rows."""
    bounds = np.linspace(0, X.shape[0], PARTS + 1).astype(int)
    parts = (X[first:last] for first, last in pairwise(bounds.tolist()) if last > first)
    state, _ = drop_empty(state)
    errors = [float(rescore(state, part).holdout.sse[0, 0]) for part in parts]
    return np.array(errors + [0.0] * (PARTS - len(errors)))
