"""The command line: the only place that prints."""

from typing import Annotated

import typer

from .. import __version__
from ._usage import Command, OneLineErrors
from .complete import complete
from .demo import demo
from .fit import fit
from .forecast import forecast
from .info import info
from .merge import merge
from .recommend import recommend
from .reproduce import reproduce
from .transform import inverse, score, transform

app = typer.Typer(
    name="omfb",
    cls=OneLineErrors,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

COMMANDS = (
    fit, complete, forecast, transform, inverse, score, recommend, merge, info, demo, reproduce,
)  # fmt: skip

for command in COMMANDS:
    app.command(cls=Command)(command)


def _version(requested: bool) -> None:
    if requested:
        print(f"omfb {__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """Factorise data that keeps arriving and has missing values."""
