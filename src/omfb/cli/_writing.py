"""Tables of numbers to files, the format by the ending; all or nothing."""

import io
import operator
import os
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Protocol

from ._errors import UsageError
from ._options import PIPE

# Bytes of a .npy header that has room for any number of rows.
NPY_HEADER = 128


class Writer(Protocol):
    """Takes rows, block by block."""

    def write(self, rows: Any) -> None:
        """Append rows (n, n_columns)."""

    def close(self) -> None:
        """Finish the file."""


@contextmanager
def bytes_to(output: str) -> Iterator[Any]:
    """A binary stream to the output; a file replaces the old one at the end, all or nothing."""
    from ..persistence import replaced

    if output == PIPE:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    elif Path(output).exists() and not Path(output).is_file():  # a named pipe or device
        with open(output, "wb") as stream:
            yield stream
    else:
        with replaced(output) as new, new.open("wb") as stream:
            yield stream


def is_pipe(output: str) -> bool:
    """Whether the output is standard output, or a pipe or device whose name has no ending."""
    path = Path(output)
    special = path.exists() and not path.is_file() and not path.is_dir()
    return output == PIPE or (special and not path.suffix)


def check_ending(output: str) -> str:
    """The ending that tells the format to write; CSV where there is a pipe without one."""
    from ..formats.opening import ENDINGS

    ending = ".csv" if is_pipe(output) else Path(output).suffix.lower()
    if ending not in ENDINGS:
        raise UsageError(f"{output}: give it one of the endings {' '.join(ENDINGS)}")
    return ending


@contextmanager
def table_to(output: str, names: list[str], dtype: Any) -> Iterator[Writer]:
    """A writer of rows of numbers, the format by the ending."""
    ending = check_ending(output)
    kinds: dict[str, Callable[..., Writer]] = {
        ".csv": Text, ".txt": Text, ".tsv": Text, ".tab": Text, ".ndjson": Json, ".jsonl": Json,
        ".npy": Npy, ".npz": Npz,
    }  # fmt: skip
    kind = kinds.get(ending, Arrow)
    # Closed after an error, too: pyarrow complains aloud of a writer that is left open.
    with bytes_to(output) as stream, closing(kind(stream, names, dtype, ending)) as writer:
        yield writer


class Text:
    """CSV or TSV with a header."""

    def __init__(self, stream: Any, names: list[str], dtype: Any, ending: str) -> None:
        self._stream = stream
        self._mark = b"\t" if ending in (".tsv", ".tab") else b","
        stream.write(self._mark.join(self._quoted(name) for name in names) + b"\n")

    def _quoted(self, name: str) -> bytes:
        text = name.encode()
        if any(mark in text for mark in (self._mark, b'"', b"\n", b"\r")):
            text = b'"' + text.replace(b'"', b'""') + b'"'
        return text

    def write(self, rows: Any) -> None:
        """See `Writer`."""
        from ..formats.delimited import texts_of

        for row in rows:
            self._stream.write(self._mark.join(texts_of(row)) + b"\n")

    def close(self) -> None:
        """See `Writer`."""


class Json:
    """An object in each line."""

    def __init__(self, stream: Any, names: list[str], dtype: Any, ending: str) -> None:
        import json

        self._stream = stream
        self._keys = [json.dumps(name, ensure_ascii=False).encode() + b": " for name in names]

    def write(self, rows: Any) -> None:
        """See `Writer`."""
        from ..formats.delimited import texts_of

        for row in rows:
            pairs = map(operator.add, self._keys, texts_of(row))
            self._stream.write(b"{" + b", ".join(pairs) + b"}\n")

    def close(self) -> None:
        """See `Writer`."""


class Npy:
    """A NumPy array; its number of rows is put in at the end."""

    def __init__(
        self, stream: Any, names: list[str], dtype: Any, ending: str, n_rows: int = 0
    ) -> None:
        self._stream, self._width, self._dtype = stream, len(names), dtype
        self._n_rows = n_rows
        stream.write(self._header())

    def _header(self) -> bytes:
        shape = f"({self._n_rows}, {self._width})"
        text = f"{{'descr': '{self._dtype.str}', 'fortran_order': False, 'shape': {shape}, }}"
        padded = text.ljust(NPY_HEADER - 11) + "\n"
        return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded.encode()

    def write(self, rows: Any) -> None:
        """See `Writer`."""
        import numpy as np

        self._stream.write(np.ascontiguousarray(rows, dtype=self._dtype).data)
        self._n_rows += len(rows)

    def close(self) -> None:
        """See `Writer`."""
        self._stream.seek(0)
        self._stream.write(self._header())
        self._stream.seek(0, io.SEEK_END)


class Npz:
    """A NumPy array called X in an archive, by way of a .npy file."""

    def __init__(self, stream: Any, names: list[str], dtype: Any, ending: str) -> None:
        import tempfile

        self._stream = stream
        self._folder = os.path.dirname(os.path.realpath(stream.name))
        self._spool = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
        self._npy = Npy(self._spool, names, dtype, ending)

    def write(self, rows: Any) -> None:
        """See `Writer`."""
        self._npy.write(rows)

    def close(self) -> None:
        """See `Writer`."""
        self._npy.close()
        self._spool.seek(0)
        with (
            zipfile.ZipFile(self._stream, "w") as archive,
            archive.open("X.npy", "w", force_zip64=True) as member,
        ):
            shutil.copyfileobj(self._spool, member)
        self._spool.close()


class Arrow:
    """A Parquet or Arrow file."""

    def __init__(self, stream: Any, names: list[str], dtype: Any, ending: str) -> None:
        import pyarrow

        kind = pyarrow.from_numpy_dtype(dtype)
        self._schema = pyarrow.schema([(name, kind) for name in names])
        self._writer = batch_writer(stream, self._schema, ending)

    def write(self, rows: Any) -> None:
        """See `Writer`."""
        import pyarrow

        columns = [pyarrow.array(column) for column in rows.T.copy()]
        self._writer.write_batch(pyarrow.record_batch(columns, schema=self._schema))

    def close(self) -> None:
        """See `Writer`."""
        self._writer.close()


def batch_writer(stream: Any, schema: Any, ending: str) -> Any:
    """A pyarrow writer of record batches to a Parquet, Arrow, CSV or TSV file."""
    import pyarrow
    from pyarrow import csv, parquet

    from ..formats.columnar import ARROW_ENDINGS, PARQUET_ENDINGS
    from ..formats.lines import TAB_ENDINGS

    if ending in PARQUET_ENDINGS:
        return parquet.ParquetWriter(stream, schema)
    if ending in ARROW_ENDINGS:
        return pyarrow.ipc.new_file(stream, schema)
    for field in schema:
        if pyarrow.types.is_nested(field.type):
            raise UsageError(
                f"text has no place for column {field.name!r} of type {field.type}: "
                f"write a .parquet or .arrow file"
            )
    mark = "\t" if ending in TAB_ENDINGS else ","
    return csv.CSVWriter(stream, schema, write_options=csv.WriteOptions(delimiter=mark))
