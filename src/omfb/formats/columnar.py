"""Streams of Parquet and Arrow files, by record batch, through pyarrow."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..streams.base import DataError, GroupedSource, rows_of, whole_file
from .columns import Columns, choose

PARQUET_ENDINGS = (".parquet", ".pq")
ARROW_ENDINGS = (".arrow", ".feather", ".ipc")
BATCH_BYTES = 1 << 23


class ColumnarSource(GroupedSource):
    """A Parquet file by row groups, or an Arrow file by record batches.

    The features are the columns of numbers, without what pandas kept as the index, unless they
    are chosen otherwise.
    """

    read_ahead = True

    def __init__(
        self, path: Path, columns: str | None = None, wanted: list[str] | None = None
    ) -> None:
        self.name = str(path)
        self.path = path
        self._file = open_columnar(path)
        schema = self._file.schema
        with whole_file(path, path.suffix, ValueError):  # notes of pandas that are no JSON
            self.chosen = _choose(self.name, schema, columns, wanted)
        self.n_columns = len(schema)
        names = schema.names
        self._fields = [names[i] for i in self.chosen]
        self.feature_names = list(self._fields)
        self.n_features = len(self.chosen)
        self.n_rows = self._file.n_rows
        self.dtype = _float_type([schema.field(i).type for i in self.chosen])

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return self._file.n_groups

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        for batch in self._file.batches(group, self.rows_at_once(), self._fields):
            if skip >= batch.num_rows:
                skip -= batch.num_rows
                continue
            yield matrix(batch.slice(skip), self.dtype)
            skip = 0

    def rows_at_once(self) -> int:
        """Rows of a record batch that is small beside memory."""
        return max(1, BATCH_BYTES // (self.n_features * self.dtype.itemsize))

    def close(self) -> None:
        """See `Source.close`."""
        self._file.close()


class ParquetFile:
    """What both kinds of file offer, for Parquet."""

    def __init__(self, path: Path) -> None:
        from pyarrow import parquet

        self._path = path
        self._file = parquet.ParquetFile(path, pre_buffer=False)
        self.schema = self._file.schema_arrow
        self.n_rows = self._file.metadata.num_rows
        self.n_groups = self._file.num_row_groups

    def batches(self, group: int, at_once: int, fields: list[str] | None) -> Iterator[Any]:
        """Record batches of a group."""
        with whole_file(self._path, "Parquet", *arrow_faults()):
            yield from self._file.iter_batches(at_once, row_groups=[group], columns=fields)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ArrowFile:
    """What both kinds of file offer, for Arrow's own (Feather 2) format."""

    def __init__(self, path: Path) -> None:
        import pyarrow

        self._path = path
        # Not mapped: the pages of a map would count as memory of the process, all of them.
        self._stream = pyarrow.OSFile(str(path))
        self._file = pyarrow.ipc.open_file(self._stream)
        self.schema = self._file.schema
        self.n_rows = None
        self.n_groups = self._file.num_record_batches

    def batches(self, group: int, at_once: int, fields: list[str] | None) -> Iterator[Any]:
        """Record batches of a group."""
        with whole_file(self._path, "Arrow", *arrow_faults()):
            batch = self._file.get_batch(group)
        batch = batch if fields is None else batch.select(fields)
        for start in range(0, batch.num_rows, at_once):
            yield batch.slice(start, at_once)

    def close(self) -> None:
        """Close the file."""
        self._stream.close()


def open_columnar(path: Path) -> Any:
    """The file, opened; an error says what it needs."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(
            f"{path}: Parquet and Arrow files need pyarrow: pip install 'omfb[files]'"
        ) from error
    path.open("rb").close()  # its errors are clearer than pyarrow's
    if path.suffix.lower() in PARQUET_ENDINGS:
        with whole_file(path, "Parquet", *arrow_faults()):
            return ParquetFile(path)
    with whole_file(path, "Arrow", *arrow_faults()):
        return ArrowFile(path)


def arrow_faults() -> tuple[type[Exception], ...]:
    """What pyarrow raises for a damaged file; names that are no text are a ValueError."""
    import pyarrow

    return pyarrow.ArrowException, OSError, ValueError


def matrix(batch: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A record batch as rows of floats, NaN where null."""
    kinds = set(batch.schema.types)
    if len(kinds) == 1 and kinds.pop().to_pandas_dtype() == dtype.type:
        with suppress(AttributeError, TypeError):  # pyarrow before 17
            rows: NDArray[Any] = batch.to_tensor(null_to_nan=True, row_major=True).to_numpy()
            return rows
    return rows_of([_floats(column) for column in batch.columns], dtype)


def _floats(column: Any) -> NDArray[Any]:
    import pyarrow

    if not pyarrow.types.is_floating(column.type):
        column = column.cast(pyarrow.float64(), safe=False)
    floats: NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return floats


def is_number(kind: Any) -> bool:
    """Whether a column of this type holds numbers."""
    from pyarrow import types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind))


def _choose(name: str, schema: Any, columns: str | None, wanted: list[str] | None) -> list[int]:
    names = schema.names
    table = Columns(name, len(names), names)
    if columns is not None or wanted is not None:
        chosen = choose(table, columns, wanted)
    else:
        kept = (schema.pandas_metadata or {}).get("index_columns", [])
        index = {column for column in kept if isinstance(column, str)}
        chosen = [
            i for i, field in enumerate(schema) if is_number(field.type) and field.name not in index
        ]
    if not chosen:
        raise DataError(f"{name}: no column of numbers to learn from.")
    if len(set(names)) < len(names):
        raise DataError(f"{name}: two columns have the same name. Rename one.")
    for i in chosen:
        if not is_number(schema.field(i).type):
            raise DataError(
                f"{name}: column {names[i]!r} is of type {schema.field(i).type}, not of "
                f"numbers. Leave it out (--columns)."
            )
    return chosen


def _float_type(kinds: list[Any]) -> np.dtype[Any]:
    import pyarrow

    small = (pyarrow.float32(), pyarrow.float16())
    return np.dtype(np.float32 if all(kind in small for kind in kinds) else np.float64)
