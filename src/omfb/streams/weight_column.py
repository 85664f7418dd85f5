"""A source one column of which holds the weights of its rows."""

from contextlib import closing
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.weighted import ALLOWED, WeightedRows, are_weights
from .base import Block, Blocks, DataError, Position, Source
from .row_times import RowTimes

COPIED = (
    "name", "column_names", "dtype", "n_rows", "rereadable", "worth_prefetching", "path", "notes",
    "times", "time_index", "time_column", "zoned", "share",
)  # fmt: skip


class WeightColumnSource(Source):
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
        self._source, self._column = source, column
        self._at = _position(source, column)
        self._others = np.delete(np.arange(source.n_features), self._at)
        for name in COPIED:
            setattr(self, name, getattr(source, name))
        self.n_features = len(self._others)
        if self.n_features == 0:
            raise DataError(f"{source.name} has no columns besides that of the weights.")
        names = source.feature_names
        self.feature_names = None if names is None else [names[at] for at in self._others.tolist()]

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Blocks:
        """See `Source.blocks`; blocks are shorter where rows have weight 0."""
        self._source.on_idle = self.on_idle
        with closing(self._source.blocks(length, shuffle, rng, position)) as blocks:
            for rows, after, numbers in blocks:
                weighted, kept = self._weighted(rows, after)
                if len(weighted):
                    yield Block(weighted, after, None if numbers is None else numbers[kept])

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

    def row_times(self) -> RowTimes | None:
        """See `Source.row_times`."""
        return self._source.row_times()

    def fraction(self, position: Position) -> float | None:
        """See `Source.fraction`."""
        return self._source.fraction(position)

    def fingerprint(self) -> dict[str, Any]:
        """See `Source.fingerprint`."""
        return {
            **self._source.fingerprint(), "n_features": self.n_features, "weights": self._at,
        }  # fmt: skip

    def starts(self, count: int) -> list[Position]:
        """See `Source.starts`."""
        return self._source.starts(count)

    def check_position(self, position: Position) -> None:
        """See `Source.check_position`."""
        self._source.check_position(position)

    def row_number(self, block_length: int, position: Position, at: int) -> int | None:
        """See `Source.row_number`: unknown, as rows of weight 0 are left out."""
        return None

    def close(self) -> None:
        """See `Source.close`."""
        self._source.close()


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
