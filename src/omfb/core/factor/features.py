"""Features that begin late, never vary, or hold whole numbers only.

*New features.* If the head did not observe a feature, its first observed values give its mean and
unit at the end of a batch (`admit_features`); until then it counts as missing. Without a unit its
values could be anything, and would spoil the codes of their rows.

*Constant features* leave no residual. Counted among the degrees of freedom they would make the
noise of the others seem smaller, and with it more of that noise worth a component, until everything
is explained and no noise is left. Their errors of zero say nothing of the intervals of the others.
Which features are constant is fixed for a whole batch, however that is cut into calls.
"""

import sys
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import dense_with_holes
from ..linalg.rows import gram
from .e_step import Codes
from .state import Flags, State, evolve
from .stats import Matrix, Vector
from .whiten import Whitened

# Beside its size, a difference as small as this is rounding.
ROUNDING = 1e-13
# Entries that a feature must have had to count as constant.
CONSTANT_ENTRIES = 10
# Degrees of freedom of a row, at least, as a share of its entries that vary.
LEAST_FREEDOM = 0.02


# -- new features -------------------------------------------------------------------------------


def set_aside(state: State, X: Any) -> tuple[State, Any]:
    """The state with the moments of features without a unit, and X without these features."""
    if state.features.known.all():
        return state, X
    unknown = np.flatnonzero(~state.features.known)
    values = dense_with_holes(X[:, unknown]).astype(np.float64)
    seen = ~np.isnan(values)
    if not seen.any():
        return state, X
    pending = state.features.pending_moments.copy()
    pending[:, unknown] = _add_moments(pending[:, unknown], values, seen)
    return evolve(state, pending_moments=pending), _without(X, unknown)


def admit_features(state: State) -> State:
    """Give a mean and a unit to new features of which enough entries are known.

    `Batch.G` is that of `Params.C`, not of what made the last codes.
    """
    pending = state.features.pending_moments
    new = ~state.features.known & (pending[0] >= state.config.hyper.new_feature_entries)
    if not new.any():
        return state
    counts, means, squares = pending[:, new]
    deviations = np.sqrt(squares / (counts - 1.0))
    deviations = np.where(deviations > ROUNDING * np.abs(means), deviations, np.abs(means))
    params, stats = state.params, state.stats
    center, scale, noise = params.center.copy(), params.scale.copy(), params.noise_std.copy()
    C, G = params.C, state.batch.G
    sums, seen = stats.residual_sums.copy(), stats.counts.copy()
    if C[new].any():
        C = C.copy()
        C[new] = 0.0
        G = gram(C)
    center[new] = means if state.config.center else 0.0
    if state.config.scale:
        scale[new] = noise[new] = np.where(deviations > 0.0, deviations, scale[new])
    sums[:, new], seen[new] = 0.0, 0.0
    return evolve(
        state, center=center, scale=scale, noise_std=noise, C=C, G=G, residual_sums=sums,
        counts=seen, known=state.features.known | new,
    )  # fmt: skip


def revert_features(part: State, start: State) -> State:
    """A part of what follows a start, without what it has learned of features new to it.

    Parts choose different units for such a feature, in which nothing adds up. Its pending moments
    do add up, and give its unit when the parts are merged.
    """
    new = part.features.known & ~start.features.known
    if not new.any():
        return part
    mine, theirs = part.params, start.params
    center, scale, noise = mine.center.copy(), mine.scale.copy(), mine.noise_std.copy()
    C, sums, counts = mine.C.copy(), part.stats.residual_sums.copy(), part.stats.counts.copy()
    left = part.stats.start_weight / start.stats.start_weight
    center[new], scale[new], noise[new] = (
        theirs.center[new], theirs.scale[new], theirs.noise_std[new],
    )  # fmt: skip
    C[new] = theirs.C[new] @ np.linalg.solve(theirs.basis_change, mine.basis_change)
    sums[:, new] = left * start.stats.residual_sums[:, new]
    counts[new] = left * start.stats.counts[new]
    return evolve(
        part, center=center, scale=scale, noise_std=noise, C=C, G=gram(C), residual_sums=sums,
        counts=counts, known=start.features.known,
    )  # fmt: skip


def _add_moments(moments: Matrix, values: Matrix, seen: Flags) -> Matrix:
    """Counts, means and sums of squares about them, with more values."""
    count, mean, squares = moments
    more = seen.sum(axis=0)
    total = count + more
    own = np.where(seen, values, 0.0).sum(axis=0) / np.maximum(more, 1)
    deviations = np.where(seen, values - own, 0.0)
    apart = np.where(more > 0, own - mean, 0.0)
    share = more / np.maximum(total, 1)
    with np.errstate(over="ignore"):  # squares of huge values count as the largest number
        squares = squares + np.sum(deviations**2, axis=0) + (apart * np.sqrt(count * share)) ** 2
    return np.array([total, mean + apart * share, np.minimum(squares, sys.float_info.max)])


def _without(X: Any, unknown: NDArray[np.int64]) -> Any:
    if scipy.sparse.issparse(X):
        X = X.tocsr(copy=True)
        X.data[np.isin(X.indices, unknown)] = np.nan
        return X
    X = np.array(X)
    X[:, unknown] = np.nan
    return X


# -- constant features --------------------------------------------------------------------------


def constant_features(rows: Matrix, seen: Flags) -> tuple[Flags, Vector]:
    """Which features do not vary as far as they are seen, if others do, and their values."""
    known = rows if seen.all() else np.where(seen, rows, np.nan)
    lowest, highest = np.fmin.reduce(known, axis=0), np.fmax.reduce(known, axis=0)
    varies = _differs(lowest, highest)
    constant = ~varies & (seen.sum(axis=0) >= CONSTANT_ENTRIES) & varies.any()
    return constant, np.where(constant, highest, 0.0)


def mark_varied(state: State, X: Any) -> tuple[State, NDArray[np.int64]]:
    """Mark constant features that vary in X; also return how many constant entries rows have."""
    constant = state.features.constant
    if not constant.any():
        return state, np.zeros(X.shape[0], np.int64)
    if scipy.sparse.issparse(X):
        at, features = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr)), X.indices
        chosen = constant[features] & ~np.isnan(X.data)
        at, features, values = at[chosen], features[chosen], X.data[chosen]
    else:
        which = np.flatnonzero(constant)
        at, columns = np.nonzero(~np.isnan(X[:, which]))
        features = which[columns]
        values = X[at, features]
    varied = state.features.varied.copy()
    varied[features[_differs(values, state.features.constant_value[features])]] = True
    return evolve(state, varied=varied), np.bincount(at, minlength=X.shape[0])


def still_constant(state: State) -> Flags:
    """Features that have not varied so far."""
    return state.features.constant & ~state.features.varied


def degrees_of_freedom(rows: Whitened, codes: Codes, constant: NDArray[np.int64]) -> Vector:
    """Degrees of freedom of each row's residuals, without its constant entries."""
    return np.maximum(codes.dof - constant, LEAST_FREEDOM * (rows.counts - constant))


def _differs(a: Any, b: Any) -> Flags:
    """Whether values differ by more than rounding; NaN never does."""
    with np.errstate(over="ignore", invalid="ignore"):
        apart: Flags = np.abs(a - b) > ROUNDING * np.abs(b)
    return apart


# -- silent features ----------------------------------------------------------------------------


def tracked(state: State) -> State:
    """The state with the last row of each feature, if silent ones are to be dropped."""
    m, features = len(state.params.C), state.features
    if state.config.drop_after is None or len(features.last_seen) == m:
        return state
    return evolve(state, last_seen=np.full(m, state.n_seen))


def mark_seen(state: State, X: Any, n_seen: int) -> State:
    """Note which features X observes, whose rows come after `n_seen` others."""
    if state.config.drop_after is None:
        return state
    last = state.features.last_seen.copy()
    if scipy.sparse.issparse(X):
        at = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))
        seen = ~np.isnan(X.data)
        np.maximum.at(last, X.indices[seen], n_seen + 1 + at[seen])
    else:
        there = ~np.isnan(X)
        rows = n_seen + len(X) - np.argmax(there[::-1], axis=0)
        last = np.where(there.any(axis=0), rows, last)
    return evolve(state, last_seen=last)


def silent_features(state: State) -> Flags:
    """Features that none of the last `drop_after` rows has observed."""
    limit = state.config.drop_after
    if limit is None or len(state.features.last_seen) != len(state.params.C):
        return np.zeros(len(state.params.C), np.bool_)
    silent: Flags = state.n_seen - state.features.last_seen >= limit
    return silent


# -- integer features ---------------------------------------------------------------------------


def integer_features(rows: Matrix, seen: Flags) -> Flags:
    """Which features hold whole numbers only, as far as they are seen."""
    integer = ~_have_fractions(rows[:8], seen[:8])  # most that do not show it at once
    integer[integer] = ~_have_fractions(rows[:, integer], seen[:, integer])
    return integer


def mark_fractions(state: State, X: Any) -> State:
    """Mark features that hold fractions in X."""
    which = np.flatnonzero(state.features.integer)
    if len(which) == 0:
        return state
    integer = state.features.integer.copy()
    if scipy.sparse.issparse(X):
        integer[X.indices[_is_fraction(X.data)]] = False
    else:
        rows = X[:, which]
        integer[which] = ~_have_fractions(rows, ~np.isnan(rows))
    return evolve(state, integer=integer)


def _have_fractions(rows: Matrix, seen: Flags) -> Flags:
    return np.asarray((seen & _is_fraction(rows)).any(axis=0))


def _is_fraction(values: NDArray[Any]) -> Flags:
    """Which values lie between whole numbers; missing ones do not."""
    fractions: Flags = ~((np.round(values) == values) | np.isnan(values))
    return fractions
