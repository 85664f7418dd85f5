"""`omfb complete`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ._checkpoints import held
from ._errors import StopSignal, UsageError, guarded, say
from ._fill import Filler
from ._models import blocks_of, header_of, load_model, open_for
from ._options import (
    PIPE,
    Checkpoint,
    ColumnsOption,
    Data,
    Every,
    Format,
    Header,
    Model,
    Out,
    Quiet,
)
from ._writing import bytes_to, check_ending, is_pipe, table_to


@guarded
def complete(
    data: Data,
    model: Model,
    output: Out = "-",
    learn: Annotated[bool, typer.Option("--learn", help="Learn from each row, too.")] = False,
    columns: ColumnsOption = None,
    header: Header = None,
    format: Format = None,
    checkpoint: Checkpoint = None,
    every: Every = "30s",
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip the rows of a pipe that a checkpoint has seen.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Fill the holes of a file or pipe; what is observed stays as it is, bit for bit.

    Columns are found by the names of the model's features; other columns, order and types are
    kept. With - for both it is a filter: each line is filled and written at once.

    With --learn each row is filled by a model that has learned from the rows up to it, and
    --checkpoint keeps that model. A filter that was killed goes on with --resume when the same
    input is piped in again: rows that the checkpoint has seen are skipped.

    For example:

        omfb complete ratings.csv -m model.omfb -o filled.csv

        cat ratings.csv | omfb complete - -m model.omfb --learn > filled.csv
    """
    from ..streams import errors_about

    both = data == PIPE and output == PIPE
    if checkpoint is not None and not learn:
        raise UsageError("--checkpoint keeps what --learn learns: add --learn, or leave it out")
    if resume and not both:
        raise UsageError("--resume goes on with a pipe (- for both); files are done as a whole")
    with StopSignal() as stop, held(checkpoint, resume, every, {}) as saver:
        start = checkpoint if saver.exists and checkpoint is not None else model
        fitted = load_model(start)
        if learn and checkpoint is None and not quiet:
            say("omfb: what is learned will be forgotten; --checkpoint FILE keeps it")
        saver.header = header_of(start)
        source = open_for(fitted, data, columns, header, format)
        source.when_idle(stop.check)
        filler = Filler(fitted, learn)
        with errors_about(source):
            if both:
                from ._pipe import Filter

                Filter(source, filler, saver, stop).run(_rows_seen(start) if saver.exists else 0)
                return
            _complete_file(source, filler, output, stop)
        saver.save(fitted.snapshot())


def _rows_seen(checkpoint: Path) -> int:
    from ..persistence import read_model

    pipe = read_model(checkpoint)[0].get("pipe")
    if not isinstance(pipe, dict) or type(pipe.get("rows")) is not int:
        raise UsageError(f"{checkpoint}: no checkpoint of a pipe; use it as the model (-m) instead")
    return int(pipe["rows"])


def _complete_file(source: Any, filler: Filler, output: str, stop: StopSignal) -> None:
    """Fill by the way that keeps most of what the file is."""
    from ..formats.columnar import ColumnarSource
    from ..streams.arrays import ArraySource, ZippedSource
    from ._rewriting import (
        complete_arrays,
        complete_batches,
        complete_lines,
        file_kind,
        source_kind,
    )

    given = source_kind(source)
    of_lines = hasattr(source, "lines")
    kind = given if of_lines and is_pipe(output) else file_kind(output)
    if of_lines and kind == given:
        with bytes_to(output) as stream:
            complete_lines(source, filler, stream, stop)
    elif isinstance(source, ColumnarSource) and kind in ("arrow", "csv", "tsv"):
        with bytes_to(output) as stream:
            complete_batches(source, filler, stream, check_ending(output), stop)
    elif isinstance(source, ArraySource | ZippedSource) and kind == given:
        complete_arrays(source, filler, output, stop)
    else:
        _convert(source, filler, output, stop)


def _convert(source: Any, filler: Filler, output: str, stop: StopSignal) -> None:
    """Fill into a file of another kind, which must have room for all columns."""
    import numpy as np

    from ..streams import DataError

    table = getattr(source, "lines", source)
    chosen = getattr(table, "chosen", range(source.n_features))
    if getattr(table, "n_columns", source.n_features) > source.n_features:
        raise DataError(
            f"{source.name}: columns that are no features would be lost in {output}. "
            f"Write a file of the same kind."
        )
    order = np.argsort(chosen)
    names = source.feature_names or [f"x{i}" for i in range(source.n_features)]
    dtype = np.dtype(source.dtype)
    with table_to(output, [names[i] for i in order], dtype) as writer:
        for rows in blocks_of(source):
            writer.write(filler.fill(rows)[:, order])
            stop.check()
