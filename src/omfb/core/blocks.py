"""Cut a block of rows into pieces that one kernel can take: complete rows, or rows with holes."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .kernels.missing import compress
from .kernels.shared import Rows

# Rows with holes go through the kernel this many at a time: enough to hide the cost of a call.
MISSING_ROWS = 128


@dataclass(frozen=True, slots=True)
class Complete:
    """Fully observed rows, and the products of each with each."""

    Y: NDArray[Any]
    N: NDArray[Any]

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def n_entries(self) -> int:
        """How many entries are observed: all."""
        return self.Y.size

    def part(self, first: int, last: int) -> "Complete":
        """Rows first to last."""
        return Complete(self.Y[first:last], self.N[first:last, first:last])


Piece = Complete | Rows


def pieces(X: Any, length: int, *, whole: bool = False) -> Iterator[Piece]:
    """Yield X in order, at most `length` rows at a time.

    With `whole`, the pieces have exactly that length (but for the last): mini-batches are not
    cut where complete rows and rows with holes meet.
    """
    if scipy.sparse.issparse(X):
        rows = sparse_rows(X)
        step = length if whole else MISSING_ROWS
        for start in range(0, len(rows), step):
            yield rows.part(start, min(start + step, len(rows)))
        return
    for start in range(0, len(X), length):
        Y = np.ascontiguousarray(X[start : start + length])
        # The sum of squares of a row is finite only if all its entries are: the products that the
        # kernel needs anyway tell whether there are holes. If the first row has some, do not try.
        first = Y[0] @ Y[0]
        if math.isfinite(first):
            N = Y @ Y.T if len(Y) > 1 else first.reshape(1, 1)
            if len(Y) == 1 or math.isfinite(N.trace()):
                yield Complete(Y, N)
                continue
        check_finite(Y, first_row=start)
        yield from [dense_rows(Y)] if whole else _split(Y)


def dense_rows(Y: NDArray[Any]) -> Rows:
    """The observed entries of a dense block with NaN for missing."""
    # A read-only array would be a type of its own, and compile the kernel a second time.
    Y = np.ascontiguousarray(Y)
    return Rows(*compress(Y if Y.flags.writeable else Y.copy()))


def complete_rows(Y: NDArray[Any]) -> Rows:
    """All entries of a dense block that has no holes."""
    n, m = Y.shape
    features = np.arange(m, dtype=np.int32)
    features = np.tile(features, n) if n > 1 else features
    values = Y.ravel() if Y.flags.writeable else Y.flatten()  # as in `dense_rows`
    return Rows(np.arange(0, n * m + 1, m, dtype=np.int64), features, values)


def sparse_rows(X: Any) -> Rows:
    """The observed entries of a sparse matrix: absent entries are missing, and so are NaN."""
    X = canonical(X)
    check_finite(X.data[None])
    starts, features, values = X.indptr.astype(np.int64), X.indices, X.data
    missing = np.isnan(values)
    if missing.any():
        before = np.concatenate([[0], np.cumsum(~missing)])
        starts, features, values = before[starts], features[~missing], values[~missing]
    if not values.flags.writeable:  # as in `dense_rows`
        values = values.copy()
    return Rows(starts, features.astype(np.int32, copy=not features.flags.writeable), values)


def canonical(X: Any) -> Any:
    """A sparse matrix by rows, entries in order and none twice; the given one is not changed."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def sparse_with_holes(Y: Any) -> Any:
    """An array with NaN for missing as a sparse matrix that does not store them."""
    if scipy.sparse.issparse(Y):
        return Y
    rows, columns = np.nonzero(~np.isnan(Y))
    return scipy.sparse.csr_array((Y[rows, columns], (rows, columns)), shape=Y.shape)


def dense_with_holes(X: Any) -> NDArray[Any]:
    """A sparse matrix as an array with NaN where nothing is stored; arrays as they are."""
    if not scipy.sparse.issparse(X):
        return X
    X = canonical(X).tocoo()
    dense = np.full(X.shape, np.nan, X.dtype)
    dense[X.row, X.col] = X.data
    return dense


def check_finite(Y: NDArray[Any], first_row: int = 0, squares: bool = True) -> None:
    """Refuse infinity and, with `squares`, values whose squares would overflow."""
    infinite = np.isinf(Y)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        where = f" at row {first_row + row}, column {column} of this block" if len(Y) > 1 else ""
        raise ValueError(
            f"X contains infinity{where}. Replace infinite values, by NaN if they are unknown."
        )
    largest = float(np.nanmax(np.abs(Y), initial=0.0))
    limit = float(np.sqrt(np.finfo(Y.dtype).max / max(Y.shape[-1], 1)))
    if squares and largest > limit:
        raise ValueError(
            f"X contains values up to {largest:.3g}, too large for {Y.dtype} beside what the model "
            f"was started with. Rescale X, or fit a new model to data of this size."
        )


def _split(Y: NDArray[Any]) -> Iterator[Piece]:
    """Runs of complete rows between rows with holes; all as rows with holes if there are many."""
    holes = np.isnan(Y).any(axis=1)
    if 4 * np.count_nonzero(holes) >= len(Y):
        yield dense_rows(Y)
        return
    edges = np.flatnonzero(np.diff(holes)) + 1
    for first, last in zip([0, *edges], [*edges, len(Y)], strict=True):
        run = Y[first:last]
        yield dense_rows(run) if holes[first] else Complete(run, run @ run.T)
