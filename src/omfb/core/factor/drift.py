"""Drift: the running error of every row, alarms, and what an alarm makes the model forget.

Both come from the codes that learning needs anyway (`linalg/drift.py`), before the row is learned:
leave-one-out errors for `recent_error_`, and the energy of the residuals for the test. In
later passes over the same rows neither would be honest, and both stand still.
"""

from dataclasses import replace

import numpy as np

from ..linalg.drift import (
    COUNT,
    MEAN,
    MEMORY,
    RUNNING,
    RUNNING_ROWS,
    RUNNING_VARIANCE,
    UNIT,
    VARIANCE,
    follow,
)
from .state import Drift, State, evolve
from .stats import Matrix, Vector

# Factor of the variance of running means after a fit.
ASSUMED_DEPENDENCE = 4.0
# Alarms that are kept.
MOST_ALARMS = 32


def follows(state: State) -> bool:
    """Whether rows are new, so that their errors are honest."""
    return state.schedule.pass_rows == 0


def follow_rows(
    state: State, energies: Vector, freedom: Vector, left_out: Matrix
) -> tuple[int, Matrix, Drift]:
    """Follow rows that are about to be learned.

    Parameters
    ----------
    state : State
    energies, freedom : ndarray of shape (q,)
        ‖y − C x̃‖² of each row, and its degrees of freedom; 0 if it observes nothing.
    left_out : ndarray of shape (q, 2)
        See `Codes.left_out`.

    Returns
    -------
    n_rows : int
        How many rows that were: if the model forgets at alarms, no more than up to the first one.
    sse : ndarray of shape (2, 2)
        `Holdout.sse` with the errors of these rows.
    drift : Drift
    """
    hyper, drift = state.config.hyper, state.drift
    memory, sse = drift.memory.copy(), state.holdout.sse.copy()
    flags = np.zeros(len(energies), np.bool_)
    stop = 1 if state.config.forgets_at_alarms else 0
    n_rows = follow(
        memory, sse[1], energies, freedom, left_out, 1.0 - 1.0 / hyper.recent_rows,
        hyper.drift_window, hyper.drift_burn_in, hyper.drift_floor, hyper.drift_clip,
        hyper.drift_slack, hyper.drift_limit, hyper.head_rows - state.n_seen, stop, flags,
    )  # fmt: skip
    alarms = drift.alarms
    if flags.any():
        new = state.n_seen + 1 + np.flatnonzero(flags)
        alarms = np.concatenate([alarms, new])[-MOST_ALARMS:]
    return n_rows, sse, Drift(memory, alarms, drift.origin)


def is_alarmed(state: State) -> bool:
    """Whether the last row has raised an alarm."""
    alarms = state.drift.alarms
    return len(alarms) > 0 and int(alarms[-1]) == state.n_seen


def forget(state: State) -> State:
    """The state after most of its past was forgotten: it learns from now on as a young one."""
    left = min(1.0, state.config.hyper.drift_rows_left / max(state.stats.n_rows, 1e-300))
    return evolve(
        state,
        stats=state.stats.fade(left),
        origin=state.n_seen,
        extra_weight=0.0,
        batch_left=0,
        update_left=0,
    )


def rescaled(drift: Drift, change: Vector) -> Drift:
    """What is usual, if the noise of each feature is said to be `change` times as large."""
    if not drift.memory[UNIT] > 0.0:
        return drift
    factor = float(np.mean(change**-2.0)) ** (1.0 / 3.0)
    memory = drift.memory.copy()
    memory[MEAN] = ((1.0 + memory[MEAN] / memory[UNIT]) * factor - 1.0) * memory[UNIT]
    memory[[VARIANCE, RUNNING_VARIANCE]] *= factor**2
    memory[RUNNING] *= factor
    return replace(drift, memory=memory)


def end_fit(state: State) -> State:
    """The state at the end of a fit, which has changed the model.

    What was usual in a long fit is about right, and gives way to new rows quickly. Shuffled rows do
    not show how rows depend on each other, so some dependence is assumed at first. After a short
    fit the test begins anew.
    """
    memory = np.zeros(MEMORY)
    before, hyper = state.drift.memory, state.config.hyper
    if before[COUNT] >= hyper.drift_window:
        memory[[MEAN, VARIANCE, UNIT]] = before[[MEAN, VARIANCE, UNIT]]
        memory[COUNT] = hyper.drift_burn_in
        memory[RUNNING_VARIANCE] = ASSUMED_DEPENDENCE * max(before[VARIANCE], 1.0)
        memory[RUNNING_VARIANCE] /= 2.0 * RUNNING_ROWS - 1.0
    return evolve(state, memory=memory)
