"""Rows with missing entries as lists of entries; Gram matrices and inverses of precisions."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .small import SMALLEST_PRECISION, invert
from .workspace import aligned_copy

Matrix = NDArray[np.float64]


class Rows(NamedTuple):
    """Rows with missing entries: row t observes features[starts[t]:starts[t+1]], in order."""

    starts: NDArray[np.int64]
    features: NDArray[np.int32]
    values: NDArray[Any]

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def n_entries(self) -> int:
        """How many entries are observed."""
        return len(self.values)

    def with_values(self, values: NDArray[Any]) -> "Rows":
        """Other values at the same places."""
        return Rows(self.starts, self.features, values)

    def part(self, first: int, last: int) -> "Rows":
        """Rows first to last, without copying an entry."""
        begin, end = self.starts[first], self.starts[last]
        starts = self.starts[first : last + 1] - begin
        return Rows(starts, self.features[begin:end], self.values[begin:end])

    def take(self, chosen: NDArray[np.int64]) -> "Rows":
        """The chosen rows, in that order."""
        counts = np.diff(self.starts)[chosen]
        starts = np.concatenate([[0], np.cumsum(counts)])
        entries = np.arange(starts[-1]) + np.repeat(self.starts[chosen] - starts[:-1], counts)
        return Rows(starts, self.features[entries], self.values[entries])


def row_squares(Y: NDArray[Any]) -> Matrix:
    """yᵀy of each row; finite only if all its entries are."""
    return np.matmul(Y[:, None, :], Y[:, :, None])[:, 0, 0].astype(np.float64, copy=False)


def gram(C: NDArray[Any]) -> Matrix:
    """CᵀC in float64, in pieces where C is float32: its products need the longer sums."""
    if C.dtype == np.float64:
        return C.T @ C
    total = np.zeros((C.shape[1], C.shape[1]))
    for start in range(0, len(C), 8192):
        piece = C[start : start + 8192].astype(np.float64)
        total += piece.T @ piece
    return total


def inverse_of(S: Matrix) -> Matrix:
    """The inverse of a precision matrix; zeros if it is none, as a damaged file may hold."""
    if not (S.diagonal() > 0.0).all():
        return np.zeros_like(S)
    inverse = aligned_copy(S)
    invert(inverse, SMALLEST_PRECISION)
    return inverse


def check_finite_step(*small: Matrix) -> None:
    """Refuse a step whose codes, gains, Gram or precision matrix overflow."""
    if not all(np.isfinite(array).all() for array in small):
        raise ValueError(
            "X holds values too large or too small beside what the model has learned: its codes "
            "overflow. Rescale X, or fit a new model to data of this size."
        )
