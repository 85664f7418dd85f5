"""A stream of the rows, or blocks of rows, of an iterator."""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import DataError
from .blocks import as_rows
from .grouped import GroupedSource


class IteratorSource(GroupedSource):
    """Rows or blocks of rows from an iterator: one pass, in their order.

    Missing values are NaN, None, masked, or absent from a sparse block.
    """

    name = "the iterator"
    rereadable = False

    def __init__(self, items: Iterator[Any]) -> None:
        try:
            first = as_rows(next(items), self.name)
        except StopIteration:
            raise DataError("The iterator yields no rows.") from None
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
            rows = as_rows(item, self.name)
            if rows.shape[1] != self.n_features:
                raise DataError(
                    f"Row {done + 1} of the iterator has {rows.shape[1]} values instead of "
                    f"{self.n_features}."
                )
            self.check_finite_rows(rows, done)
            done += len(rows)
            if done > skip:
                part = rows[max(0, skip - (done - len(rows))) :]
                with np.errstate(over="ignore"):  # infinite then, which the model refuses
                    part = part.astype(self.dtype, copy=False)
                yield part

    def fraction(self, position: Any) -> float | None:
        """See `Source.fraction`: unknown."""
        return None
