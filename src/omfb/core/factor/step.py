"""A step: rows in batches, an M-step now and then.

A batch's codes come from the dictionary at its start (`e_step.py`). Then the dictionary learns from
its rows one after the other, by recursive least squares (`linalg/recursion.py`). For complete rows
and features that have been observed alike that is, for codes X̃ with weights w,

    S' = keep S + X̃ᵀ w X̃,   C' = C + (Y − X̃ Cᵀ)ᵀ w X̃ S'⁻¹

two products with the rows, as in the paper's mini-batches. How a stream is cut into calls does not
matter: within a batch the state keeps the dictionary that makes its codes.
"""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import canonical
from ..info import Info
from ..linalg.rows import check_finite_step, gram
from ..linalg.workspace import Workspace
from ..weighted import WeightedRows, total_weight, values_of
from .dictionary import MOSTLY, update_dictionary
from .drift import follow_rows, follows, forget, is_alarmed
from .e_step import ROWS, Codes, encode_rows
from .features import (
    admit_features,
    degrees_of_freedom,
    mark_fractions,
    mark_seen,
    mark_varied,
    set_aside,
    still_constant,
    tracked,
)
from .holdout import hold_out
from .holdout_scores import score
from .m_step import m_step
from .restrict import has_few_entries, put_back, restricted
from .robust import clip_rows, outlier_limit, update_outlier_policy, without_outliers
from .schedule import batch_rows, least_update_rows
from .single_row import is_ordinary, learn_single
from .state import State, evolve, settled
from .stats import Matrix, Stats, Vector, inverse, inverse_coverage

# Workspaces: the rows of a batch in units of the noise, and their codes.
ROWS_SPACE, CODES_SPACE = Workspace(), Workspace()


def step(
    state: State, X: Any, *, reuse: bool = False, numbers: NDArray[np.int64] | None = None
) -> tuple[State, NDArray[Any], Info]:
    """Learn from rows: return the next state, the rows' codes, and errors of held-out entries.

    Parameters
    ----------
    state : State
        Where to start from; unchanged unless `reuse`.
    X : ndarray, scipy.sparse or WeightedRows of shape (n_samples, n_features)
    reuse : bool, default=False
        Allow writing into arrays of `state`, which is lost then.
    numbers : ndarray of shape (n_samples,) or None, default=None
        Of the rows, which decide on what they hold out; None counts them as they come.
    """
    X = canonical(X) if scipy.sparse.issparse(X) else X
    dtype = state.params.C.dtype
    codes = np.empty((X.shape[0], state.n_components), dtype)
    given, sse = state.params.C, state.holdout.sse[0]
    space = None
    if not scipy.sparse.issparse(values_of(X)) and len(codes) > 1:
        longest = min(len(codes), state.config.hyper.longest_batch)
        space = ROWS_SPACE.array((longest, X.shape[1]), dtype)
    at = 0
    while at < len(codes):
        here = slice(at, at + min(state.schedule.batch_left, state.schedule.update_left))
        mine = reuse or state.params.C is not given
        Y = X if X.shape[0] == 1 else X[here]
        which = state.numbers(Y.shape[0]) if numbers is None else numbers[here]
        state, X_codes = _learn(state, Y, which, mine, space)
        codes[at : at + len(X_codes)] = X_codes[:, :-1]
        at += len(X_codes)
        if state.config.forgets_at_alarms and is_alarmed(state):
            state = forget(settled(state))
        if state.schedule.batch_left == 0 or state.schedule.update_left == 0:
            state = next_batch(state)
    return state, codes, Info(*(state.holdout.sse[0] - sse).tolist())


def mostly_observed(row: Any) -> bool:
    """Whether a row is learned from by products, which make a new dictionary."""
    if scipy.sparse.issparse(row):
        return False
    return np.count_nonzero(np.isnan(row)) < (1.0 - MOSTLY) * row.size


def next_batch(state: State, *, shrink: bool = True) -> State:
    """The state at the start of a batch, after an M-step if one is due."""
    state = settled(state)
    schedule, C = state.schedule, state.params.C
    has_missing = schedule.has_missing or schedule.n_entries < schedule.n_seen * len(C)
    state = evolve(
        update_outlier_policy(state), has_missing=has_missing,
        batch_left=_next_batch_rows(state, has_missing),
        inverse_coverage=coverage_of(state), constant=still_constant(state),
        varied=np.zeros_like(state.features.varied),
    )  # fmt: skip
    if schedule.update_left == 0:
        return m_step(state, shrink=shrink)
    before = evolve(state, C_batch=None, G=gram(C), S_inverse=inverse(state.stats.S))
    after = admit_features(before)
    if after is before:
        return after
    # New features have only their first unit for noise: the M-step comes soon.
    soon = least_update_rows(_share(state), state.config)
    return evolve(after, update_left=min(schedule.update_left, soon))


def _share(state: State) -> float:
    """The share of the features that the usual row observes."""
    schedule = state.schedule
    return schedule.n_entries / max(schedule.n_seen * len(state.params.C), 1)


def _next_batch_rows(state: State, has_missing: bool) -> int:
    """Rows of the next batch: few while the model relearns what it has forgotten."""
    forget_factor = state.config.fixed_forget_factor
    if state.drift.origin > 0:
        forget_factor *= float(state.keep(1)[0])
    return batch_rows(state.age, has_missing, state.config, forget_factor, _share(state))


def end_batch(state: State) -> State:
    """The state as its rows so far have made it: codes by the dictionary as it is now."""
    if state.batch.C_batch is None:
        return state
    state = settled(state)
    return evolve(state, C_batch=None, G=gram(state.params.C), inverse_coverage=coverage_of(state))


def coverage_of(state: State) -> Vector:
    """`inverse_coverage` by the counts so far."""
    return inverse_coverage(state.stats.counts, state.config.hyper.least_coverage)


def _learn(
    state: State, X: Any, numbers: NDArray[np.int64], reuse: bool, space: NDArray[Any] | None
) -> tuple[State, Matrix]:
    """`_learn_rows`, in the space of the features that a row of few entries observes."""
    state = tracked(state)
    if not has_few_entries(state, X):
        after, codes = _learn_rows(settled(state), X, numbers, reuse, space)
        return mark_seen(after, values_of(X)[: len(codes)], state.n_seen), codes
    before = restricted(state, X.indices)
    after, codes = _learn_rows(before, X.data[None], numbers, False, None)
    after = mark_seen(after, X.data[None], state.n_seen)
    return put_back(state, before, after, X.indices, reuse=reuse), codes


def _learn_rows(
    state: State, X: Any, numbers: NDArray[np.int64], reuse: bool, space: NDArray[Any] | None
) -> tuple[State, Matrix]:
    """Learn from rows of one batch; also return their codes, which the next batch overwrites.

    Rows after an alarm that makes the model forget are left to the next batch: there are fewer
    codes then.
    """
    before = state
    held_out, scored = hold_out(state, X, numbers)
    state = score(state, scored)
    if is_ordinary(state, X):
        learned_row = learn_single(state, X, held_out, reuse)
        if learned_row is not None:
            return learned_row
    state, known = set_aside(state, values_of(X))
    given = X.with_rows(known) if isinstance(X, WeightedRows) else known
    rows, q = clip_rows(state, given, held_out, space), X.shape[0]
    state, constant = mark_varied(state, known)
    state = mark_fractions(state, values_of(X))
    keep = np.where(rows.shares > 0.0, state.keep(q, rows.weights), 1.0)
    after = _left_after(keep)
    weights = after * rows.shares
    limit = outlier_limit(state)
    n_entries = int(rows.counts.sum())
    codes = encode_rows(
        state, rows, weights, limit=limit, leave_out=follows(state), workspace=CODES_SPACE
    )
    sse, drift = state.holdout.sse, state.drift
    if follows(state):
        n_rows, sse, drift = follow_rows(state, codes.residual, codes.dof, codes.left_out)
        if n_rows < q:
            return _learn_rows(before, X[:n_rows], numbers[:n_rows], reuse, space)
    if codes.dropped.any():
        state, rows = without_outliers(state, rows, codes)
    elif state.outliers.run_length.any():  # every observed entry fits
        runs = state.outliers.run_length.copy()
        runs[rows.entries.features] = 0
        state = evolve(state, run_length=runs)
    leverage = _leverage(state, codes)
    learned = update_dictionary(state, rows, codes, keep, after, leverage, reuse)
    check_finite_step(codes.X, learned.S, learned.S_inverse)
    dof = degrees_of_freedom(rows, codes, constant)
    left, stats, schedule = float(keep.prod()), state.stats, state.schedule
    each = after if rows.weights is None else after * rows.weights
    energy = float((each * codes.residual / (1.0 + leverage)).sum())
    return evolve(
        state,
        C=learned.C,
        C_batch=state.coding,
        S_inverse=learned.S_inverse,
        stats=Stats(
            S=learned.S,
            code_cov_sum=left * stats.code_cov_sum + codes.cov_sum,
            code_cov_weight=left * stats.code_cov_weight + float(weights.sum()),
            counts=learned.counts,
            residual_sums=learned.residual_sums,
            n_rows=left * stats.n_rows + float((after * rows.shares).sum()),
            residual_energy=left * stats.residual_energy + energy,
            residual_dof=left * stats.residual_dof + float((each * dof).sum()),
            prior_weight=left * stats.prior_weight,
            start_weight=left * stats.start_weight,
        ),
        n_seen=schedule.n_seen + q,
        n_entries=schedule.n_entries + n_entries,
        batch_left=schedule.batch_left - q,
        update_left=schedule.update_left - q,
        extra_weight=schedule.extra_weight + total_weight(X) - q,
        sse=sse,
        drift=drift,
        posterior=None,  # a stream has one covariance for all features
    ), codes.X


def _left_after(keep: Vector) -> Vector:
    """What the rows after it leave of each row."""
    after = np.ones(len(keep))
    after[:-1] = keep[:0:-1].cumprod()[::-1]
    return after


def _leverage(state: State, codes: Codes) -> Vector:
    """x̃ᵀ Σ x̃ of each row: the uncertainty of the dictionary in its direction."""
    X, leverage = codes.X, np.empty(len(codes.X))
    for start in range(0, len(X), ROWS):
        x = X[start : start + ROWS]
        np.einsum("ij,ij->i", x @ state.batch.Sigma, x, out=leverage[start : start + ROWS])
    return np.maximum(leverage, 0.0, out=leverage)
