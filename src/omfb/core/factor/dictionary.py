"""The dictionary's update: recursive least squares from the rows of a batch and their codes."""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.recursion import gains, learn_features, steps
from ..linalg.threads import in_threads
from ..linalg.workspace import Workspace
from .e_step import Codes
from .state import State
from .stats import Matrix, Vector, inverse
from .whiten import Whitened, by_feature

# Workspaces: weighted codes, and gains.
WEIGHTED_SPACE, GAINS_SPACE = Workspace(), Workspace()
# Rows whose steps are made together: the work grows with its square.
STEPS = 32
# Entries that are squared at a time.
SQUARES = 1 << 13
# Observed share from which on it is faster to go through all entries than through a list of them.
MOSTLY = 0.3


class Learned(NamedTuple):
    """The dictionary and the statistics after some rows, those of codes and residuals aside."""

    C: NDArray[Any]
    S: Matrix
    S_inverse: Matrix
    counts: Vector
    residual_sums: Matrix


def update_dictionary(
    state: State, rows: Whitened, codes: Codes, keep: Vector, after: Vector, leverage: Vector,
    reuse: bool,
) -> Learned:  # fmt: skip
    """The dictionary after rows with these codes."""
    counts = state.stats.counts
    alike = counts.max() - counts.min() <= 1e-9 * counts.max()
    if rows.complete and alike and state.width == len(counts):
        after = after if rows.weights is None else after * rows.weights
        return _by_products(state, rows.values, codes, keep, after, leverage)
    return _by_recursion(state, rows, codes, keep, leverage, reuse)


def _by_products(
    state: State, Y: Any, codes: Codes, keep: Vector, after: Vector, leverage: Vector
) -> Learned:
    """Complete rows, and features that have all been observed alike.

    `after` is what the rows after it leave of each row, times its weight.
    """
    X, C, dtype = codes.X, state.params.C, state.params.C.dtype
    faded = float(keep.prod())
    weighted = X if (after == 1.0).all() else _weighted(X, after)
    gathered = weighted.T @ X
    S = faded * state.stats.S + gathered
    back = inverse(S)
    B = np.matmul(weighted, back, out=GAINS_SPACE.array(X.shape, np.float64))
    B = B.astype(dtype, copy=False)
    if 2 * len(X) < len(S):  # so few rows are cheaper by what they leave unexplained
        new = _product(Y - X.astype(dtype) @ C.T, B)
        new += C
    else:
        new = C @ (np.eye(len(S)) - gathered @ back).astype(dtype) + Y.T @ B
    sums = state.stats.residual_sums
    if state.config.noise == "diagonal":
        sums = faded * sums
        sums[0] += _residual_squares(state.coding, Y, X, after / (1.0 + leverage))
        sums[1] += after.sum()
    return Learned(new, S, back, faded * state.stats.counts + after.sum(), sums)


def _product(E: NDArray[Any], B: NDArray[Any]) -> NDArray[Any]:
    """EᵀB. Of a column and a row, `@` makes a loop that is three times slower."""
    return np.einsum("ti,tj->ij", E, B) if len(E) == 1 else E.T @ B


def _residual_squares(C: NDArray[Any], Y: NDArray[Any], X: Matrix, weights: Vector) -> Vector:
    """Σ_t w_t (y_t − C x̃_t)² of each feature; of many rows without the residuals."""
    if 2 * len(X) < C.shape[1]:
        residuals = (Y - X.astype(C.dtype) @ C.T).astype(np.float64, copy=False)
        squares: Vector = weights @ residuals**2
        return squares
    weighted = _weighted(X, weights)
    product = Y.T @ weighted.astype(C.dtype, copy=False)
    fitted = C @ (weighted.T @ X).astype(C.dtype)
    energy = _weighted_squares(Y, weights)
    energy += np.sum((fitted - 2.0 * product).astype(np.float64) * C, axis=1)
    return np.maximum(energy, 0.0)


def _weighted(X: Matrix, weights: Vector) -> Matrix:
    """w_t x̃_t of each row, until this is asked for again."""
    return np.multiply(X, weights[:, None], out=WEIGHTED_SPACE.array(X.shape, X.dtype))


def _weighted_squares(Y: NDArray[Any], weights: Vector) -> Vector:
    """Σ_t w_t y_t² of each feature, of few rows at a time: in the cache, and no fresh memory."""
    total = np.zeros(Y.shape[1])
    rows = max(1, SQUARES // Y.shape[1])
    for start in range(0, len(Y), rows):
        part = Y[start : start + rows].astype(np.float64)
        part *= part
        total += weights[start : start + rows] @ part
    return total


def _by_recursion(
    state: State, rows: Whitened, codes: Codes, keep: Vector, leverage: Vector, reuse: bool
) -> Learned:
    """Any rows, one after the other."""
    X, m, before = codes.X, len(state.params.C), state.coding
    S, S_inverse = state.stats.S.copy(), state.batch.S_inverse.copy()
    Z, h = np.empty_like(X), np.empty(len(X))
    gains(S, S_inverse, X, rows.shares, keep, Z, h)
    mean_counts = _mean_counts(state.stats.n_rows, keep, rows.shares)
    counts, sums = state.stats.counts.copy(), state.stats.residual_sums.copy()
    if rows.values is not None and rows.weights is None and rows.shares.mean() > MOSTLY:
        C = _by_steps(state, rows, X, Z, h, leverage, keep, mean_counts, counts, sums)
        return Learned(C, S, S_inverse, counts, sums)
    mine = reuse and before is not state.params.C and state.params.C.dtype == np.float64
    C = state.params.C if mine else state.params.C.astype(np.float64)
    columns, least = by_feature(rows.entries, m), state.config.hyper.least_coverage
    precisions = np.empty(0)
    if rows.precisions is not None:
        precisions = by_feature(rows.entries.with_values(rows.precisions), m).values
    weights = np.ones(len(X)) if rows.weights is None else rows.weights
    before = before.astype(np.float64, copy=False)
    in_threads(
        lambda first, last: learn_features(
            C, before, *columns, precisions, first, last, X, Z, h, leverage, keep, weights,
            mean_counts, counts, sums, least,
        ),
        m,
        4 * len(columns.values) * X.shape[1],
    )  # fmt: skip
    return Learned(C.astype(state.params.C.dtype, copy=False), S, S_inverse, counts, sums)


def _by_steps(
    state: State, rows: Whitened, X: Matrix, Z: Matrix, h: Vector, leverage: Vector, keep: Vector,
    mean_counts: Vector, counts: Vector, sums: Matrix,
) -> NDArray[Any]:  # fmt: skip
    """The dictionary after rows that are mostly observed; counts and sums change in place."""
    C, before, Y = state.params.C, state.coding, rows.values
    assert Y is not None
    m, dtype = len(C), C.dtype
    for start in range(0, len(X), STEPS):
        part = slice(start, start + STEPS)
        x, z = X[part].astype(dtype), Z[part].astype(dtype)
        E_codes = (Y[part] - x @ before.T).astype(np.float64, copy=False)
        E = E_codes.copy() if C is before else (Y[part] - x @ C.T).astype(np.float64, copy=False)
        seen = np.ones(E.shape, bool) if rows.seen is None else rows.seen[part]
        args = (
            E, E_codes, seen, Z[part] @ X[part].T, h[part], leverage[part], keep[part],
            mean_counts[part], counts, sums, state.config.hyper.least_coverage,
        )  # fmt: skip
        in_threads(partial(steps, *args), m, len(x) * E.size)
        change = _product(E.astype(dtype, copy=False), z)
        C = np.add(C, change, out=change)
    return C


def _mean_counts(n_rows: float, keep: Vector, shares: Vector) -> Vector:
    """The average feature's count as each row finds it, faded by that row."""
    means = np.empty(len(keep))
    for t, (kept, share) in enumerate(zip(keep.tolist(), shares.tolist(), strict=True)):
        n_rows *= kept
        means[t] = max(n_rows, 1e-9)
        n_rows += share
    return means
