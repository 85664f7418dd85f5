"""E-step: the posterior N(x, A⁻¹) of each row's code, see `linalg/posterior.py`."""

from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.drift import leave_one_out_complete
from ..linalg.posterior import code_rows, count_systems, spread_rows, spread_rows_own
from ..linalg.rows import Rows, gram
from ..linalg.small import invert
from ..linalg.threads import MOST_PIECES, in_threads
from ..linalg.workspace import Workspace
from .state import FeaturePosterior, State, evolve
from .stats import Matrix, Vector
from .whiten import Whitened

# Complete rows at a time: what lies between their products stays in the cache.
ROWS = 256
# Numbers of a dictionary that has a row for each entry.
EXPANDED = 1 << 22
# Fewest rows of a thread's piece of work that pay for making a shared system there.
ROWS_OF_A_PIECE = 8


class Codes(NamedTuple):
    """Posterior of the codes of some rows, and what they leave unexplained."""

    X: Matrix
    """(q, r + 1); the last entry is that of the mean."""
    cov_sum: Matrix
    """(r, r): weighted sum of the codes' covariances."""
    residual: Vector
    """‖y − C x‖² of each row."""
    dof: Vector
    """Degrees of freedom of that, |Ω| − tr(A⁻¹G_Ω)."""
    covariances: Matrix
    """(q, r, r), or (1, r, r) if all rows share one; empty unless `keep_covariances`."""
    dropped: NDArray[np.bool_]
    """Entries dropped as outliers, in the order of `Whitened.entries`; may be empty."""
    left_out: Matrix
    """(q, 2): mean squared leave-one-out errors and deviations from the mean, in units of
    `Params.scale`; empty unless `leave_out`."""


def encode_rows(
    state: State, rows: Whitened, weights: Vector | None = None, *, limit: float | None = None,
    keep_covariances: bool = False, leave_out: bool = False, workspace: Workspace | None = None,
) -> Codes:  # fmt: skip
    """Codes of rows by the dictionary of their batch; `weights` are those of `cov_sum`.

    Codes of complete rows are written into `workspace`, if there is one.
    """
    left_out = np.zeros((len(rows) if leave_out else 0, 2))
    weights = np.ones(len(rows)) if weights is None else weights
    if rows.complete and limit is None:
        assert rows.values is not None
        return _complete(state, rows.values, weights, keep_covariances, left_out, workspace)
    return _each(state, rows, weights, limit, keep_covariances, left_out)


def complete_system(state: State) -> tuple[Matrix, Vector]:
    """A⁻¹ of complete rows, and what is subtracted from C_xᵀy before it is multiplied by A⁻¹."""
    r, count = state.n_components, float(state.batch.inverse_coverage.sum())
    H = state.batch.G[:r, :r] + count * state.batch.Sigma[:r, :r]
    H.flat[:: r + 1] += 1.0
    invert(H, 0.0)
    return H, state.one * (state.batch.G[:r, r] + count * state.batch.Sigma[:r, r])


def _complete(
    state: State, Y: NDArray[Any], weights: Vector, keep_covariances: bool, left_out: Matrix,
    workspace: Workspace | None,
) -> Codes:  # fmt: skip
    """Rows that share one system, by two products."""
    r, (q, m) = state.n_components, Y.shape
    H, pulled = complete_system(state)
    offset = pulled @ H
    shape = (q, r + 1)
    X = np.empty(shape) if workspace is None else workspace.array(shape, np.float64)
    residual = squares_of(Y)
    X[:, r] = state.one
    for start in range(0, q, ROWS):
        here = slice(start, start + ROWS)
        P = (Y[here] @ state.coding).astype(np.float64, copy=False)
        x = X[here]
        np.matmul(P[:, :r], H, out=x[:, :r])
        x[:, :r] -= offset
        left = x @ state.batch.G
        left -= P
        left -= P
        residual[here] += np.einsum("ij,ij->i", x, left)
    free = m - min(float((H * state.batch.G[:r, :r]).sum()), 0.98 * m)
    if len(left_out):
        C = state.coding
        leverages = np.sum((C[:, :r] @ H.astype(C.dtype)) * C[:, :r], axis=1, dtype=np.float64)
        leave_one_out_complete(C, leverages, Y, X, unit_sizes(state), state.n_seen, left_out)
    return Codes(
        X, float(weights.sum()) * H, np.maximum(residual, 0.0), np.full(q, free),
        H[None] if keep_covariances else np.empty((0, r, r)), np.zeros(0, bool), left_out,
    )  # fmt: skip


def unit_sizes(state: State) -> Vector:
    """The noise of each feature in units of its scale, in which errors are reported."""
    return state.params.noise_std / state.params.scale


def _each(
    state: State, rows: Whitened, weights: Vector, limit: float | None, keep_covariances: bool,
    left_out: Matrix,
) -> Codes:  # fmt: skip
    """Rows with a system each."""
    if rows.precisions is not None:
        return _each_weighted(state, rows, weights, limit, keep_covariances, left_out)
    C, batch = state.coding.astype(np.float64, copy=False), state.batch
    q, r, entries = len(rows), state.n_components, rows.entries
    P, energies = np.empty((0, r + 1)), np.empty(0)
    if rows.values is not None:
        P = (rows.values @ state.coding).astype(np.float64, copy=False)
        energies = squares_of(rows.values)
    X = np.zeros((q, r + 1))
    X[:, r] = state.one
    residual, dof = np.zeros(q), np.zeros(q)
    covariances = np.empty((q if keep_covariances else 0, r, r))
    dropped = np.zeros(len(entries.values), bool)
    totals: list[tuple[int, Matrix]] = []
    sizes = unit_sizes(state)

    def part(first: int, last: int) -> None:
        total = np.zeros((r, r))
        code_rows(
            C, batch.G, batch.Sigma, batch.inverse_coverage, limit, *entries, first, last, P,
            energies, X, covariances, total, weights, residual, dof, dropped, sizes, state.n_seen,
            left_out,
        )  # fmt: skip
        totals.append((first, total))

    systems = count_systems(entries.starts, entries.features)
    most_pieces = min(MOST_PIECES, max(systems, q // ROWS_OF_A_PIECE))
    in_threads(part, q, len(entries.values) * r * r, most_pieces)
    cov_sum = sum((part for _, part in sorted(totals, key=itemgetter(0))), np.zeros((r, r)))
    return Codes(X, cov_sum, residual, dof, covariances, dropped, left_out)


def _each_weighted(
    state: State, rows: Whitened, weights: Vector, limit: float | None, keep_covariances: bool,
    left_out: Matrix,
) -> Codes:  # fmt: skip
    """`_each` of rows whose entries have weights.

    An entry of weight w is one of a feature √w times as large with noise 1, so the dictionary gets
    a row for each entry.
    """
    q, R = len(rows), state.n_components + 1
    parts = []
    each = max(1, EXPANDED // (R * max(int(rows.counts.max(initial=1)), 1)))
    bounds = np.concatenate([[0], np.cumsum(rows.counts)])
    for first in range(0, q, each):
        last = min(first + each, q)
        some, root = rows.entries.part(first, last), slice(bounds[first], bounds[last])
        assert rows.precisions is not None
        roots = np.sqrt(rows.precisions[root])
        C = roots[:, None] * state.coding[some.features].astype(np.float64)
        params, coverage = state.params, state.batch.inverse_coverage[some.features]
        expanded = evolve(
            state, C=C, C_batch=C, G=gram(C), inverse_coverage=roots**2 * coverage,
            noise_std=params.noise_std[some.features] / roots, scale=params.scale[some.features],
            n_seen=state.n_seen + first,
        )  # fmt: skip
        entries = Rows(some.starts, np.arange(len(roots), dtype=np.int32), roots * some.values)
        given = Whitened(len(roots), None, None, np.diff(some.starts), entries)
        here = slice(first, last)
        found = _each(expanded, given, weights[here], limit, keep_covariances, left_out[here])
        parts.append(found)
    codes = Codes(*(np.concatenate(found) for found in zip(*parts, strict=True)))
    cov_sum = np.sum([part.cov_sum for part in parts], axis=0)
    return codes._replace(cov_sum=cov_sum, left_out=left_out)


def predictive_variances(
    state: State, X: Matrix, covariances: Matrix, starts: NDArray[np.int64],
    features: NDArray[np.int32],
) -> Vector:  # fmt: skip
    """Predictive variances of features[starts[t]:starts[t+1]] of each row, given rows' codes."""
    C, batch = state.coding.astype(np.float64, copy=False), state.batch
    if state.posterior is not None:
        return _own_variances(state, state.posterior, X, covariances, starts, features)
    variances = np.empty(len(features))
    in_threads(
        lambda first, last: spread_rows(
            C, covariances, batch.Sigma, X, batch.inverse_coverage, starts, features, first, last,
            variances,
        ),
        len(starts) - 1,
        len(features) * state.n_components**2,
    )  # fmt: skip
    return variances


def _own_variances(
    state: State, posterior: FeaturePosterior, X: Matrix, covariances: Matrix,
    starts: NDArray[np.int64], features: NDArray[np.int32],
) -> Vector:  # fmt: skip
    """`predictive_variances` where each feature has a covariance of its own."""
    active, variances = posterior.active, np.empty(len(features))
    C = np.ascontiguousarray(state.coding[:, active].astype(np.float64, copy=False))
    codes = np.ascontiguousarray(X[:, active])
    square = np.ascontiguousarray(covariances[:, active[:-1, None], active[:-1]])
    in_threads(
        lambda first, last: spread_rows_own(
            C, square, posterior.covariances, codes, starts, features, first, last, variances
        ),
        len(starts) - 1,
        len(features) * len(active) ** 2,
    )
    return variances


def squares_of(Y: NDArray[Any]) -> Vector:
    """yᵀy of each row."""
    return np.matmul(Y[:, None, :], Y[:, :, None])[:, 0, 0].astype(np.float64, copy=False)
