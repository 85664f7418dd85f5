"""Codes of rows, given the dictionary; the work is shared by threads, row by row."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..linalg.posterior import code_rows, count_systems, spread_rows
from ..linalg.small import invert
from ..linalg.threads import MOST_PIECES, in_threads
from ..linalg.workspace import Room
from .state import Matrix, Model, Vector
from .whiten import Whitened

# Complete rows at a time: what is between their products stays in the cache.
ROWS = 256
# Rows that share a system are many enough in a piece of the work to pay for making it there.
ROWS_OF_A_PIECE = 8


class Codes(NamedTuple):
    """Codes of some rows and what they leave unexplained."""

    X: Matrix
    """(q, r + 1); the last entry is that of the mean."""
    unsure: Matrix
    """(r, r): covariances of the codes, summed by the weights that were given."""
    residual: Vector
    """‖y − C x‖² of each row."""
    freedom: Vector
    """Degrees of freedom of that."""
    covariances: Matrix
    """(q, r, r) or (1, r, r) if all rows share one; empty if not asked for."""
    dropped: NDArray[np.bool_]
    """Entries that were taken for outliers, in the order of `Whitened.entries`; may be empty."""


def codes_of(
    model: Model, rows: Whitened, weights: Vector | None = None, *, limit: float | None = None,
    keep_covariances: bool = False, room: Room | None = None,
) -> Codes:  # fmt: skip
    """Codes of rows by the dictionary of their batch; `weights` are those of their uncertainty.

    Codes of complete rows may lie in a room.
    """
    weights = np.ones(len(rows)) if weights is None else weights
    if rows.complete and limit is None:
        assert rows.values is not None
        return _complete(model, rows.values, weights, keep_covariances, room)
    return _each(model, rows, weights, limit, keep_covariances)


def complete_system(model: Model) -> tuple[Matrix, Vector]:
    """A⁻¹ of complete rows, and what is taken off C_xᵀy before it is multiplied by that."""
    r, count = model.n_components, float(model.rarity.sum())
    H = model.G[:r, :r] + count * model.Sigma[:r, :r]
    H.flat[:: r + 1] += 1.0
    invert(H, 0.0)
    return H, model.one * (model.G[:r, r] + count * model.Sigma[:r, r])


def _complete(
    model: Model, Y: NDArray[Any], weights: Vector, keep_covariances: bool, room: Room | None
) -> Codes:
    """Rows that share one system, by two products."""
    r, (q, m) = model.n_components, Y.shape
    H, pulled = complete_system(model)
    offset = pulled @ H
    X = np.empty((q, r + 1)) if room is None else room.array((q, r + 1), np.float64)
    residual = squares_of(Y)
    X[:, r] = model.one
    for start in range(0, q, ROWS):
        here = slice(start, start + ROWS)
        P = (Y[here] @ model.coding).astype(np.float64, copy=False)
        x = X[here]
        np.matmul(P[:, :r], H, out=x[:, :r])
        x[:, :r] -= offset
        left = x @ model.G
        left -= P
        left -= P
        residual[here] += np.einsum("ij,ij->i", x, left)
    free = m - min(float((H * model.G[:r, :r]).sum()), 0.98 * m)
    return Codes(
        X, float(weights.sum()) * H, np.maximum(residual, 0.0), np.full(q, free),
        H[None] if keep_covariances else np.empty((0, r, r)), np.zeros(0, bool),
    )  # fmt: skip


def _each(
    model: Model, rows: Whitened, weights: Vector, limit: float | None, keep_covariances: bool
) -> Codes:
    """Rows with a system each."""
    C = model.coding.astype(np.float64, copy=False)
    q, r, entries = len(rows), model.n_components, rows.entries
    P, energies = np.empty((0, r + 1)), np.empty(0)
    if rows.values is not None:
        P = (rows.values @ model.coding).astype(np.float64, copy=False)
        energies = squares_of(rows.values)
    X = np.zeros((q, r + 1))
    X[:, r] = model.one
    residual, freedom = np.zeros(q), np.zeros(q)
    covariances = np.empty((q if keep_covariances else 0, r, r))
    dropped = np.zeros(len(entries.values), bool)
    totals: list[tuple[int, Matrix]] = []

    def part(first: int, last: int) -> None:
        total = np.zeros((r, r))
        code_rows(
            C, model.G, model.Sigma, model.rarity, limit, *entries, first, last,
            P, energies, X, covariances, total, weights, residual, freedom, dropped,
        )  # fmt: skip
        totals.append((first, total))

    systems = count_systems(entries.starts, entries.features)
    most_pieces = min(MOST_PIECES, max(systems, q // ROWS_OF_A_PIECE))
    in_threads(part, q, len(entries.values) * r * r, most_pieces)
    unsure = sum((total for _, total in sorted(totals, key=lambda item: item[0])), np.zeros((r, r)))
    return Codes(X, unsure, residual, freedom, covariances, dropped)


def variances_of(
    model: Model, X: Matrix, covariances: Matrix, starts: NDArray[np.int64],
    features: NDArray[np.int32],
) -> Vector:  # fmt: skip
    """Predictive variances of features[starts[t]:starts[t+1]] of each row, given rows' codes."""
    C = model.coding.astype(np.float64, copy=False)
    variances = np.empty(len(features))
    in_threads(
        lambda first, last: spread_rows(
            C, covariances, model.Sigma, X, model.rarity, starts, features, first,
            last, variances,
        ),
        len(starts) - 1,
        len(features) * model.n_components**2,
    )  # fmt: skip
    return variances


def squares_of(Y: NDArray[Any]) -> Vector:
    """yᵀy of each row."""
    return np.matmul(Y[:, None, :], Y[:, :, None])[:, 0, 0].astype(np.float64, copy=False)
