"""`omfb reproduce`: the paper's experiments, their report, and a table on the terminal."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ._errors import UsageError, guarded, say

if TYPE_CHECKING:
    from rich.progress import Progress
    from rich.table import Table

    from ..paper.experiments.outcome import Outcome

T = TypeVar("T")

ALL = "all"
NAMES = ("faces-online", "faces-missing")
# Wide enough for the tables where there is no terminal to ask.
WIDTH = 120


@guarded
def reproduce(
    experiment: Annotated[str, typer.Argument(help="faces-online, faces-missing or all.")] = ALL,
    out: Annotated[Path, typer.Option(help="Folder for the report and the numbers.")] = Path(
        "results"
    ),
    quick: Annotated[bool, typer.Option("--quick", help="A short run of half a minute.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random numbers.")] = 0,
) -> None:
    """Run the paper's two experiments and report which results were reproduced."""
    if experiment not in (*NAMES, ALL):
        raise UsageError(f"unknown experiment {experiment!r}: choose {', '.join(NAMES)} or {ALL}")
    if not 0 <= seed < 2**32:
        raise UsageError(f"--seed {seed} is not a seed: give a number from 0 to {2**32 - 1}")
    names = list(NAMES) if experiment == ALL else [experiment]
    try:
        from ..paper.reproduce import reproduce as run
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise UsageError("the report needs matplotlib: pip install 'omfb[plot]'") from None
    from ..paper.experiments.images import load_images
    from ..paper.results_folder import new_results

    try:
        with new_results(out) as folder, progress_bars() as bars:
            images = load_images()
            if images.warning:
                say(f"omfb: {images.warning}")
            outcomes = run(
                names,
                images,
                folder,
                quick=quick,
                seed=seed,
                track=lambda *part: _track(bars, *part),
            )
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.strerror else str(error)
        raise UsageError(f"cannot write to {out} ({reason}): give another --out") from None
    _show(outcomes, images.warning, out / "report.html")


def progress_bars() -> "Progress":
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


def _show(outcomes: "list[Outcome]", warning: str, report: Path) -> None:
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else WIDTH)
    for outcome in outcomes:
        console.print(_table(outcome.experiment, outcome.table))
    console.print(_claims(outcomes))
    if warning:
        console.print(warning, style="bold red", markup=False)
    # On a line of its own and never wrapped, so that it can be clicked, copied or cut out.
    print(f"Report: {report}")


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
         "reproduced": "yes" if claim.reproduced else "NO"}
        for outcome in outcomes for claim in outcome.claims
    ]  # fmt: skip
    return _table("which results were reproduced", rows)
