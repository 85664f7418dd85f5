"""Rows with weights, as arrays and sparse matrices are rows without.

*Weights of rows* count how often a row occurs: its sums, in whatever is estimated, are multiplied
by its weight, and what a row says of its own code does not change. *Weights of entries* say how
precise a value is: its noise has the variance σ² / w, so it counts for more or less in both.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Vector = NDArray[np.float64]
# Weights are within these, or 0: their products must not overflow.
LEAST_WEIGHT, MOST_WEIGHT = 1e-30, 1e30
ALLOWED = f"0, or numbers from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"


def are_weights(weights: Vector) -> NDArray[np.bool_]:
    """Which of these numbers can be weights."""
    fine: NDArray[np.bool_] = (weights >= LEAST_WEIGHT) & (weights <= MOST_WEIGHT)
    return fine | (weights == 0.0)


@dataclass(frozen=True, slots=True)
class WeightedRows:
    """Rows and their weights; slices and copies keep them.

    Attributes
    ----------
    rows : ndarray or canonical CSR matrix of shape (n, m)
    weights : ndarray of shape (n,)
        How often each row occurs; above zero.
    precisions : ndarray or CSR matrix of shape (n, m), or None
        Weights of the entries, stored as the rows are; above zero where an entry is observed. None
        if all are 1.
    """

    rows: Any
    weights: Vector
    precisions: Any = None

    @property
    def shape(self) -> tuple[int, int]:
        """That of the rows."""
        n, m = self.rows.shape
        return n, m

    @property
    def dtype(self) -> np.dtype[Any]:
        """That of the rows."""
        dtype: np.dtype[Any] = self.rows.dtype
        return dtype

    def __len__(self) -> int:
        return len(self.weights)

    def __getitem__(self, which: Any) -> "WeightedRows":
        precisions = None if self.precisions is None else self.precisions[which]
        return WeightedRows(self.rows[which], self.weights[which], precisions)

    def copy(self) -> "WeightedRows":
        """A copy of the arrays."""
        precisions = None if self.precisions is None else self.precisions.copy()
        return WeightedRows(self.rows.copy(), self.weights.copy(), precisions)

    def astype(self, dtype: Any, *, copy: bool = True) -> "WeightedRows":
        """The rows in another type."""
        rows = self.rows.astype(dtype, copy=copy)
        return WeightedRows(rows, self.weights, self.precisions)

    def with_rows(self, rows: Any) -> "WeightedRows":
        """Other values with these weights."""
        return WeightedRows(rows, self.weights, self.precisions)


def values_of(rows: Any) -> Any:
    """The rows without their weights, if they have any."""
    return rows.rows if isinstance(rows, WeightedRows) else rows


def weights_of(rows: Any) -> Vector | None:
    """The weights of rows; None if all are 1."""
    return rows.weights if isinstance(rows, WeightedRows) else None


def precisions_of(rows: Any) -> Any:
    """The weights of the entries of rows; None if all are 1."""
    return rows.precisions if isinstance(rows, WeightedRows) else None


def entry_precisions(
    precisions: Any, which: NDArray[np.int64], features: NDArray[np.int32]
) -> Vector:
    """Weights of some entries, given by their rows and features."""
    found = precisions[which, features] if len(which) else np.empty(0)
    return np.asarray(found, np.float64).ravel()


def total_weight(rows: Any) -> float:
    """The sum of the weights of rows."""
    weights = weights_of(rows)
    return float(rows.shape[0]) if weights is None else float(weights.sum())


def stacked(blocks: list[Any], join: Callable[[list[Any]], Any]) -> Any:
    """Blocks of rows as one; `join` stacks lists of arrays and sparse matrices."""
    if not any(isinstance(block, WeightedRows) for block in blocks):
        return join(blocks)
    each = (weights_of(block) for block in blocks)
    weights = [
        np.ones(block.shape[0]) if own is None else own
        for block, own in zip(blocks, each, strict=True)
    ]
    rows, precisions = join([values_of(block) for block in blocks]), None
    if any(precisions_of(block) is not None for block in blocks):
        precisions = aligned(join([_precisions(block) for block in blocks]), rows)
    return WeightedRows(rows, np.concatenate(weights), precisions)


def aligned(precisions: Any, rows: Any) -> Any:
    """Weights of entries, stored as the rows are: in an array, or a CSR matrix with its pattern."""
    if not scipy.sparse.issparse(rows):
        dense = precisions.toarray() if scipy.sparse.issparse(precisions) else precisions
        return np.asarray(dense, np.float64)
    owner = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
    data = entry_precisions(precisions, owner, rows.indices)
    return scipy.sparse.csr_array((data, rows.indices, rows.indptr), rows.shape)


def _precisions(block: Any) -> Any:
    """The weights of a block's entries, 1 if it has none."""
    found = precisions_of(block)
    if found is not None:
        return found
    rows = values_of(block)
    if scipy.sparse.issparse(rows):
        return scipy.sparse.csr_array((np.ones(rows.nnz), rows.indices, rows.indptr), rows.shape)
    return np.ones(rows.shape)
