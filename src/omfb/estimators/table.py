"""What an imputer remembers of the table that it was fitted to."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import dense_with_holes
from ..core.linalg.capacity import extended
from ..core.require import require
from .sentinels import Extremes, Suspect

Limits = NDArray[np.float64]
# Sparse blocks of more entries are not looked at for codes and limits.
MOST_ENTRIES = 1 << 22


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Facts about a fitted table, replaced as a whole.

    Attributes
    ----------
    columns : tuple or None
        Names of all columns, features or not; None if it had no names.
    incomplete : tuple of int
        Features that had missing entries.
    limits : ndarray of shape (2, n_features) or None
        The smallest and the largest number of each feature; (1, 0) if there was none. None if they
        are unknown.
    """

    columns: tuple[Any, ...] | None = None
    incomplete: tuple[int, ...] = ()
    limits: Limits | None = None

    def after(self, rows: Any) -> Self:
        """The facts once more rows have been learned from."""
        if self.limits is None:
            return self
        if scipy.sparse.issparse(rows) and rows.shape[0] == 1:
            return self._after_few(rows.indices, rows.data, rows.shape[1])
        if scipy.sparse.issparse(rows) and rows.shape[0] * rows.shape[1] > MOST_ENTRIES:
            return replace(self, limits=None)
        rows = dense_with_holes(rows)
        limits = self.limits
        if limits.shape[1] != rows.shape[1] or (limits[0] > limits[1]).any():
            limits = self.limits_of(rows.shape[1])
            limits = np.where(limits[0] <= limits[1], limits, np.array([[np.inf], [-np.inf]]))
        low = np.fmin(limits[0], np.fmin.reduce(rows, axis=0))
        high = np.fmax(limits[1], np.fmax.reduce(rows, axis=0))
        if np.array_equal(low, self.limits[0]) and np.array_equal(high, self.limits[1]):
            return self
        return replace(self, limits=_finite(np.array([low, high], np.float64)))

    def _after_few(self, features: NDArray[Any], values: NDArray[Any], n_features: int) -> Self:
        """The facts after a row of a few entries."""
        limits = self.limits
        assert limits is not None
        if limits.shape[1] < n_features:
            limits = extended(limits, n_features - limits.shape[1], [[1.0], [0.0]])
        low, high = limits[:, features]
        none = low > high
        low = np.fmin(np.where(none, np.inf, low), values)
        high = np.fmax(np.where(none, -np.inf, high), values)
        new = _finite(np.array([low, high], np.float64))
        if not np.array_equal(new, limits[:, features]):
            limits = limits.copy()
            limits[:, features] = new
        return self if limits is self.limits else replace(self, limits=limits)

    def limits_of(self, n_features: int) -> Limits:
        """The limits of so many features, of which streams may have added some since the fit."""
        assert self.limits is not None
        new = np.broadcast_to([[1.0], [0.0]], (2, n_features - self.limits.shape[1]))
        return np.hstack([self.limits, new])

    def of_features(self, kept: NDArray[np.int64]) -> Self:
        """The facts about some of the features, in their order."""
        place = {feature: at for at, feature in enumerate(kept.tolist())}
        incomplete = tuple(place[feature] for feature in self.incomplete if feature in place)
        limits = None if self.limits is None else self.limits_of(int(kept[-1]) + 1)[:, kept]
        return replace(self, incomplete=incomplete, limits=limits)

    def flags(self, names: list[str] | None) -> frozenset[str]:
        """Features that were only 0 and 1, of which booleans may come in rows by name."""
        if self.limits is None or names is None:
            return frozenset()
        low, high = self.limits_of(len(names))
        binary = (low >= 0.0) & (high <= 1.0) & (low <= high)
        return frozenset(np.array(names, dtype=object)[binary])

    def within_binary(self, values: NDArray[Any], integer: NDArray[np.bool_]) -> NDArray[Any]:
        """Values of integers that were only two neighbours, such as 0 and 1, within these."""
        if self.limits is None:
            return values
        low, high = self.limits_of(values.shape[-1])
        binary = integer & (high - low == 1.0)
        return np.where(binary, np.clip(values, low, high), values).astype(values.dtype)

    def header(self) -> dict[str, Any]:
        """The facts as JSON can hold them."""
        columns = self.columns
        named = columns is not None and all(type(column) is str for column in columns)
        return {
            "columns": list(columns or ()) if named else None,
            "incomplete": list(self.incomplete),
        }

    @classmethod
    def of_parts(cls, header: Any, limits: Any, n_features: int) -> Self:
        """The facts from a file; a ValueError if they cannot be."""
        columns, incomplete = header["columns"], header["incomplete"]
        if columns is not None:
            fit = type(columns) is list and all(type(column) is str for column in columns)
            require(fit, "its columns are not names")
            columns = tuple(columns)
        whole = type(incomplete) is list and all(type(at) is int for at in incomplete)
        require(whole and all(0 <= at < n_features for at in incomplete), "its missing entries")
        if limits is not None:
            require(limits.shape == (2, n_features) and limits.dtype == np.float64, "its limits")
        return cls(columns, tuple(incomplete), limits)


def with_flags(row: Mapping[Any, Any], flags: frozenset[str]) -> dict[Any, Any]:
    """A row by name with 0 and 1 in place of the booleans of some features."""
    return {
        name: float(value) if isinstance(value, bool | np.bool_) and name in flags else value
        for name, value in row.items()
    }


class TableWatch:
    """Looks at the rows of a fit: which features have missing entries, and numbers like codes."""

    def __init__(self, n_features: int) -> None:
        self._extremes = Extremes(n_features)
        self._incomplete = np.zeros(n_features, bool)
        self._knows_extremes = True

    def add(self, rows: Any) -> None:
        """Look at rows; NaN and absent entries of a sparse matrix are missing."""
        if scipy.sparse.issparse(rows):
            stored = rows.indices[~np.isnan(rows.data)]
            counts = np.bincount(stored, minlength=rows.shape[1])
            self._incomplete |= counts < rows.shape[0]
            if rows.shape[0] * rows.shape[1] > MOST_ENTRIES:
                self._knows_extremes = False
                return
            rows = dense_with_holes(rows)
        else:
            self._incomplete |= np.isnan(rows).any(axis=0)
        self._extremes.add(rows)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """What was found so far; see `Watch` of `omfb.learner.fit_stream`."""
        found: dict[str, NDArray[Any]] = {"watch.incomplete": self._incomplete.copy()}
        if self._knows_extremes:
            found["watch.limits"] = _finite(self._extremes.limits)
        return found

    def restore(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """Go on from what was found."""
        n_features = len(self._incomplete)
        if "watch.incomplete" not in tensors:
            return
        incomplete, limits = tensors["watch.incomplete"], tensors.get("watch.limits")
        require(incomplete.shape == (n_features,) and incomplete.dtype == np.bool_, "watch")
        self._incomplete |= incomplete
        self._knows_extremes = limits is not None
        if limits is not None:
            require(limits.shape == (2, n_features) and limits.dtype == np.float64, "watch")
            self._extremes.add(np.where(limits[0] <= limits[1], limits, np.nan))

    def facts(self, table: Table) -> Table:
        """A table with what was found in its rows."""
        limits = _finite(self._extremes.limits) if self._knows_extremes else None
        incomplete = tuple(np.flatnonzero(self._incomplete).tolist())
        return replace(table, incomplete=incomplete, limits=limits)

    def suspects(self) -> list[Suspect]:
        """Numbers that look like codes for missing values."""
        return self._extremes.suspects() if self._knows_extremes else []


def _finite(limits: Limits) -> Limits:
    """Limits, (1, 0) where there was no number: files hold finite numbers only."""
    known = limits[0] <= limits[1]
    return np.where(known, limits, np.array([[1.0], [0.0]]))
