"""A single row of a stream, as `step` learns from it, but without the cost of batches.

Streams bring rows one at a time, and there the calls cost more than the arithmetic. So an ordinary
row (dense, nothing beyond the clip limit, no feature new or constant, no outliers to drop) goes
through three compiled functions. All others go the usual way.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg.posterior import code_rows
from ..linalg.rows import check_finite_step
from ..linalg.single_row import learn_row, list_row
from .drift import follow_rows, follows
from .e_step import unit_sizes
from .features import LEAST_FREEDOM, mark_fractions
from .state import Batch, Holdout, Params, Schedule, State
from .stats import Matrix, Stats
from .whiten import HeldOut

NO_PRODUCTS, NO_ENERGIES = np.empty((0, 1)), np.empty(0)


def is_ordinary(state: State, X: Any) -> bool:
    """Whether the state and the form of a row allow `learn_single`."""
    features, outliers = state.features, state.outliers
    return (
        type(X) is np.ndarray
        and len(X) == 1
        and X.dtype == state.params.C.dtype == np.float64
        and not outliers.drop
        and bool(features.known.all())
        and not features.constant.any()
        and not outliers.run_length.any()
    )


def learn_single(
    state: State, X: NDArray[Any], held_out: Sequence[HeldOut], reuse: bool
) -> tuple[State, Matrix] | None:
    """Learn from one ordinary row; None if it holds an entry beyond the clip limit, or nothing."""
    params, batch, hyper = state.params, state.batch, state.config.hyper
    m, R = params.C.shape
    y = X[0]
    if held_out:
        y = y.copy()
        y[held_out[0][1]] = np.nan
    listed, values = np.empty(m, np.int32), np.empty(m)
    C_batch = state.coding
    count = list_row(
        y, params.center, params.noise_std, C_batch, state.one, hyper.clip_limit, listed, values
    )
    if count <= 0:
        return None
    listed, values, share = listed[:count], values[:count], count / state.width
    stats = state.stats
    keep = float(state.keep(1)[0])
    cov_sum = keep * stats.code_cov_sum
    codes, residual, dof = np.zeros((1, R)), np.zeros(1), np.zeros(1)
    codes[0, -1] = state.one
    new = follows(state)
    left_out = np.zeros((1 if new else 0, 2))
    code_rows(
        C_batch, batch.G, batch.Sigma, batch.inverse_coverage, None, np.array([0, count]), listed,
        values, 0, 1, NO_PRODUCTS, NO_ENERGIES, codes, np.empty((0, R - 1, R - 1)), cov_sum,
        np.array([share]), residual, dof, np.zeros(count, bool), unit_sizes(state), state.n_seen,
        left_out,
    )  # fmt: skip
    holdout, drift = state.holdout, state.drift
    if new:
        _, sse, drift = follow_rows(state, residual, dof, left_out)
        holdout = Holdout(holdout.masks, holdout.histogram, holdout.n_scored, sse)
    mine = reuse and batch.C_batch is not None
    C = params.C if mine else params.C.copy()
    S, S_inverse = stats.S.copy(), batch.S_inverse.copy()
    counts, sums = stats.counts.copy(), stats.residual_sums.copy()
    leverage = learn_row(
        C, C_batch, listed, values, codes[0], batch.Sigma, S, S_inverse, share, keep,
        max(keep * stats.n_rows, 1e-9), counts, sums, hyper.least_coverage, np.empty((3, R)),
    )  # fmt: skip
    check_finite_step(codes, S)
    energy = float(residual[0]) / (1.0 + leverage)
    free = max(float(dof[0]), LEAST_FREEDOM * count)
    schedule = state.schedule
    after = State(
        state.config, state.seed,
        Params(
            C, params.v, params.center, params.scale, params.noise_std, params.basis_change,
            params.precision,
        ),
        Batch(C_batch, batch.G, batch.Sigma, S_inverse, batch.inverse_coverage),
        Stats(
            S, cov_sum, keep * stats.code_cov_weight + share, counts, sums,
            keep * stats.n_rows + share, keep * stats.residual_energy + energy,
            keep * stats.residual_dof + free, keep * stats.prior_weight, keep * stats.start_weight,
        ),
        Schedule(
            schedule.n_seen + 1, schedule.n_entries + count, schedule.batch_left - 1,
            schedule.update_left - 1, schedule.fade, schedule.head_start, schedule.has_missing,
            schedule.pass_rows, schedule.extra_weight,
        ),
        holdout, state.outliers, state.features, state.temporal, None, drift,
    )  # fmt: skip
    return mark_fractions(after, X), codes
