"""Progress of a fit for users: a bar in terminals and notebooks, or a line for each pass."""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..core.linalg.compiling import announced
from .fit_stream import Progress

logger = logging.getLogger("omfb")

SECONDS_PER_FRAME = 0.2

OnBlock = Callable[[Progress], None]


@contextmanager
def shown_progress(max_iter: int, verbose: Any) -> Iterator[OnBlock | None]:
    """Show the progress of a fit; gives the function to call after each block.

    Without `verbose` nothing is shown. Without a bar, and unless logging is configured, the lines
    that are logged for each pass are printed during the fit, and only then: logging that is
    configured later prints them once.
    """
    if not verbose:
        yield None
        return
    bar = bar_where_seen(max_iter)
    if bar is not None:
        with bar:
            yield bar.update
        return
    if logger.hasHandlers():
        with announced(logger.info):
            yield None
        return
    handler, level = logging.StreamHandler(), logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        with announced(logger.info):
            yield None
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


def bar_where_seen(max_iter: int) -> "Bar | None":
    """A bar in a terminal or a notebook, if Rich is installed; else None."""
    try:
        from rich.console import Console
    except ModuleNotFoundError:
        return None
    console = Console(stderr=True)
    return Bar(console, max_iter) if console.is_terminal or console.is_jupyter else None


class Bar:
    """A bar for a fit, with the rate, the error and the time left.

    Parameters
    ----------
    console : rich.console.Console
    max_iter : int
        Passes.
    """

    def __init__(self, console: Any, max_iter: int) -> None:
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(
            TextColumn("pass {task.fields[at]} of " + str(max_iter)),
            BarColumn(),
            TextColumn("{task.fields[rate]} rows/s"),
            TextColumn("error {task.fields[error]}"),
            TextColumn("{task.fields[left]}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("fit", total=None, at=1, rate="–", error="–", left="")
        self._pace = Pace()
        self._shown = 0.0
        self._announced = announced(self.note)

    def __enter__(self) -> "Bar":
        self._bar.start()
        self._announced.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._announced.__exit__(None, None, None)
        self._bar.stop()

    def note(self, message: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(message, markup=False, highlight=False)

    def update(self, progress: Progress) -> None:
        """Show the progress, at most five times a second, and at the end."""
        now = time.monotonic()
        self._pace.note(progress, now)
        if now - self._shown < SECONDS_PER_FRAME and not progress.finished:
            return
        self._shown = now
        left = self._pace.seconds_left(progress, now)
        self._bar.update(
            self._task,
            total=None if progress.done is None else 1.0,
            completed=progress.done or 0.0,
            at=progress.number,
            rate=f"{self._pace.rows_per_second(progress, now) or 0:,.0f}",
            error=f"{progress.error:.4f}",
            left="" if left is None else f"{int(left // 60)}:{int(left % 60):02d} left",
        )


class Pace:
    """The rate of a fit since it began or was resumed."""

    def __init__(self) -> None:
        self._began: float | None = None
        self._rows = 0
        self._done = 0.0

    def note(self, progress: Progress, now: float) -> None:
        """Start counting at the first call."""
        if self._began is None:
            self._began, self._rows, self._done = now, progress.n_rows, progress.done or 0.0

    def rows_per_second(self, progress: Progress, now: float) -> float | None:
        """Rows a second; None before any time has passed."""
        seconds = now - (self._began or now)
        return (progress.n_rows - self._rows) / seconds if seconds > 0.0 else None

    def seconds_left(self, progress: Progress, now: float) -> float | None:
        """About how long it will take; None if that is unknown."""
        if progress.done is None or progress.done <= self._done:
            return None
        seconds = now - (self._began or now)
        return seconds * (1.0 - progress.done) / (progress.done - self._done)
