"""The end of a fit, in order. Arrays, files, pipes and clusters all end here."""

from collections.abc import Callable
from typing import Any

from .calibrate import calibrate, refine_and_calibrate
from .drift import end_fit
from .feature_posterior import is_narrow, prune, solve_complete, too_wide
from .regressors import fit_in_time
from .state import State, evolve
from .stats import Vector
from .step import end_batch

# Entries of the rows that intervals are calibrated on: one row in eight holds something out.
SAMPLE_ENTRIES = 1 << 21


def sample_rows(n_features: int) -> int:
    """How many rows `finalize` is to be shown; a shorter table is shown as a whole."""
    return max(256, min(4096, SAMPLE_ENTRIES // n_features))


def finalize(
    state: State, sample: Callable[[], tuple[Any, Any]], last_rows: Callable[[], Any],
    times: Vector | None = None,
) -> State:  # fmt: skip
    """The state at the end of a fit.

    Parameters
    ----------
    state : State
    sample : callable
        Gives all rows that were learned from in their order, or some of them in any, and their
        numbers.
    last_rows : callable
        Gives the last rows, in their order.
    times : ndarray or None
        When the last rows came.
    """
    state = end_batch(state)
    trial, n_rows = None, state.schedule.pass_rows or state.n_seen
    whole = n_rows <= sample_rows(len(state.params.C))
    if whole and not state.schedule.has_missing and not is_narrow(state):
        state = solve_complete(state, sample()[0])
    elif whole and not too_wide(state):
        state, trial = refine_and_calibrate(state, sample()[0])
    elif state.schedule.has_missing:
        state = calibrate(prune(state), *sample())
    state = end_fit(evolve(state, pass_rows=0))  # rows that come from now on are new ones
    return fit_in_time(state, last_rows(), times, trial) if state.config.temporal else state
