"""How far a fit is: a bar on a terminal, a JSON line per second in a log."""

import json
import sys
import time
from pathlib import Path
from typing import Any

SECONDS_PER_LINE = 1.0
SECONDS_PER_FRAME = 0.2


class Progress:
    """Shows and logs the progress of a fit.

    Parameters
    ----------
    model : estimator
    source : Source
    quiet : bool
        No bar, even on a terminal.
    log : Path or None
        File to append JSON lines to.
    """

    def __init__(self, model: Any, source: Any, quiet: bool, log: Path | None) -> None:
        self._model, self._source = model, source
        self._log = log.open("a", encoding="utf-8") if log is not None else None
        self._bar = None if quiet or not sys.stderr.isatty() else _bar(model.max_iter)
        self._began = self._shown = self._logged = time.monotonic()
        self._rows_before: int | None = None
        self._share_before = 0.0

    def __enter__(self) -> "Progress":
        if self._bar is not None:
            self._bar[0].start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar[0].stop()
        if self._log is not None:
            self._log.close()

    def update(self, place: Any, last: bool = False) -> None:
        """Tell where the fit is, if it is time to, or it is the last time."""
        now = time.monotonic()
        if self._rows_before is None:  # a resumed fit has rows from before
            self._rows_before = self._model.n_samples_seen_
            self._share_before, self._began = self._share(place), now
        facts = None
        if self._log is not None and (last or now - self._logged >= SECONDS_PER_LINE):
            self._logged = now
            facts = self._facts(place, now - self._began)
            self._log.write(json.dumps(facts) + "\n")
            self._log.flush()
        if self._bar is not None and (last or now - self._shown >= SECONDS_PER_FRAME):
            self._shown = now
            _show(*self._bar, facts or self._facts(place, now - self._began))

    def _share(self, place: Any) -> float:
        if place.finished:
            return 1.0
        within = self._source.fraction(place.position)
        return (place.number - 1 + (within or 0.0)) / self._model.max_iter

    def _facts(self, place: Any, seconds: float) -> dict[str, Any]:
        model = self._model
        known = place.finished or self._source.fraction(place.position) is not None
        share = self._share(place) if known else None
        gained = 0.0 if share is None else share - self._share_before
        left = seconds * (1.0 - share) / gained if share is not None and gained > 0.0 else None
        rows = model.n_samples_seen_ - (self._rows_before or 0)
        return {
            "time": round(time.time(), 3),
            "pass": place.number,
            "passes": model.max_iter,
            "observations": model.n_samples_seen_,
            "per_second": round(rows / seconds, 1) if seconds > 0.0 else None,
            "error": model.prequential_error_,
            "done": share,
            "seconds_left": None if left is None else round(left, 1),
        }


def _bar(n_passes: int) -> tuple[Any, Any]:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as RichProgress

    bar = RichProgress(
        TextColumn("pass {task.fields[at]} of " + str(n_passes)),
        BarColumn(),
        TextColumn("{task.fields[rate]} rows/s"),
        TextColumn("error {task.fields[error]}"),
        TextColumn("{task.fields[left]}"),
        console=Console(stderr=True),
        transient=True,
    )
    return bar, bar.add_task("fit", total=None, at=1, rate="–", error="–", left="")


def _show(bar: Any, task: Any, facts: dict[str, Any]) -> None:
    left = facts["seconds_left"]
    share = facts["done"]
    bar.update(
        task,
        total=None if share is None else 1.0,
        completed=share or 0.0,
        at=facts["pass"],
        rate=f"{facts['per_second'] or 0:,.0f}",
        error=f"{facts['error']:.4f}",
        left="" if left is None else f"{int(left // 60)}:{int(left % 60):02d} left",
    )
