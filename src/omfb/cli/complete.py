"""`omfb complete`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ._checkpoints import held
from ._errors import (
    StopSignal,
    UsageError,
    guarded,
    printable,
    refuse_other_files,
    refuse_overwriting,
    say,
)
from ._extra_columns import ExtraColumns
from ._fill import Bar, Filler
from ._limits import LeftEmpty
from ._models import Model as ModelOfFile
from ._models import header_of, lineage_of, load_model, open_for
from ._options import PIPE, Checkpoint, Data, Every, Model, Out, Quiet, ReadingOptions, reads_data
from ._writing import bytes_to, output_format, table_to

if TYPE_CHECKING:
    from ..formats import TableSource


@guarded
@reads_data
def complete(
    data: Data,
    model: Model,
    output: Out = "-",
    std: Annotated[
        bool,
        typer.Option("--std", help="Add the standard deviation of each value: columns NAME_std."),
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="LEVEL",
            help="Add bounds that contain a filled value with this probability (0.9): columns "
            "NAME_low and NAME_high, empty where the value is observed.",
            show_default=False,
        ),
    ] = None,
    report: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Write how much was filled, and what counted as outliers, by column; - prints it.",
            show_default=False,
        ),
    ] = None,
    max_gap: Annotated[
        str | None,
        typer.Option(
            metavar="N|TIME",
            help="Leave gaps of a column empty that have more rows, or, of rows with times, last "
            "longer: 6h, 2D.",
            show_default=False,
        ),
    ] = None,
    max_std: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Leave values empty whose standard deviation is larger, in those of their column: "
            "0.5 fills what is known to half of it.",
            show_default=False,
        ),
    ] = None,
    no_robust: Annotated[
        bool, typer.Option("--no-robust", help="Take no value for an outlier.")
    ] = False,
    learn: Annotated[bool, typer.Option("--learn", help="Learn from each row, too.")] = False,
    new_features: Annotated[
        str | None,
        typer.Option(
            metavar="add|error|ignore",
            help="With --learn and a pipe of NDJSON (- for both), what to do with keys of numbers "
            "that the model does not know: learn them as new features, stop, or leave them "
            "(default).",
            show_default=False,
        ),
    ] = None,
    checkpoint: Checkpoint = None,
    every: Every = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Skip the rows of a pipe that a checkpoint has seen.")
    ] = False,
    quiet: Quiet = False,
    *,
    reading: ReadingOptions,
) -> None:
    """Fill the missing values of a file or pipe; observed values stay as they are, bit for bit.

    Columns are found by the names of the model's features; other columns, order and types are
    kept. With - for both it is a filter: each line is filled and written at once.

    With --learn each row is filled by a model that has learned from the rows up to it, and
    --checkpoint keeps that model. A filter that was killed continues with --resume when the same
    input is piped in again: rows that the checkpoint has seen are skipped.

    Observed values have a standard deviation of 0, and no bounds; neither have values that
    --max-gap or --max-std leaves empty. A column of dates says when rows came, if the model was
    fitted to rows with times.

    For example:

        omfb complete table.csv -m model.omfb -o filled.csv

        omfb complete table.csv -m model.omfb -o filled.csv --interval 0.9

        omfb complete table.csv -m model.omfb -o filled.csv --report report.txt

        omfb complete table.csv -m model.omfb -o filled.csv --max-std 0.5

        cat table.csv | omfb complete - -m model.omfb --learn > filled.csv
    """
    from ..streams import errors_about

    both = data == PIPE and output == PIPE
    if checkpoint is not None and not learn:
        raise UsageError("--checkpoint keeps what --learn learns: add --learn, or leave it out")
    if resume and not both:
        raise UsageError("--resume continues a pipe (- for both); files are filled as a whole")
    if report == PIPE and output == PIPE:
        raise UsageError("--report - and the table cannot both be printed: name a file for one")
    _check_new_features(new_features, learn and both and report is None)
    left = LeftEmpty(max_gap, max_std)
    extra = ExtraColumns(std, interval, report is not None, left.any)
    refuse_overwriting([data, model], [output, checkpoint, None if report == PIPE else report])
    if report is not None:
        refuse_other_files(report, "report", b"column ")
    with StopSignal() as stop, held(checkpoint, resume, every, {}) as saver:
        start = checkpoint if saver.exists and checkpoint is not None else model
        loaded = load_model(start, robust=not no_robust)
        extra.check(loaded.learner)
        left.check(loaded.learner)
        if learn and checkpoint is None and not quiet:
            say("omfb: what is learned will be lost; --checkpoint FILE keeps it")
        lineage = lineage_of(start) if saver.exists else loaded.learner.snapshot().lineage
        saver.header = {**header_of(start), "lineage": list(lineage)}
        source = open_for(loaded, data, reading, quiet, stop.check)
        if source.is_sparse and getattr(loaded.learner.config, "absent", "missing") == "zero":
            raise UsageError(
                f"{source.name}: nothing is missing, as the model was fitted with --absent zero"
            )
        if new_features is not None:
            _check_takes_features(loaded, source)
        in_order = _in_order(loaded, source, quiet)
        filling = loaded.learner if in_order or learn else loaded.out_of_time()
        left.prepare(source, filling)
        with errors_about(source), Bar("filling", quiet or both) as bar:
            filler = Filler(
                filling, learn, stop, bar, extra, loaded.allowed, left, in_order=in_order
            )  # fmt: skip
            _check_names(source, filler.further_names)
            if both:
                from ..formats._lines import PipeSource
                from ._pipe import Filter

                assert isinstance(source, PipeSource)
                pipe = Filter(source, filler, saver, stop, new_features or "ignore")
                pipe.run(_rows_seen(start) if saver.exists else 0)
            else:
                _complete_file(source, filler, output)
        if not both:
            saver.save(filling.snapshot())
    if left.any and not quiet:
        left.tell(output)
    if report is not None:
        names = source.feature_names or [f"x{i}" for i in range(source.n_features)]
        with bytes_to(report, source.path) as stream:
            stream.write(extra.report([printable(name) for name in names]).encode())


def _in_order(model: ModelOfFile, source: "TableSource", quiet: bool) -> bool:
    """Whether times of rows may be used; say so if they are not what they should be."""
    from ..estimators.times import column_problems

    if not model.learner.is_temporal or not source.rereadable:
        return True
    times = source.row_times()
    for problem in () if quiet else column_problems(times, source.time_column):
        say(f"omfb: {source.name}: {problem}")
    return times is None or times.fault is None


def _check_names(source: "TableSource", further: list[str]) -> None:
    """Refuse extra columns where the table has some of that name already."""
    known = set(source.column_names)
    for name in further:
        if name in known:
            raise UsageError(f"{source.name} has a column {name!r} already: rename it")


def _check_new_features(value: str | None, is_possible: bool) -> None:
    """Refuse the option where it is no choice, or would do nothing."""
    if value is None:
        return
    if value not in ("add", "error", "ignore"):
        raise UsageError(f"--new-features must be add, error or ignore, not {value[:80]!r}")
    if not is_possible:
        raise UsageError(
            "--new-features is for --learn and a pipe (- for both), and not with --report"
        )


def _check_takes_features(model: ModelOfFile, source: "TableSource") -> None:
    """Refuse data whose rows all have the same columns, and models with a fixed number of them."""
    from ..formats.ndjson import JsonLines

    lines = getattr(source, "lines", None)
    if not isinstance(lines, JsonLines) or lines.feature_names is None:
        raise UsageError(
            f"--new-features is for objects with keys (NDJSON), and {source.name} holds none"
        )
    if "new_features" not in model.estimator.get_params():
        raise UsageError("--new-features: a model of --estimator omfb has a fixed number of them")


def _rows_seen(checkpoint: Path) -> int:
    from ..persistence import read_model

    pipe = read_model(checkpoint)[0].get("pipe")
    if not isinstance(pipe, dict) or type(pipe.get("rows")) is not int:
        raise UsageError(f"{checkpoint}: no checkpoint of a pipe; use it as the model (-m) instead")
    return int(pipe["rows"])


def _complete_file(source: "TableSource", filler: Filler, output: str) -> None:
    """Fill in the way that keeps as much of the file as possible."""
    given = source.format
    target = output_format(output, piped=given.name if given.of_lines else "csv")
    if filler.further_names and not target.names_columns:
        raise UsageError(
            f"{output}: an array has no place for --std or --interval; write .csv, .tsv, .ndjson, "
            f".parquet or .arrow"
        )
    if source.rewrites_into(target):
        with bytes_to(output, source.path) as stream:
            source.rewrite(stream, target, filler)
    else:
        _convert(source, filler, output)


def _convert(source: "TableSource", filler: Filler, output: str) -> None:
    """Fill into a file of another kind, which must have room for all columns."""
    import numpy as np

    from ..core.blocks import dense_with_holes
    from ..streams import DataError

    if source.n_columns > source.n_features:
        raise DataError(
            f"{source.name}: columns that are no features would be lost in {output}. "
            f"Write a file of the same kind."
        )
    order = np.argsort(source.chosen)
    names = source.feature_names or [f"x{i}" for i in range(source.n_features)]
    columns = [*(names[i] for i in order), *filler.further_names]
    with table_to(output, columns, np.dtype(source.dtype), source.path) as writer:
        for rows, done, times in source.timed_blocks():
            filled, further = filler(dense_with_holes(rows), done, times)
            writer.write(np.hstack([filled[:, order], further.astype(filled.dtype)]))
