"""Options that several commands share."""

import functools
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from ._errors import UsageError, option, say

PIPE = "-"

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
Columns = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Columns that are features, between commas: names, patterns (temp_*), or numbers "
        "from 1 (3,5-8). All columns of numbers if not given.",
        show_default=False,
    ),
]
Exclude = Annotated[
    str | None,
    typer.Option(metavar="LIST", help="Columns that are not features.", show_default=False),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether a CSV file begins with names; found out if not given.",
        show_default=False,
    ),
]
Format = Annotated[
    str | None,
    typer.Option(
        metavar="csv|tsv|ndjson",
        help="What standard input is; found out if not given.",
        show_default=False,
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="What stands for a missing value besides NA, NaN, null and nothing: -999,?",
        show_default=False,
    ),
]
Decimal = Annotated[str, typer.Option(metavar="MARK", help="The decimal mark of text.")]
Thousands = Annotated[
    str | None,
    typer.Option(metavar="MARK", help="What groups digits in text.", show_default=False),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Keep what is learned in FILE.", show_default=False),
]
Every = Annotated[str, typer.Option(metavar="TIME", help="How often: 30s, 5m, 1h, or 10000rows.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]


class ReadingOptions(NamedTuple):
    """How DATA is to be read: the options that `reads_data` gives to a command."""

    columns: Columns = None
    exclude: Exclude = None
    header: Header = None
    format: Format = None
    missing: Missing = None
    decimal: Decimal = "."
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


def open_data(
    data: str | list[str], reading: ReadingOptions, *, model_features: list[str] | None = None,
    model_width: int | None = None, on_idle: Callable[[], None] | None = None, quiet: bool = False,
) -> Any:  # fmt: skip
    """The stream that DATA names; where it left room for doubt, say what was taken for what."""
    from ..formats import MultiFileSource, Reading, open_file, open_pipe

    options = reading._asdict()
    kind = options.pop("format")
    if kind not in (None, "csv", "tsv", "ndjson"):
        raise UsageError(f"--format must be csv, tsv or ndjson, not {kind!r}")
    checked = Reading.of(
        **options, model_features=model_features, model_width=model_width, on_idle=on_idle
    )
    names = [data] if isinstance(data, str) else data
    if len(names) > 1 and PIPE in names:
        raise UsageError("standard input cannot be one of several files: save it first")
    if names == [PIPE]:
        source: Any = open_pipe(standard_input(), kind, checked)
    elif len(names) == 1:
        source = open_file(Path(names[0]), checked)
    else:
        source = MultiFileSource([Path(name) for name in names], checked)
    source.on_idle = on_idle
    for note in () if quiet else source.notes:
        say("omfb: " + note.shown(option))
    return source


def standard_input() -> Any:
    """The bytes of standard input."""
    if sys.stdin is None:
        raise UsageError("standard input is closed: pipe something in, or name a file")
    return sys.stdin.buffer


def standard_output() -> Any:
    """A binary stream to standard output."""
    if sys.stdout is None:
        raise UsageError("standard output is closed: name a file by -o")
    return sys.stdout.buffer
