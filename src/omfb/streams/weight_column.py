"""A source one column of which holds the weights of its rows."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.weighted import ALLOWED, WeightedRows, are_weights
from .base import Block, DataError, Position, Source
from .wrapped import WrappedSource


class WeightColumnSource(WrappedSource):
    """The rows of another source without a column, which holds their weights.

    Rows of weight 0 are left out, which those that have times must not be.

    Parameters
    ----------
    source : Source
    column : str
        A name, or a number from 1 on.
    """

    def __init__(self, source: Source, column: str) -> None:
        if source.is_sparse:
            raise DataError(f"{source.name} is a sparse matrix, which has no column of weights.")
        super().__init__(source)
        self._column = column
        self._at = _position(source, column)
        self._others = np.delete(np.arange(source.n_features), self._at)
        self.n_features = len(self._others)
        if self.n_features == 0:
            raise DataError(f"{source.name} has no columns besides that of the weights.")
        names = source.feature_names
        self.feature_names = None if names is None else [names[at] for at in self._others.tolist()]

    def _changed(self, block: Block) -> Iterator[Block]:
        weighted, kept = self._weighted(block.rows, block.after)
        if len(weighted):  # a block is shorter, or left out, where rows have weight 0
            numbers = None if block.numbers is None else block.numbers[kept]
            yield Block(weighted, block.after, numbers)

    def _weighted(self, rows: Any, after: Position) -> tuple[WeightedRows, NDArray[np.int64]]:
        """Rows with their weights, and which rows of the source they are."""
        weights = rows[:, self._at].astype(np.float64)
        bad = np.flatnonzero(~are_weights(weights))
        if len(bad):
            number = self._source.row_number(len(rows), after, int(bad[0]))
            where = "a row" if number is None else f"row {number + 1}"
            value = weights[bad[0]]
            held = "no weight" if np.isnan(value) else f"the weight {value:g}"
            raise DataError(
                f"{self.name}: {where} has {held} in column {self._column!r}. Weights are "
                f"{ALLOWED}."
            )
        kept = np.flatnonzero(weights)
        if len(kept) < len(weights) and self.time_column is not None:
            raise DataError(
                f"{self.name}: rows have the weight 0 in column {self._column!r}, but come at "
                f"times. Leave them out of the file, or empty their cells."
            )
        values = np.ascontiguousarray(rows[np.ix_(kept, self._others)])
        return WeightedRows(values, weights[kept]), kept

    def fingerprint(self) -> dict[str, Any]:
        """See `Source.fingerprint`."""
        return {**super().fingerprint(), "n_features": self.n_features, "weights": self._at}

    def row_number(self, block_length: int, position: Position, at: int) -> int | None:
        """See `Source.row_number`: unknown, as rows of weight 0 are left out."""
        return None


def _position(source: Source, column: str) -> int:
    """Where a column stands among the features."""
    names = source.feature_names
    if names is not None and column in names:
        return names.index(column)
    if names is None and column.isdigit() and 1 <= int(column) <= source.n_features:
        return int(column) - 1
    known = f"{source.n_features} columns without names" if names is None else ", ".join(names[:5])
    raise DataError(
        f"{source.name} has no column {column!r} of numbers to read weights from (it has {known}"
        f"{', …' if names is not None and len(names) > 5 else ''})."
    )
