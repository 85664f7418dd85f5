"""Files filled into files of the same kind: nothing but the holes changes."""

import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from ._errors import StopSignal
from ._fill import Filler
from ._models import blocks_of
from ._writing import Npy, batch_writer, bytes_to, check_ending, table_to


def source_kind(source: Any) -> str:
    """Files of which kind hold all that the source does: csv, tsv, ndjson, arrow, npy or npz."""
    if not hasattr(source, "lines"):
        return file_kind(source.name)
    if not hasattr(source.lines, "delimiter"):
        return "ndjson"
    return "tsv" if source.lines.delimiter == b"\t" else "csv"


def file_kind(path: str) -> str:
    """Which endings mean the same kind of file."""
    from ..formats.columnar import ARROW_ENDINGS, PARQUET_ENDINGS
    from ..formats.lines import line_kind

    ending = check_ending(path)
    if ending in PARQUET_ENDINGS + ARROW_ENDINGS:
        return "arrow"
    return ending[1:] if ending in (".npy", ".npz") else line_kind(path)


def complete_lines(source: Any, filler: Filler, stream: Any, stop: StopSignal) -> None:
    """Fill lines; cells that are observed are copied as they are written."""
    import numpy as np

    from ..formats.delimited import whole_lines

    form = source.lines
    stream.write(source.preamble())
    for chunk, rows in source.parsed_chunks():
        filled = filler.fill(rows).astype(filler.dtype, copy=False)
        holes = np.isnan(rows)
        number = 0
        for line in whole_lines(chunk):
            if not form.is_blank(line):
                which = np.flatnonzero(holes[number])
                if len(which):
                    line = form.fill(line, which, filled[number, which])
                number += 1
            stream.write(line)
        stop.check()


def complete_batches(
    source: Any, filler: Filler, stream: Any, ending: str, stop: StopSignal
) -> None:
    """Fill a Parquet or Arrow file; all columns are kept, whole numbers stay whole."""
    from ..formats.columnar import matrix, open_columnar

    file = open_columnar(Path(source.name))
    names = source.feature_names
    done = 0
    with closing(file), batch_writer(stream, file.schema, ending) as writer:
        for batch in _batches(file, source.rows_at_once()):
            rows = matrix(batch.select(names), source.dtype)
            source.check_finite_rows(rows, done)
            done += len(rows)
            filled = filler.fill(rows)
            columns = list(batch.columns)
            for feature, position in enumerate(source.chosen):
                column = _filled(columns[position], rows[:, feature], filled[:, feature])
                columns[position] = column
            writer.write_batch(type(batch).from_arrays(columns, schema=file.schema))
            stop.check()


def _batches(file: Any, at_once: int) -> Iterator[Any]:
    for group in range(file.n_groups):
        yield from file.batches(group, at_once, None)


def _filled(column: Any, values: Any, filled: Any) -> Any:
    """An Arrow column with its holes filled, its type kept."""
    import numpy as np
    import pyarrow
    from pyarrow import compute, types

    holes = np.isnan(values)
    if not holes.any():
        return column
    kind, new = column.type, filled[holes]
    if types.is_decimal(kind):
        from decimal import Decimal

        unit = Decimal(1).scaleb(-kind.scale)
        given = pyarrow.array([Decimal(repr(float(v))).quantize(unit) for v in new], kind)
    elif types.is_integer(kind):
        limits = np.iinfo(kind.to_pandas_dtype())
        whole = [min(max(round(float(v)), int(limits.min)), int(limits.max)) for v in new]
        given = pyarrow.array(whole, kind)
    else:
        given = pyarrow.array(new.astype(kind.to_pandas_dtype()), kind)
    return compute.replace_with_mask(column, pyarrow.array(holes), given)


def complete_arrays(source: Any, filler: Filler, output: str, stop: StopSignal) -> None:
    """Fill a .npy or .npz file into one of the same type."""
    stored = source.stored
    names = [""] * source.n_features
    if output.endswith(".npy"):
        with table_to(output, names, stored) as writer:
            for rows in _filled_blocks(source, filler, stop):
                writer.write(rows)
        return
    member = getattr(source, "member", "X.npy")
    with bytes_to(output) as stream, zipfile.ZipFile(stream, "w") as archive:
        with zipfile.ZipFile(source.name) as old:
            if hasattr(source, "member"):
                for other in old.namelist():
                    if other != member:
                        archive.writestr(other, old.read(other))
        with archive.open(member, "w", force_zip64=True) as target:
            array = Npy(target, names, stored, ".npz", n_rows=source.n_rows)
            for rows in _filled_blocks(source, filler, stop):
                array.write(rows)


def _filled_blocks(source: Any, filler: Filler, stop: StopSignal) -> Iterator[Any]:
    import scipy.sparse

    from ..core.blocks import dense_with_holes

    for rows in blocks_of(source, as_stored=source.stored.kind != "f"):
        if source.stored.kind != "f" and not scipy.sparse.issparse(rows):
            yield rows  # whole numbers have no holes, and as floats might lose digits
        else:
            yield filler.fill(dense_with_holes(rows))
        stop.check()
