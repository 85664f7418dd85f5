"""Several files as one stream: one file after the other, or shuffled."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..streams.base import DataError, rows_per_block
from ..streams.grouped import GroupedSource
from ..streams.row_times import RowTimes
from .opening import open_file
from .reading import Reading
from .registry import TableSource


class MultiFileSource(GroupedSource):
    """The rows of several files that have the same features.

    Parameters
    ----------
    paths : sequence of path
    reading : Reading
        How to read each of them.
    """

    worth_prefetching = True
    time_column: str | None = None
    zoned: bool = False

    def __init__(self, paths: Sequence[Path], reading: Reading) -> None:
        self.paths, self.reading = list(paths), reading
        self._files = [open_file(path, reading) for path in paths]
        first = self._files[0]
        for file in self._files[1:]:
            if (file.n_features, file.feature_names) != (first.n_features, first.feature_names):
                raise DataError(f"{file.name}: other columns than {first.name}.", "columns")
        self.name = first.name if len(paths) == 1 else f"{first.name} and {len(paths) - 1} more"
        self.n_features, self.feature_names = first.n_features, first.feature_names
        self.dtype = np.result_type(*(file.dtype for file in self._files))
        self.notes = tuple(note for file in self._files for note in file.notes)
        if len(paths) == 1:  # several files need not be consecutive in time
            self.time_column, self.zoned = first.time_column, first.zoned
        lengths = [file.n_rows for file in self._files]
        self.n_rows = None if None in lengths else sum(length or 0 for length in lengths)
        self.groups = [
            (at, group) for at, file in enumerate(self._files) for group in _groups(file)
        ]

    def row_times(self) -> RowTimes | None:
        """See `Source.row_times`."""
        return None if self.time_column is None else self._files[0].row_times()

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return len(self.groups)

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        at, part = self.groups[group]
        for rows in read_group(self._files[at], part):
            yield rows[skip:].astype(self.dtype, copy=False)
            skip = max(skip - len(rows), 0)

    def close(self) -> None:
        """See `Source.close`."""
        for file in self._files:
            file.close()


def read_group(file: TableSource, group: int) -> Iterator[NDArray[Any]]:
    """The rows of one group of a file; a file without groups counts as one."""
    if isinstance(file, GroupedSource):
        yield from file.read(group, 0)
        return
    length = rows_per_block(file.n_features, file.dtype, 1)
    for block in file.blocks(length, False, np.random.RandomState(0)):
        yield block.rows


def _groups(file: TableSource) -> range:
    return range(file.n_groups() if isinstance(file, GroupedSource) else 1)
