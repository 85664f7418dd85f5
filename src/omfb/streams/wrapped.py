"""A source that changes the rows of another one."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np

from .base import Block, Blocks, Position, Source
from .row_times import RowTimes

COPIED = (
    "name", "n_features", "feature_names", "column_names", "dtype", "n_rows", "share",
    "rereadable", "worth_prefetching", "path", "notes", "times", "time_index", "time_column",
    "zoned",
)  # fmt: skip


class WrappedSource(Source):
    """Another source, whose blocks `_changed` changes; positions are those of that source.

    Parameters
    ----------
    source : Source
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        for name in COPIED:
            setattr(self, name, getattr(source, name))

    def _changed(self, block: Block) -> Iterator[Block]:
        """What becomes of a block: one block, or none."""
        raise NotImplementedError

    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Blocks:
        """See `Source.blocks`."""
        self._source.on_idle = self.on_idle
        with closing(self._source.blocks(length, shuffle, rng, position)) as blocks:
            for block in blocks:
                yield from self._changed(block)

    def row_times(self) -> RowTimes | None:
        """See `Source.row_times`."""
        return super().row_times() if self.times is not None else self._source.row_times()

    def fraction(self, position: Position) -> float | None:
        """See `Source.fraction`."""
        return self._source.fraction(position)

    def fingerprint(self) -> dict[str, Any]:
        """See `Source.fingerprint`."""
        return self._source.fingerprint()

    def starts(self, count: int) -> list[Position]:
        """See `Source.starts`."""
        return self._source.starts(count)

    def check_position(self, position: Position) -> None:
        """See `Source.check_position`."""
        self._source.check_position(position)

    def row_number(self, block_length: int, position: Position, at: int) -> int | None:
        """See `Source.row_number`."""
        return self._source.row_number(block_length, position, at)

    def close(self) -> None:
        """See `Source.close`."""
        self._source.close()
