"""Cut rows into pieces that one kernel can take: complete, alike in what they miss, or neither."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .linalg.observed import compressed
from .linalg.patterns import runs
from .linalg.rows import Matrix, Rows, row_squares

# Rows with missing entries are taken this many at a time: enough to hide the cost of a call.
MISSING_ROWS = 256
# So few rows that observe the same features, or with so few multiply-adds, are learned from faster
# one by one than as a block.
MAX_SINGLE_ROWS = 3
WORTH_A_BLOCK = 40_000


class UnusableError(ValueError):
    """What is wrong with X, apart from the name that X has where the message is read."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"X {problem}")
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem,)  # it may come from another process


def too_large() -> UnusableError:
    """The error for rows whose numbers overflow in the model's units."""
    return UnusableError(
        "contains values too large beside what the model has learned. Rescale X, or fit a new "
        "model to data of this size."
    )


@dataclass(frozen=True, slots=True)
class Complete:
    """Fully observed rows, and yᵀy of each."""

    Y: NDArray[Any]
    squares: Matrix

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def n_entries(self) -> int:
        """How many entries are observed: all."""
        return self.Y.size


@dataclass(frozen=True, slots=True)
class Alike:
    """Rows that all observe the same features; `Y` holds no others."""

    Y: NDArray[Any]
    features: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def n_entries(self) -> int:
        """How many entries are observed."""
        return self.Y.size

    def rows(self, first: int) -> Rows:
        """The rows from `first` on, with a list of features each."""
        return complete_rows(self.Y[first:], self.features)


def pieces(X: Any, length: int) -> Iterator[Complete | Rows]:
    """Yield X in order, `length` rows at a time (but for the last): complete, or not."""
    if scipy.sparse.issparse(X):
        rows = sparse_rows(X)
        for start in range(0, len(rows), length):
            yield rows.part(start, min(start + length, len(rows)))
        return
    for start in range(0, len(X), length):
        Y = X[start : start + length]
        # Rows that lie apart need no copy: BLAS steps over what is between them.
        Y = Y if Y.strides[1] == Y.itemsize and Y.strides[0] > 0 else np.ascontiguousarray(Y)
        # If the first row misses something, do not try the others.
        if is_complete(Y[0]):
            squares = row_squares(Y)
            if math.isfinite(squares.sum()):
                yield Complete(Y, squares)
                continue
        yield dense_rows(Y, first_row=start)


def is_complete(y: NDArray[Any]) -> bool:
    """Whether a row has neither missing nor infinite entries, nor squares that overflow.

    Not by BLAS: where y is long its threads would help, and then spin on the cores of ours.
    """
    return math.isfinite(np.einsum("i,i->", y, y))


def alike(rows: Rows, r: int) -> Iterator[Alike | Rows]:
    """Yield rows in order: consecutive ones that observe the same features, and the others."""
    done = 0
    for first, last in runs(rows):
        begin, end = rows.starts[first], rows.starts[first + 1]
        if last - first <= MAX_SINGLE_ROWS or (last - first) * (end - begin) * r < WORTH_A_BLOCK:
            continue
        if done < first:
            yield rows.part(done, first)
        Y = rows.values[begin : rows.starts[last]].reshape(last - first, end - begin)
        yield Alike(Y, rows.features[begin:end])
        done = last
    if done < len(rows):
        yield rows.part(done, len(rows))


def dense_rows(X: NDArray[Any], first_row: int = 0) -> Rows:
    """The observed entries of rows with NaN for missing; infinity is refused."""
    Y = np.ascontiguousarray(X)
    if len(Y) <= MAX_SINGLE_ROWS and is_complete(Y.ravel()):
        return complete_rows(Y, np.arange(Y.shape[1], dtype=np.int32))
    rows = compressed(Y if Y.flags.writeable else Y.copy())  # see `complete_rows`
    values = rows.values
    if not max(values.max(initial=0.0), -values.min(initial=0.0)) <= largest_allowed(Y):
        check_finite(Y, first_row)
    return rows


def complete_rows(Y: NDArray[Any], features: NDArray[np.int32]) -> Rows:
    """All entries of rows that observe the given features and no others."""
    n, m = Y.shape
    features = np.tile(features, n) if n > 1 else features
    # A read-only array would be a type of its own, and compile the kernel a second time.
    values = Y.ravel() if Y.flags.writeable else Y.flatten()
    return Rows(np.arange(0, n * m + 1, m, dtype=np.int64), features, values)


def sparse_rows(X: Any, squares: bool = True) -> Rows:
    """The observed entries of a sparse matrix: absent entries are missing, and so are NaN."""
    X = canonical(X)
    check_finite(X.data[None], squares=squares)
    starts, features, values = X.indptr.astype(np.int64), X.indices, X.data
    missing = np.isnan(values)
    if missing.any():
        before = np.concatenate([[0], np.cumsum(~missing)])
        starts, features, values = before[starts], features[~missing], values[~missing]
    if not values.flags.writeable:  # as in `complete_rows`
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


def largest_allowed(Y: NDArray[Any]) -> float:
    """Values of rows beyond which their squares would overflow."""
    return float(np.sqrt(np.finfo(Y.dtype).max / max(Y.shape[-1], 1)))


def check_finite(Y: NDArray[Any], first_row: int = 0, squares: bool = True) -> None:
    """Refuse infinity and, with `squares`, values whose squares would overflow."""
    infinite = np.isinf(Y)
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        where = f" at row {first_row + row}, column {column} of this block" if len(Y) > 1 else ""
        raise UnusableError(
            f"contains infinity{where}. Replace infinite values, by NaN if they are unknown."
        )
    largest = float(np.nanmax(np.abs(Y), initial=0.0))
    if squares and largest > largest_allowed(Y):
        raise UnusableError(
            f"contains values up to {largest:.3g}, too large for {Y.dtype} beside what the model "
            f"was started with. Rescale X, or fit a new model to data of this size."
        )
