"""Cut rows into pieces for the kernels: complete rows, rows with equal patterns, other rows."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .finite import find_infinity, infinity_problem
from .linalg.observed import compressed
from .linalg.patterns import runs
from .linalg.rows import Matrix, Rows, row_squares

# Rows with missing entries per kernel call: enough to hide the overhead of a call.
MISSING_ROWS = 256
# Rows with equal patterns are learned faster one by one than as a block if they are at most this
# many, or need fewer multiply-adds than this.
MAX_SINGLE_ROWS = 3
WORTH_A_BLOCK = 40_000


class UnusableError(ValueError):
    """A problem with X; callers may replace "X" in the message by the name of their data.

    Parameters
    ----------
    problem : str
        The message without its subject, as in "contains infinity."
    """

    def __init__(self, problem: str) -> None:
        super().__init__(f"X {problem}")
        self.problem = problem

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem,)  # for errors raised in other processes


class UnknownCovariateError(UnusableError):
    """A covariate is missing; its row and feature are counted from 0."""

    def __init__(self, row: int | None, feature: int, names: Sequence[str] | None = None) -> None:
        self.row, self.feature, self.names = row, feature, names
        name = f"column {feature + 1}" if names is None else f"column {names[feature]!r}"
        place = name if row is None else f"row {row + 1}, {name}"
        super().__init__(
            f"misses a covariate at {place} (the first is 1). Covariates must always be known: "
            f"fill it in, or leave the column out of covariates."
        )

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.row, self.feature, self.names)


def check_known(rows: Any, features: Sequence[int], names: Sequence[str] | None = None) -> None:
    """Refuse rows in which some features, which must always be known, are missing.

    Parameters
    ----------
    rows : ndarray or scipy.sparse matrix of shape (n_rows, n_features)
    features : sequence of int
    names : sequence of str or None
        Of all features, for the message.
    """
    if not features:
        return
    columns = rows[:, list(features)]
    missing = np.isnan(dense_with_holes(columns))
    if missing.any():
        row, at = np.argwhere(missing)[0]
        raise UnknownCovariateError(int(row), features[int(at)], names)


def too_large() -> UnusableError:
    """The error for rows whose values overflow in the model's units."""
    return UnusableError(
        "contains values that are too large compared with the data the model has learned. "
        "Rescale X, or fit a new model to data of this size."
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
        """Number of observed entries: all of them."""
        return self.Y.size


@dataclass(frozen=True, slots=True)
class Alike:
    """Rows that all observe the same features; `Y` has only these columns."""

    Y: NDArray[Any]
    features: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def n_entries(self) -> int:
        """Number of observed entries."""
        return self.Y.size

    def rows(self, first: int) -> Rows:
        """The rows from `first` on, each with its own list of features."""
        return complete_rows(self.Y[first:], self.features)


def pieces(X: Any, length: int) -> Iterator[Complete | Rows]:
    """Yield X in order, `length` rows at a time (the last piece may be shorter)."""
    if scipy.sparse.issparse(X):
        rows = sparse_rows(X)
        for start in range(0, len(rows), length):
            yield rows.part(start, min(start + length, len(rows)))
        return
    for start in range(0, len(X), length):
        Y = X[start : start + length]
        # Rows with gaps between them in memory need no copy: BLAS takes a stride.
        Y = Y if Y.strides[1] == Y.itemsize and Y.strides[0] > 0 else np.ascontiguousarray(Y)
        # If the first row has missing entries, do not look at the others.
        if is_complete(Y[0]):
            squares = row_squares(Y)
            if math.isfinite(squares.sum()):
                yield Complete(Y, squares)
                continue
        yield dense_rows(Y, first_row=start)


def is_complete(y: NDArray[Any]) -> bool:
    """Whether a row has no missing or infinite entries, and no squares that overflow.

    Does not use BLAS, whose threads would then spin on the cores that ours use.
    """
    return math.isfinite(np.einsum("i,i->", y, y))


def alike(rows: Rows, r: int) -> Iterator[Alike | Rows]:
    """Yield rows in order, grouped where consecutive rows observe the same features."""
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
    """The observed entries of rows in which NaN is missing; infinity raises an error."""
    Y = np.ascontiguousarray(X)
    if len(Y) <= MAX_SINGLE_ROWS and is_complete(Y.ravel()):
        return complete_rows(Y, np.arange(Y.shape[1], dtype=np.int32))
    rows = compressed(Y if Y.flags.writeable else Y.copy())  # see `complete_rows`
    values = rows.values
    if not max(values.max(initial=0.0), -values.min(initial=0.0)) <= largest_allowed(Y):
        check_finite(Y, first_row)
    return rows


def complete_rows(Y: NDArray[Any], features: NDArray[np.int32]) -> Rows:
    """All entries of rows that observe exactly the given features."""
    n, m = Y.shape
    features = np.tile(features, n) if n > 1 else features
    # Numba compiles another version of the kernel for read-only arrays: avoid that.
    values = Y.ravel() if Y.flags.writeable else Y.flatten()
    return Rows(np.arange(0, n * m + 1, m, dtype=np.int64), features, values)


def sparse_rows(X: Any, squares: bool = True) -> Rows:
    """The observed entries of a sparse matrix; absent entries and NaN are missing."""
    X = canonical(X)
    _refuse_infinity(X)
    if squares:
        _refuse_overflow(X.data[None])
    starts, features, values = X.indptr.astype(np.int64), X.indices, X.data
    missing = np.isnan(values)
    if missing.any():
        before = np.concatenate([[0], np.cumsum(~missing)])
        starts, features, values = before[starts], features[~missing], values[~missing]
    if not values.flags.writeable:  # as in `complete_rows`
        values = values.copy()
    return Rows(starts, features.astype(np.int32, copy=not features.flags.writeable), values)


def canonical(X: Any) -> Any:
    """A CSR matrix with sorted entries and no duplicates; X itself is not changed."""
    X = X.tocsr()
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def sparse_with_holes(Y: Any) -> Any:
    """An array in which NaN is missing as a sparse matrix that does not store the NaN."""
    if scipy.sparse.issparse(Y):
        return Y
    rows, columns = np.nonzero(~np.isnan(Y))
    return scipy.sparse.csr_array((Y[rows, columns], (rows, columns)), shape=Y.shape)


def dense_with_holes(X: Any) -> NDArray[Any]:
    """A sparse matrix as an array with NaN where nothing is stored; arrays unchanged."""
    if not scipy.sparse.issparse(X):
        return X
    X = canonical(X).tocoo()
    dense = np.full(X.shape, np.nan, X.dtype)
    dense[X.row, X.col] = X.data
    return dense


def largest_allowed(Y: NDArray[Any]) -> float:
    """The largest value whose squares, summed over a row, do not overflow."""
    return float(np.sqrt(np.finfo(Y.dtype).max / max(Y.shape[-1], 1)))


def check_finite(Y: NDArray[Any], first_row: int = 0, squares: bool = True) -> None:
    """Raise an UnusableError for infinity and, with `squares`, for squares that overflow.

    Parameters
    ----------
    Y : ndarray of shape (n_samples, n_features)
    first_row : int
        Number (from 0) of the first row of Y in X, for the message.
    squares : bool
    """
    _refuse_infinity(Y, first_row)
    if squares:
        _refuse_overflow(Y)


def _refuse_overflow(Y: NDArray[Any]) -> None:
    largest = float(np.nanmax(np.abs(Y), initial=0.0))
    if largest > largest_allowed(Y):
        raise UnusableError(
            f"contains values up to {largest:.3g}, too large for {Y.dtype} compared with the data "
            f"the model was started with. Rescale X, or fit a new model to data of this size."
        )


def _refuse_infinity(X: Any, first_row: int = 0) -> None:
    where = find_infinity(X)
    if where is not None:
        raise UnusableError(infinity_problem(first_row + where[0], where[1]))
