"""Blocks of rows joined to one."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import dense_with_holes, sparse_with_holes
from ..core.weighted import WeightedRows, aligned, stacked


def together(blocks: tuple[Any, ...]) -> NDArray[Any]:
    """Blocks of rows as one array, NaN where they miss something."""
    dense = [dense_with_holes(block) for block in blocks]
    return dense[0] if len(dense) == 1 else np.concatenate(dense)


def joined(head: Any, rows: Any) -> Any:
    """The rows after those of the head, in the head's type; sparse if the rows are."""
    return stacked([head, rows], lambda parts: _joined(*parts))


def _joined(head: Any, rows: Any) -> Any:
    if scipy.sparse.issparse(rows):
        head = sparse_with_holes(head)
        return scipy.sparse.vstack([head, rows.astype(head.dtype, copy=False)], format="csr")
    head = dense_with_holes(head)
    return np.concatenate([head, rows.astype(head.dtype, copy=False)])


def narrowed(rows: Any, kept: NDArray[np.int64]) -> Any:
    """The rows with some of their features only."""
    if isinstance(rows, WeightedRows):
        precisions = None if rows.precisions is None else narrowed(rows.precisions, kept)
        return WeightedRows(narrowed(rows.rows, kept), rows.weights, precisions)
    return rows[:, kept]


def widened(rows: Any, count: int) -> Any:
    """The rows with more features, all of them missing."""
    if isinstance(rows, WeightedRows):
        wider, precisions = widened(rows.rows, count), rows.precisions
        if precisions is not None:
            precisions = aligned(widened(precisions, count), wider)
        return WeightedRows(wider, rows.weights, precisions)
    if scipy.sparse.issparse(rows):
        shape = (rows.shape[0], rows.shape[1] + count)
        return scipy.sparse.csr_matrix((rows.data, rows.indices, rows.indptr), shape=shape)
    return np.pad(rows, ((0, 0), (0, count)), constant_values=np.nan)
