"""The command line: the only place that prints."""

import typer

from .completing import complete
from .encoding import inverse, score, transform
from .fitting import fit
from .informing import info
from .reproduce import reproduce
from .usage import OneLineErrors

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
