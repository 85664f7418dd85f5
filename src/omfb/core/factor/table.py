"""A whole table as lists of entries, by row and by feature, with weights if it has any."""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg.rows import Rows
from .stats import Vector
from .whiten import by_feature, pattern_of

# Rows whose codes' moments are held at a time.
BLOCK = 256
NO_WEIGHTS = np.empty(0)


class Table:
    """A table's entries by row and by feature, and the lists that sums over them go through.

    What is listed is what is missing, if that is less than what is observed; `sign` is −1 then.

    Parameters
    ----------
    rows : Rows
    n_features : int
    weights : ndarray of shape (n,) or None
        How often each row occurs.
    precisions : ndarray of shape (n_entries,) or None
        Weights of the entries.

    Attributes
    ----------
    columns : Rows
        The entries by feature.
    sign : float
    listed : Rows
    blocks : list of Rows
        By feature, the rows of each block that are listed, counted from its first.
    """

    def __init__(
        self, rows: Rows, n_features: int, weights: Vector | None = None,
        precisions: Vector | None = None,
    ) -> None:  # fmt: skip
        self.rows, self.n_features = rows, n_features
        self.weights, self.precisions = weights, precisions
        self.columns = by_feature(rows, n_features)
        n, missing = len(rows), len(rows) * n_features - rows.n_entries
        self.listed, self.sign = rows, 1.0
        if precisions is not None:
            self.listed = rows.with_values(precisions)
        elif missing < rows.n_entries:
            seen = np.zeros((n, n_features), bool)
            seen[np.repeat(np.arange(n), np.diff(rows.starts)), rows.features] = True
            starts, features = pattern_of(~seen)
            self.listed, self.sign = Rows(starts, features, np.ones(len(features))), -1.0
        self.blocks = [
            by_feature(self.listed.part(first, min(first + BLOCK, n)), n_features)
            for first in range(0, n, BLOCK)
        ]

    @property
    def total(self) -> float:
        """The number of rows, by their weights."""
        return float(len(self.rows)) if self.weights is None else float(self.weights.sum())

    @cached_property
    def values(self) -> NDArray[Any]:
        """Values of the entries by row, times their weights."""
        return self.rows.values if self.precisions is None else self.precisions * self.rows.values

    @cached_property
    def numbers(self) -> Vector:
        """How many entries each feature has, by the weights of their rows."""
        return self._sums(self.weights, None)

    @cached_property
    def information(self) -> Vector:
        """The sum of the weights of each feature's entries and their rows."""
        return self._sums(self.weights, self.precisions)

    @cached_property
    def column_weights(self) -> Vector:
        """Weights of the entries by feature, times those of their rows; empty if all are 1."""
        if self.weights is None and self.precisions is None:
            return NO_WEIGHTS
        each = self._entry_weights(self.weights, self.precisions)
        return by_feature(self.rows.with_values(each), self.n_features).values

    def listed_weights(self, listed: Rows) -> NDArray[Any]:
        """Weights of entries in one of the lists; empty if all are 1."""
        return NO_WEIGHTS if self.precisions is None else listed.values

    def part(self, kept: NDArray[np.bool_]) -> "Table":
        """The table with some of its entries."""
        before = np.concatenate([[0], np.cumsum(kept)])
        rows = self.rows
        some = Rows(before[rows.starts], rows.features[kept], rows.values[kept])
        precisions = None if self.precisions is None else self.precisions[kept]
        return Table(some, self.n_features, self.weights, precisions)

    def take(self, chosen: NDArray[np.int64]) -> "Table":
        """Some of the rows."""
        precisions = self.precisions
        if precisions is not None:
            precisions = self.rows.with_values(precisions).take(chosen).values
        weights = None if self.weights is None else self.weights[chosen]
        return Table(self.rows.take(chosen), self.n_features, weights, precisions)

    def entry_weights(self) -> Vector:
        """Weights of the entries' rows, in the order of `rows`."""
        return self._entry_weights(self.weights, None)

    def _entry_weights(self, weights: Vector | None, precisions: Vector | None) -> Vector:
        each = np.ones(self.rows.n_entries) if precisions is None else precisions
        if weights is None:
            return each
        return each * np.repeat(weights, np.diff(self.rows.starts))

    def _sums(self, weights: Vector | None, precisions: Vector | None) -> Vector:
        if weights is None and precisions is None:
            return np.diff(self.columns.starts).astype(np.float64)
        each = self._entry_weights(weights, precisions)
        return np.bincount(self.rows.features, each, self.n_features).astype(np.float64)
