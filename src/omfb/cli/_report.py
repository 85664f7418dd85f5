"""What commands share that end with a report: its folder, progress bars, tables on the terminal."""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from ._errors import UsageError

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

    from ..report.outcome import Outcome, Track

T = TypeVar("T")

# Wide enough for the tables where there is no terminal to ask.
WIDTH = 120

Out = Annotated[Path, typer.Option(help="Folder for the report and the numbers.")]
Seed = Annotated[int, typer.Option(help="Seed of the random numbers.")]


def check_matplotlib() -> None:
    """Say what to install where there is no matplotlib."""
    try:
        import matplotlib  # noqa: F401
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise UsageError("the report needs matplotlib: pip install 'omfb[plot]'") from None


@contextmanager
def new_report(out: Path, seed: int) -> "Iterator[tuple[Path, Track[Any]]]":
    """A folder to write to, which becomes `out` at the end, and what shows progress."""
    if not 0 <= seed < 2**32:
        raise UsageError(f"--seed {seed} is not a seed: give a number from 0 to {2**32 - 1}")
    check_matplotlib()
    from ..report.folder import new_results

    try:
        with new_results(out) as folder, _progress_bars() as bars:
            yield folder, lambda *part: _track(bars, *part)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
        raise UsageError(f"cannot write to {out} ({reason}): give another --out") from None


def _progress_bars() -> "Progress":
    """Bars on stderr, gone when done; none where there is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty(),
    )  # fmt: skip


def _track(bars: "Progress", items: Iterable[T], part: str, total: int) -> Iterator[T]:
    task = bars.add_task(part, total=total)
    for item in items:
        yield item
        bars.advance(task)


def show(outcomes: "list[Outcome]", out: Path, warning: str = "") -> None:
    """The tables and verdicts on the terminal, and where the report is."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for outcome in outcomes:
        console.print(_table(outcome.title, outcome.table))
    console.print(_claims(outcomes))
    if warning:
        console.print(warning, style="bold red", markup=False)
    # On a line of its own and never wrapped, so that it can be clicked, copied or cut out.
    print(f"Report: {out / 'report.html'}")


def _table(title: str, rows: list[dict[str, str]]) -> "Table":
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    columns = list(dict.fromkeys(column for row in rows for column in row))
    for column in columns:
        table.add_column(column, justify="left" if column in ("method", "claim") else "right")
    for row in rows:
        table.add_row(*(row.get(column, "–") for column in columns))
    return table


def _claims(outcomes: "list[Outcome]") -> "Table":
    rows = [
        {"claim": claim.text, "expected": claim.expected, "measured": claim.measured,
         "confirmed": "yes" if claim.confirmed else "NO"}
        for outcome in outcomes for claim in outcome.claims
    ]  # fmt: skip
    return _table("which claims were confirmed", rows)
