"""Arrow IPC files (Feather 2)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._columnar import ColumnarFile, ColumnarFormat, matrix

# A record batch up to this size is read at once. Larger ones are read repeatedly, and only some
# rows and columns kept each time: a batch cannot be read in parts.
WHOLE_BYTES, PART_BYTES = 1 << 26, 1 << 25
# The rows of a file up to this size are counted when it is opened.
SMALL_BYTES = 1 << 23
# Assumed bytes of a text cell.
CELL_BYTES = 32


class ArrowFile:
    """See `ColumnarFile`."""

    def __init__(self, path: Path) -> None:
        import pyarrow

        # Not memory-mapped: all pages of a map would count as memory of the process.
        self._stream = pyarrow.OSFile(str(path))
        self._file = pyarrow.ipc.open_file(self._stream)
        self.schema = self._file.schema
        self.n_rows: int | None = None
        self.n_groups: int = self._file.num_record_batches
        self._widths = [_width(field.type) for field in self.schema]
        if self._stream.size() <= SMALL_BYTES:  # short tables: the number of passes depends on it
            self.n_rows = self.rows_before(self.n_groups)

    def rows_before(self, group: int) -> int:
        """See `ColumnarFile.rows_before`."""
        return sum(self._length(i) for i in range(group))

    def batches(self, group: int, at_once: int) -> Iterator[Any]:
        """See `ColumnarFile.batches`."""
        return self._batches(group, at_once, list(range(len(self.schema))))

    def pieces(
        self, group: int, at_once: int, fields: list[str], dtype: np.dtype[Any]
    ) -> Iterator[NDArray[Any]]:
        """See `ColumnarFile.pieces`."""
        positions = [self.schema.get_field_index(name) for name in fields]
        for batch in self._batches(group, at_once, positions):
            yield matrix(batch, dtype)

    def _batches(self, group: int, at_once: int, positions: list[int]) -> Iterator[Any]:
        width = sum(self._widths[i] for i in positions)
        n_rows = self._length(group)
        if n_rows * width <= WHOLE_BYTES:
            yield from _cut(self._some(group, positions), at_once)
            return
        length = max(at_once, PART_BYTES // max(width, 1))
        for start in range(0, n_rows, length):
            which = range(start, min(start + length, n_rows))
            part = self._part(group, positions, which, n_rows)
            yield from _cut(part, at_once)

    def _part(self, group: int, positions: list[int], which: range, n_rows: int) -> Any:
        """Some rows of a large batch, copied so that the rest can be freed."""
        import pyarrow

        columns: list[Any] = []
        rows = pyarrow.array(np.arange(which.start, which.stop))
        at_once = max(1, PART_BYTES // (n_rows * max(self._widths[i] for i in positions)))
        for first in range(0, len(positions), at_once):
            some = self._some(group, positions[first : first + at_once])
            columns += [column.take(rows) for column in some.columns]
            del some
            pyarrow.default_memory_pool().release_unused()
        schema = pyarrow.schema([self.schema.field(i) for i in positions])
        return pyarrow.record_batch(columns, schema=schema)

    def _some(self, group: int, positions: list[int]) -> Any:
        """A batch of some columns in the given order; the others are not read."""
        import pyarrow

        options = pyarrow.ipc.IpcReadOptions(included_fields=sorted(positions))
        batch = pyarrow.ipc.open_file(self._stream, options=options).get_batch(group)
        return batch.select([self.schema.names[i] for i in positions])

    def _length(self, group: int) -> int:
        """Rows of a batch, by reading its narrowest column."""
        narrow = int(np.argmin(self._widths))
        return int(self._some(group, [narrow]).num_rows)

    def values(self, group: int, field: str) -> Iterator[Any]:
        """See `ColumnarFile.values`."""
        yield self._some(group, [self.schema.get_field_index(field)]).column(0)

    def first_values(self, field: str, count: int) -> Any:
        """See `ColumnarFile.first_values`."""
        return self._some(0, [self.schema.get_field_index(field)]).column(0).slice(0, count)

    def close(self) -> None:
        """See `ColumnarFile.close`."""
        self._stream.close()


class Arrow(ColumnarFormat):
    """A table by record batches."""

    name = "Arrow"
    endings = (".arrow", ".feather", ".ipc")
    takes_batches = True

    def open_file(self, path: Path) -> ColumnarFile:
        """See `ColumnarFormat.open_file`."""
        return ArrowFile(path)

    def batch_writer(self, stream: Any, schema: Any) -> Any:
        """See `Format.batch_writer`."""
        import pyarrow

        return pyarrow.ipc.new_file(stream, schema)


def _cut(batch: Any, at_once: int) -> Iterator[Any]:
    for start in range(0, batch.num_rows, at_once):
        yield batch.slice(start, at_once)


def _width(kind: Any) -> int:
    """Approximate bytes of a value of a type."""
    try:
        return max(1, int(kind.bit_width) // 8)
    except ValueError:  # variable width
        return CELL_BYTES
