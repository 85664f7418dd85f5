"""Options that several commands share."""

from pathlib import Path
from typing import Annotated, Any

import typer

from ._errors import UsageError

PIPE = "-"

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="A .csv .tsv .ndjson .npy .npz .parquet or .arrow file, or - for standard input.",
        show_default=False,
    ),
]
Model = Annotated[Path, typer.Option("--model", "-m", help="The model file.", show_default=False)]
Out = Annotated[
    str,
    typer.Option("--output", "-o", metavar="OUT", help="A file, its format by its ending, or -."),
]
ColumnsOption = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="Columns that are features: names, or numbers from 1 (3,5-8), between commas.",
        show_default=False,
    ),
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
Checkpoint = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Keep what is learned in FILE.", show_default=False),
]
Every = Annotated[str, typer.Option(metavar="TIME", help="How often: 30s, 5m, 1h, or 10000rows.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]


def open_data(
    data: str, *, columns: str | None, header: bool | None, kind: str | None,
    wanted: list[str] | None = None,
) -> Any:  # fmt: skip
    """The stream that DATA names."""
    import sys

    from ..formats import open_stream
    from ..formats.lines import open_pipe

    if kind not in (None, "csv", "tsv", "ndjson"):
        raise UsageError(f"--format must be csv, tsv or ndjson, not {kind!r}")
    if data == PIPE:
        stream = sys.stdin.buffer
        return open_pipe(stream, kind, columns=columns, header=header, wanted=wanted)
    return open_stream(data, columns=columns, header=header, wanted=wanted)
