"""`omfb complete - -o -`: a filter of lines."""

import shlex
import sys
from typing import TYPE_CHECKING

from ._errors import StoppedError, StopSignal
from ._fill import ROWS_BEFORE, Filler
from ._options import standard_output

if TYPE_CHECKING:
    from ..formats._lines import PipeSource
    from ..learner.checkpoints import Checkpoints


class Filter:
    """Reads a line, fills it, learns from it if asked to, and writes it at once.

    What was written was learned: a checkpoint counts only lines that have been written, and is
    written only between two lines.
    """

    def __init__(
        self, source: "PipeSource", filler: Filler, saver: "Checkpoints", stop: StopSignal,
        new_features: str = "ignore",
    ) -> None:  # fmt: skip
        self._source, self._filler, self._saver = source, filler, saver
        self._stop, self._new_features = stop, new_features
        self._done = 0
        self._lines = source.lines.header_lines
        self._saved = 0
        source.on_idle = self._between_lines

    def run(self, skip: int) -> None:
        """Filter to the end of the pipe; the first `skip` rows were done before."""
        out = standard_output()
        try:
            if skip == 0:
                names = self._filler.further_names
                out.write(self._source.lines.extend_header(self._source.preamble(), names))
                out.flush()
            self._skip(skip)
            while line := self._source.reader.line():
                out.write(self._filled(line))
                out.flush()
                self._between_lines()
            self._save()
        except StoppedError:
            self._leave()

    def _skip(self, rows: int) -> None:
        reader, form = self._source.reader, self._source.lines
        while self._done < rows and (line := reader.line()):
            if not form.is_blank(line):
                if self._done >= rows - ROWS_BEFORE:
                    row = self._source.parse_line(line, self._done, self._lines)
                    self._filler.remember(row, self._time(line))
                self._done += 1
            self._lines += 1
        self._saved = self._done

    def _filled(self, line: bytes) -> bytes:
        import numpy as np

        from ..core.blocks import UnknownCovariateError
        from ..streams import DataError

        form = self._source.lines
        if form.is_blank(line):
            self._lines += 1
            return line
        before = self._filler.model.snapshot()
        try:
            new = self._widen(line)
            row = self._source.parse_line(line, self._done, self._lines)
        except DataError:
            self._save()
            raise
        if new:
            self._filler.add_features(new)
        which = np.flatnonzero(np.isnan(row[0]))
        names = self._filler.further_names
        time = self._time(line)
        if self._filler.learn or len(which) or names:
            try:
                filled, further = self._filler.one(row, time)
            except UnknownCovariateError as error:
                self._filler.model.restore(before)
                self._save()
                raise UnknownCovariateError(self._done, error.feature, error.names) from None
            which = which[~np.isnan(filled[0, which])]
            line = form.fill(line, which, filled[0, which]) if len(which) else line
            line = form.extend(line, names, further[0]) if names else line
        else:
            self._filler.remember(row, time)
        self._done += 1
        self._lines += 1
        return line

    def _widen(self, line: bytes) -> list[str]:
        """Let the source read the names that a line brings, if it may; return them."""
        from ..formats.ndjson import JsonLines
        from ..streams import DataError

        form = self._source.lines
        if self._new_features == "ignore" or not isinstance(form, JsonLines):
            return []
        new = form.new_names(line)
        if new and self._new_features == "error":
            raise DataError(
                f"{self._source.name}: row {self._done + 1}: {new[0]!r} is no feature of the model "
                f"(--new-features error)."
            )
        if new:
            self._source.lines = form.with_names(new)
        return new

    def _time(self, line: bytes) -> float | None:
        """When the row of a line came; None if there is no such column."""
        times = self._source.lines.times(line)
        return None if times is None else float(times[0])

    def _between_lines(self) -> None:
        if self._done > self._saved and self._saver.is_due(self._filler.model.n_seen):
            self._save()
        self._stop.check()

    def _save(self) -> None:
        if self._done > self._saved and self._filler.learn:
            self._saver.save(self._filler.model.snapshot(), pipe={"rows": self._done})
        self._saved = self._done

    def _leave(self) -> None:
        """Save what was learned, and say how to continue."""
        self._save()
        if self._saver.path is None:
            raise StoppedError(f"interrupted after {self._done} rows")
        words = [word for word in sys.argv[1:] if word != "--resume"]
        raise StoppedError(
            f"interrupted after {self._done} rows; {self._saver.path} keeps what was learned. "
            f"Pipe the same input into: {shlex.join(['omfb', *words, '--resume'])}"
        )
