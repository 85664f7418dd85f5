"""The command line: the only place that prints."""

import typer

from .reproduce import reproduce

app = typer.Typer(
    name="omfb",
    help="Factorise data that keeps arriving and has holes in it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.callback()
def _root() -> None:
    """Keep subcommands even while there is one only."""


app.command()(reproduce)
