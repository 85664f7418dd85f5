"""Common code of Parquet and Arrow: typed columns in record batches, through pyarrow."""

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import closing, suppress
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..core.finite import find_infinity
from ..streams.arrays import with_missing
from ..streams.base import DataError, rows_of, whole_file
from ..streams.grouped import GroupedSource
from ._dates import rising
from .columns import Columns, choose
from .npy import to_whole
from .reading import Reading
from .registry import Fill, Format, TableSource, TimeColumn, Times, Writer

BATCH_BYTES = 1 << 23
# Number of dates that decide whether rows are in time order.
SAMPLE_VALUES = 200


class ColumnarFile(Protocol):
    """A file of groups of rows: row groups or record batches."""

    schema: Any
    n_rows: int | None
    n_groups: int

    def rows_before(self, group: int) -> int:
        """Number of rows of the groups before this one."""

    def batches(self, group: int, at_once: int) -> Iterator[Any]:
        """Record batches of all columns of a group, of at most `at_once` rows."""

    def pieces(
        self, group: int, at_once: int, fields: list[str], dtype: np.dtype[Any]
    ) -> Iterator[NDArray[Any]]:
        """The rows of a group, in pieces of any length."""

    def values(self, group: int, field: str) -> Iterator[Any]:
        """The values of one column of a group, in Arrow arrays of any length."""

    def first_values(self, field: str, count: int) -> Any:
        """The first values of a column, fewer where the first group has fewer."""

    def close(self) -> None:
        """Close the file."""


class ColumnarFormat(Format):
    """Parquet or Arrow: all columns are kept, and integers stay integers."""

    @abstractmethod
    def open_file(self, path: Path) -> ColumnarFile:
        """The file, opened by pyarrow."""

    def open(self, path: Path, reading: Reading) -> TableSource:
        """See `Format.open`."""
        return ColumnarSource(self, path, reading)

    def writer(
        self, stream: Any, names: list[str], dtype: np.dtype[Any], time: TimeColumn | None = None
    ) -> Writer:
        """See `Format.writer`."""
        return ColumnarWriter(self, stream, names, dtype, time)


class ColumnarSource(TableSource, GroupedSource):
    """A Parquet file by row groups, or an Arrow file by record batches.

    By default the features are the numeric columns without those that pandas stored as the index.
    """

    worth_prefetching = True
    path: Path
    format: ColumnarFormat
    feature_names: list[str]

    def __init__(self, format: ColumnarFormat, path: Path, reading: Reading) -> None:
        self.format, self.name, self.path = format, str(path), path
        self._file = open_columnar(format, path)
        schema = self._file.schema
        with whole_file(path, format.name, ValueError):  # notes of pandas that are no JSON
            self.chosen = _choose(self.name, schema, reading)
            self.time_column = _time_column(self._file, self.chosen, reading)
        if self.time_column is not None:
            self.zoned = getattr(schema.field(self.time_column).type, "tz", None) is not None
        self.n_columns, self.column_names = len(schema), schema.names
        self.feature_names = [schema.names[i] for i in self.chosen]
        self.n_features = len(self.chosen)
        self.n_rows = self._file.n_rows
        self.dtype = _float_type([schema.field(i).type for i in self.chosen])
        self.missing = reading.missing_numbers

    def n_groups(self) -> int:
        """See `GroupedSource.n_groups`."""
        return self._file.n_groups

    def read(self, group: int, skip: int) -> Iterator[NDArray[Any]]:
        """See `GroupedSource.read`."""
        done = 0
        with whole_file(self.name, self.format.name, *arrow_faults()):
            pieces = self._file.pieces(group, self.rows_at_once(), self.feature_names, self.dtype)
            for rows in pieces:
                done += len(rows)
                if done <= skip:
                    continue
                part = rows[max(0, skip - (done - len(rows))) :]
                self._check_finite(part, group, done - len(part))
                yield with_missing(part, self.missing)
                del rows, part  # free them before the next ones, which are as large

    def _check_finite(self, rows: NDArray[Any], group: int, before: int) -> None:
        where = find_infinity(rows)
        if where is not None:
            number = self._file.rows_before(group) + before + where[0]
            raise self.infinity_error(number, where[1])

    def rows_at_once(self) -> int:
        """Rows of a record batch of limited size."""
        return max(1, BATCH_BYTES // (self.n_features * self.dtype.itemsize))

    def times_in_order(self) -> Iterator[NDArray[np.float64]]:
        """See `TableSource.times_in_order`."""
        assert self.time_column is not None
        with whole_file(self.name, self.format.name, *arrow_faults()):
            for group in range(self.n_groups()):
                yield from map(seconds, self._file.values(group, self.time_column))

    def timed_blocks(self) -> Iterator[tuple[Any, float | None, Times]]:
        """See `TableSource.timed_blocks`."""
        for batch, group, before, done in self._batches(self._file):
            rows = matrix(batch.select(self.feature_names), self.dtype)
            rows = with_missing(rows, self.missing)
            self._check_finite(rows, group, before)
            yield rows, done, self._times(batch)

    def _times(self, batch: Any) -> Times:
        """When the rows of a batch came."""
        return None if self.time_column is None else seconds(batch.column(self.time_column))

    def rewrites_into(self, target: Format) -> bool:
        """See `TableSource.rewrites_into`."""
        return target.takes_batches

    def rewrite(self, stream: Any, target: Format, fill: Fill) -> None:
        """See `TableSource.rewrite`."""
        import pyarrow

        file = open_columnar(self.format, self.path)
        names = self.feature_names
        schema = _with_fields(file.schema, fill.further_names, fill.dtype)
        with closing(file), target.batch_writer(stream, schema) as writer:
            for batch, group, before, done in self._batches(file):
                rows = with_missing(matrix(batch.select(names), self.dtype), self.missing)
                self._check_finite(rows, group, before)
                filled, further = fill(rows, done, self._times(batch))
                columns = list(batch.columns)
                for feature, position in enumerate(self.chosen):
                    column = _filled(columns[position], rows[:, feature], filled[:, feature])
                    columns[position] = column
                columns += [
                    pyarrow.array(
                        further[:, at], schema.field(len(columns) + at).type, from_pandas=True
                    )
                    for at in range(len(fill.further_names))
                ]
                writer.write_batch(type(batch).from_arrays(columns, schema=schema))

    def _batches(self, file: ColumnarFile) -> Iterator[tuple[Any, int, int, float]]:
        """All record batches, with their group, earlier rows of the group, and the share done."""
        with whole_file(self.name, self.format.name, *arrow_faults()):
            for group in range(file.n_groups):
                before = 0
                for batch in file.batches(group, self.rows_at_once()):
                    yield batch, group, before, (group + 1) / file.n_groups
                    before += batch.num_rows

    def close(self) -> None:
        """See `Source.close`."""
        self._file.close()


class ColumnarWriter:
    """Rows of numbers as a Parquet or Arrow file."""

    def __init__(
        self, format: Format, stream: Any, names: list[str], dtype: np.dtype[Any],
        time: TimeColumn | None = None,
    ) -> None:  # fmt: skip
        import pyarrow

        kind, fields = pyarrow.from_numpy_dtype(dtype), []
        if time is not None:
            fields = [(time.name, pyarrow.timestamp("us", "UTC" if time.zoned else None))]
        self._schema = pyarrow.schema([*fields, *((name, kind) for name in names)])
        self._writer = format.batch_writer(stream, self._schema)

    def write(self, rows: Any, times: Any = None) -> None:
        """See `Writer.write`."""
        import pyarrow

        first: list[Any] = []
        if times is not None:
            stamps = np.rint(1e6 * np.asarray(times)).astype("datetime64[us]")
            first = [pyarrow.array(stamps, self._schema.types[0])]
        columns = first + [pyarrow.array(column, from_pandas=True) for column in rows.T.copy()]
        self._writer.write_batch(pyarrow.record_batch(columns, schema=self._schema))

    def close(self) -> None:
        """See `Writer.close`."""
        self._writer.close()


def open_columnar(format: ColumnarFormat, path: Path) -> ColumnarFile:
    """Open the file; an error says which package is needed."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise DataError(
            f"{path}: Parquet and Arrow files need pyarrow: pip install 'omfb[files]'"
        ) from error
    path.open("rb").close()  # its errors are clearer than pyarrow's
    with whole_file(path, format.name, *arrow_faults()):
        return format.open_file(path)


def arrow_faults() -> tuple[type[Exception], ...]:
    """What pyarrow raises for a damaged file; names that are not text are a ValueError."""
    import pyarrow

    return pyarrow.ArrowException, OSError, ValueError, OverflowError


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


def _filled(column: Any, values: Any, filled: Any) -> Any:
    """An Arrow column of the same type with its missing values filled."""
    import pyarrow
    from pyarrow import compute, types

    missing = np.isnan(values) & ~np.isnan(filled)
    if not missing.any():
        return column
    kind, new = column.type, filled[missing]
    if types.is_decimal(kind):
        given = pyarrow.array([_decimal(float(value), kind) for value in new], kind)
    elif types.is_integer(kind):
        given = pyarrow.array(to_whole(new, np.dtype(kind.to_pandas_dtype())), kind)
    else:
        given = pyarrow.array(new.astype(kind.to_pandas_dtype()), kind)
    return compute.replace_with_mask(column, pyarrow.array(missing), given)


def _decimal(value: float, kind: Any) -> Decimal:
    """The nearest number of a decimal type."""
    with localcontext(prec=kind.precision + kind.scale + 400):
        unit = Decimal(1).scaleb(-kind.scale)
        largest = Decimal(10) ** (kind.precision - kind.scale) - unit
        return max(-largest, min(largest, Decimal(repr(value)).quantize(unit)))


def _with_fields(schema: Any, names: list[str], dtype: np.dtype[Any]) -> Any:
    """The schema with extra numeric columns."""
    import pyarrow

    for name in names:
        schema = schema.append(pyarrow.field(name, pyarrow.from_numpy_dtype(dtype)))
    return schema


def seconds(column: Any) -> NDArray[np.float64]:
    """An Arrow column of dates or times as seconds since 1970, NaN where null."""
    import pyarrow

    zone = getattr(column.type, "tz", None)
    whole = column.cast(pyarrow.timestamp("us", zone), safe=False).cast(pyarrow.int64())
    found = whole.to_numpy(zero_copy_only=False).astype(np.float64) / 1e6
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return np.where(missing, np.nan, found)


def _time_column(file: ColumnarFile, chosen: list[int], reading: Reading) -> str | None:
    """The column of the model's times, or the first of dates, if its first values increase."""
    from pyarrow import types

    for at, field in enumerate(file.schema):
        is_time = types.is_timestamp(field.type) or types.is_date(field.type)
        if is_time and at not in chosen and field.name == reading.model_times:
            return str(field.name)
    for at, field in enumerate(file.schema):
        is_time = types.is_timestamp(field.type) or types.is_date(field.type)
        if is_time and at not in chosen and file.n_groups:
            values = file.first_values(field.name, SAMPLE_VALUES).to_pylist()
            return str(field.name) if rising(values) else None
    return None


def is_number(kind: Any) -> bool:
    """Whether this is a numeric type."""
    from pyarrow import types

    return bool(types.is_floating(kind) or types.is_integer(kind) or types.is_decimal(kind))


def _choose(name: str, schema: Any, reading: Reading) -> list[int]:
    names = schema.names
    index = _index_columns(schema.pandas_metadata)
    usual = [
        i for i, field in enumerate(schema) if is_number(field.type) and field.name not in index
    ]
    chosen = choose(Columns(name, len(names), names), reading, usual)
    if len(set(names)) < len(names):
        raise DataError(f"{name}: two columns have the same name. Rename one.")
    for i in chosen:
        if not is_number(schema.field(i).type):
            raise DataError(
                f"{name}: column {names[i]!r} is of type {schema.field(i).type}, not of "
                f"numbers. Leave it out.", "exclude",
            )  # fmt: skip
    return chosen


def _index_columns(metadata: Any) -> set[str]:
    """The columns that pandas' metadata call an index."""
    columns = metadata.get("index_columns") if isinstance(metadata, dict) else None
    if not isinstance(columns, list):
        return set()
    return {name for name in columns if isinstance(name, str)}


def _float_type(kinds: list[Any]) -> np.dtype[Any]:
    import pyarrow

    small = (pyarrow.float32(), pyarrow.float16())
    return np.dtype(np.float32 if all(kind in small for kind in kinds) else np.float64)
