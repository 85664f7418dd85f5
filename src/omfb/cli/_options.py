"""Options that several commands share."""

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ._errors import UsageError, option, say

if TYPE_CHECKING:
    from ..formats import MultiFileSource, Reading, TableSource

PIPE = "-"
READING = "Reading DATA"
# Formats that have neither a header line nor marks between digits.
NOT_CSV = ("ndjson", "npy", "npz", "parquet", "arrow")

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv .tsv .ndjson .npy .npz .parquet or .arrow file, or - for standard input. "
        "Text may be compressed (.csv.gz, .csv.zst).",
        show_default=False,
    ),
]
DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="A .csv .tsv .ndjson .npy .npz .parquet or .arrow file, several that have the same "
        "columns, or - for standard input. Text may be compressed (.csv.gz, .csv.zst).",
        show_default=False,
    ),
]
Model = Annotated[Path, typer.Option("--model", "-m", help="The model file.", show_default=False)]
Out = Annotated[
    str,
    typer.Option(
        "--output", "-o", metavar="OUT", help="A file, its format by its extension, or -."
    ),
]


def _reads(help: str, *names: str, metavar: str | None = None) -> Any:
    """An option that says how DATA is read."""
    return typer.Option(
        *names, metavar=metavar, help=help, show_default=False, rich_help_panel=READING
    )


Columns = Annotated[
    str | None,
    _reads(
        "Columns that are features, between commas: names, patterns (temp_*), or numbers from 1 "
        "(3,5-8). Default: all columns of numbers.",
        metavar="LIST",
    ),
]
Exclude = Annotated[str | None, _reads("Columns that are not features.", metavar="LIST")]
Header = Annotated[
    bool | None,
    _reads(
        "Whether a CSV file begins with names. Default: by its first lines.",
        "--header/--no-header",
    ),
]
Format = Annotated[
    str | None,
    _reads("Format of standard input. Default: by its first line.", metavar="csv|tsv|ndjson"),
]
Missing = Annotated[
    str | None,
    _reads(
        "Values that mean missing, such as -999,? besides NA, NaN, null and empty cells. "
        "`fit` keeps them in the model.",
        metavar="LIST",
    ),
]
Decimal = Annotated[
    str | None, _reads("The decimal mark of CSV files. Default: a point.", metavar="MARK")
]
Thousands = Annotated[
    str | None, _reads("The mark between groups of digits in CSV files.", metavar="MARK")
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Save what is learned to FILE.", show_default=False),
]
Every = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="How often to write the checkpoint: 30s (default), 5m, 1h, or 10000rows.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace OUTPUT even if it is not a model.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]


class ReadingOptions(NamedTuple):
    """How DATA is read: the options that `reads_data` gives to a command."""

    columns: Columns = None
    exclude: Exclude = None
    header: Header = None
    format: Format = None
    missing: Missing = None
    decimal: Decimal = None
    thousands: Thousands = None


def reads_data(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `ReadingOptions`, which come as its argument `reading`."""
    given = inspect.signature(command, eval_str=True)
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=ReadingOptions._field_defaults[name],
            annotation=annotation,
        )
        for name, annotation in ReadingOptions.__annotations__.items()
    ]

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        reading = ReadingOptions(**{name: arguments.pop(name) for name in ReadingOptions._fields})
        command(**arguments, reading=reading)

    own = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in given.parameters.values()]
    at = next(i for i, parameter in enumerate(own) if parameter.name == "reading")
    signature = given.replace(parameters=[*own[:at], *options, *own[at + 1 :]])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run


def as_reading(reading: ReadingOptions, **more: Any) -> "Reading":
    """The options as the library takes them, checked."""
    from ..formats import Reading

    options = {name: value for name, value in reading._asdict().items() if name != "format"}
    return Reading.of(**{**options, "decimal": options["decimal"] or "."}, **more)


def open_data(
    data: str, reading: ReadingOptions, *, model_features: list[str] | None = None,
    model_width: int | None = None, model_times: str | None = None,
    on_idle: Callable[[], None] | None = None, quiet: bool = False,
) -> "TableSource":  # fmt: skip
    """The stream that DATA names; say how it was read where that was in doubt."""
    from ..formats import open_file, open_pipe

    kind = reading.format
    if kind not in (None, "csv", "tsv", "ndjson"):
        raise UsageError(f"--format must be csv, tsv or ndjson, not {kind!r}")
    if kind is not None and data != PIPE:
        raise UsageError(
            f"--format is for standard input; the ending of a file's name says its format: {data}"
        )
    checked = as_reading(
        reading, model_features=model_features, model_width=model_width, model_times=model_times,
        on_idle=on_idle,
    )  # fmt: skip
    source: TableSource
    if data == PIPE:
        source = open_pipe(standard_input(), kind, checked)
        source.reading = checked
    else:
        source = open_file(Path(data), checked)
    _check_marks(source, reading)
    source.on_idle = on_idle
    _tell(source, quiet)
    return source


def open_files(
    data: list[str], reading: ReadingOptions, on_idle: Callable[[], None], quiet: bool
) -> "TableSource | MultiFileSource":
    """The stream of one or several files, or of a pipe."""
    from ..formats import MultiFileSource

    if len(data) == 1:
        return open_data(data[0], reading, on_idle=on_idle, quiet=quiet)
    if PIPE in data:
        raise UsageError("standard input cannot be one of several files: save it first")
    if reading.format is not None:
        raise UsageError("--format is for standard input, not for files")
    source = MultiFileSource([Path(name) for name in data], as_reading(reading, on_idle=on_idle))
    source.on_idle = on_idle
    _tell(source, quiet)
    return source


def _check_marks(source: "TableSource", reading: ReadingOptions) -> None:
    """Refuse options about text where there is none."""
    for name in ("header", "decimal", "thousands"):
        if getattr(reading, name) is not None and source.format.name in NOT_CSV:
            raise UsageError(
                f"{option(name)} is for CSV files, but {source.name} is {source.format.name}"
            )


def _tell(source: "TableSource | MultiFileSource", quiet: bool) -> None:
    for note in () if quiet else source.notes:
        say("omfb: " + note.shown(option))


def standard_input() -> IO[bytes]:
    """The bytes of standard input."""
    if sys.stdin is None:
        raise UsageError("standard input is closed: pipe something in, or name a file")
    return sys.stdin.buffer


def standard_output() -> IO[bytes]:
    """A binary stream to standard output."""
    if sys.stdout is None:
        raise UsageError("standard output is closed: name a file by -o")
    return sys.stdout.buffer
