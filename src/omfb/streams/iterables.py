"""A stream of whatever an iterator brings: rows, or blocks of rows."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from .base import DataError, GroupedSource


class IteratorSource(GroupedSource):
    """Rows or blocks of rows from an iterator, once, in the order they come.

    Missing values are NaN or None, or what a sparse block does not store.
    """

    name = "the iterator"
    rereadable = False

    def __init__(self, items: Iterator[Any]) -> None:
        try:
            first = _rows(next(items))
        except StopIteration:
            raise DataError("The iterator brings no rows.") from None
        self._items = chain([first], items)
        self.n_features = first.shape[1]
        self.dtype = first.dtype

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return 1

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        done = 0
        for item in self._items:
            rows = _rows(item)
            if rows.shape[1] != self.n_features:
                raise DataError(
                    f"Row {done + 1} of the iterator has {rows.shape[1]} values instead of "
                    f"{self.n_features}."
                )
            done += len(rows)
            if done > skip:
                part = rows[max(0, skip - (done - len(rows))) :]
                yield part.astype(self.dtype, copy=False)

    def fraction(self, position: Any) -> float | None:
        """Nobody knows."""
        return None


def _rows(item: Any) -> NDArray[Any]:
    if scipy.sparse.issparse(item):
        item = item.tocoo()
        dense = np.full(item.shape, np.nan, item.dtype if item.dtype.kind == "f" else np.float64)
        dense[item.row, item.col] = item.data
        item = dense
    rows = item if getattr(item, "dtype", None) == np.float32 else np.asarray(item, np.float64)
    if rows.ndim not in (1, 2):
        raise DataError(
            f"The iterator brings something of {rows.ndim} dimensions. "
            f"Bring rows (n_features,) or blocks of them (n_rows, n_features)."
        )
    return np.atleast_2d(rows)
