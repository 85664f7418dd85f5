"""Parquet."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._columnar import ColumnarFile, ColumnarFormat, matrix

# A row group up to this size is assembled from a few columns at a time: reading all of them at once
# needs several times its size, because pyarrow keeps each column's page in two forms.
GROUP_BYTES = 200 << 20
PART_BYTES = 100 << 20
COLUMNS_AT_ONCE, BATCH_ROWS = 32, 1 << 12
# pyarrow reads a column in parts of this size instead of at once.
BUFFER_BYTES = 1 << 16


class ParquetFile:
    """See `ColumnarFile`."""

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        self._file = parquet.ParquetFile(path, pre_buffer=False, buffer_size=BUFFER_BYTES)
        self.schema = self._file.schema_arrow
        self.n_rows: int | None = self._file.metadata.num_rows
        self.n_groups: int = self._file.num_row_groups

    def rows_before(self, group: int) -> int:
        """See `ColumnarFile.rows_before`."""
        return sum(self._file.metadata.row_group(i).num_rows for i in range(group))

    def batches(self, group: int, at_once: int) -> Iterator[Any]:
        """See `ColumnarFile.batches`."""
        yield from self._file.iter_batches(at_once, row_groups=[group])

    def pieces(
        self, group: int, at_once: int, fields: list[str], dtype: np.dtype[Any]
    ) -> Iterator[NDArray[Any]]:
        """See `ColumnarFile.pieces`."""
        n_rows = self._file.metadata.row_group(group).num_rows
        if len(fields) <= COLUMNS_AT_ONCE or n_rows * len(fields) * dtype.itemsize > GROUP_BYTES:
            for batch in self._file.iter_batches(at_once, row_groups=[group], columns=fields):
                yield matrix(batch, dtype)
            return
        n_parts = -(-n_rows * len(fields) * dtype.itemsize // PART_BYTES)
        length = -(-n_rows // n_parts)
        for start in range(0, n_rows, length):
            yield self._part(group, range(start, min(start + length, n_rows)), fields, dtype)

    def _part(
        self, group: int, which: range, fields: list[str], dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        """Some rows of a group, from a few columns at a time."""
        import pyarrow

        rows = np.empty((len(which), len(fields)), dtype)
        for first in range(0, len(fields), COLUMNS_AT_ONCE):
            some, at = fields[first : first + COLUMNS_AT_ONCE], 0
            for batch in self._file.iter_batches(BATCH_ROWS, row_groups=[group], columns=some):
                begin, end = max(at, which.start), min(at + batch.num_rows, which.stop)
                if begin < end:
                    part = matrix(batch.slice(begin - at, end - begin), dtype)
                    target = rows[begin - which.start : end - which.start]
                    target[:, first : first + len(some)] = part
                at += batch.num_rows
                if at >= which.stop:
                    break
            if at < which.stop:
                raise ValueError(f"{at} rows where {which.stop} are announced")
            pyarrow.default_memory_pool().release_unused()
        return rows

    def values(self, group: int, field: str) -> Iterator[Any]:
        """See `ColumnarFile.values`."""
        for batch in self._file.iter_batches(row_groups=[group], columns=[field]):
            yield batch.column(0)

    def first_values(self, field: str, count: int) -> Any:
        """See `ColumnarFile.first_values`."""
        batch = next(self._file.iter_batches(count, row_groups=[0], columns=[field]))
        return batch.column(0)

    def close(self) -> None:
        """See `ColumnarFile.close`."""
        self._file.close()


class Parquet(ColumnarFormat):
    """A table by row groups."""

    name = "Parquet"
    endings = (".parquet", ".pq")
    takes_batches = True

    def open_file(self, path: Path) -> ColumnarFile:
        """See `ColumnarFormat.open_file`."""
        return ParquetFile(path)

    def batch_writer(self, stream: Any, schema: Any) -> Any:
        """See `Format.batch_writer`."""
        from pyarrow import parquet

        return parquet.ParquetWriter(stream, schema)
