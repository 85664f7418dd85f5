"""How far a fit is: a bar on a terminal, a JSON line per second in a log."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ..learner.progress import Pace, bar_where_seen
from ._errors import refuse_other_files

if TYPE_CHECKING:
    from ..learner.fit_stream import Progress

SECONDS_PER_LINE = 1.0


class Shown:
    """Shows and logs the progress of a fit.

    Parameters
    ----------
    max_iter : int
    quiet : bool
        No bar, even on a terminal.
    log : Path or None
        File to append JSON lines to.
    """

    def __init__(self, max_iter: int, quiet: bool, log: Path | None) -> None:
        self._log = _opened(log) if log is not None else None
        self._bar = None if quiet else bar_where_seen(max_iter)
        self._pace = Pace()
        self._logged = time.monotonic()

    def __enter__(self) -> "Shown":
        if self._bar is not None:
            self._bar.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.__exit__(*error)
        if self._log is not None:
            self._log.close()
            log = Path(self._log.name)
            if log.is_file() and log.stat().st_size == 0:
                log.unlink()  # a fit that failed at once has nothing to tell

    def update(self, progress: "Progress") -> None:
        """Tell how far the fit is, if it is time to, or it is the last time."""
        now = time.monotonic()
        self._pace.note(progress, now)
        if self._bar is not None:
            self._bar.update(progress)
        if self._log is None:
            return
        if progress.finished or now - self._logged >= SECONDS_PER_LINE:
            self._logged = now
            self._log.write(json.dumps(self._facts(progress, now)) + "\n")
            self._log.flush()

    def _facts(self, progress: "Progress", now: float) -> dict[str, Any]:
        rate = self._pace.rows_per_second(progress, now)
        left = self._pace.seconds_left(progress, now)
        return {
            "time": round(time.time(), 3),
            "pass": progress.number,
            "passes": progress.max_iter,
            "observations": progress.n_rows,
            "per_second": None if rate is None else round(rate, 1),
            "error": progress.error,
            "done": progress.done,
            "seconds_left": None if left is None else round(left, 1),
        }


def _opened(log: Path) -> TextIO:
    """A log to append to; what holds something else is not touched."""
    refuse_other_files(log, "log", b"{")
    return log.open("a", encoding="utf-8")
