"""The command line: the only place that prints."""

import typer

from ._usage import OneLineErrors
from .complete import complete
from .fit import fit
from .info import info
from .reproduce import reproduce
from .transform import inverse, score, transform

app = typer.Typer(
    name="omfb",
    cls=OneLineErrors,
    help="Factorise data that keeps arriving and has holes in it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)

for command in (fit, complete, transform, inverse, score, info):
    app.command()(command)
app.command()(reproduce)
