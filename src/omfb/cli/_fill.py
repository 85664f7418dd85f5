"""Rows with what is missing filled in, with or without learning from them."""

import sys
from typing import TYPE_CHECKING, Any

from ._errors import StopSignal

if TYPE_CHECKING:
    from ..learner.learner import Learner


class Filler:
    """Fills rows by a model; with `learn`, the model learns from each row.

    Row by row, a learning filler gives what it gives block by block: each row is filled by the
    dictionary that has learned from all rows up to it.

    Parameters
    ----------
    model : Learner
    learn : bool
    stop : StopSignal
        Looked at after each block.
    bar : Bar or None
    """

    def __init__(self, model: "Learner", learn: bool, stop: StopSignal, bar: Any = None) -> None:
        self.model, self.learn = model, learn
        self._stop, self._bar = stop, bar
        self.dtype = model.dtype

    def __call__(self, rows: Any, done: float | None = None) -> Any:
        """The rows, filled; the rows given are not changed."""
        import numpy as np

        missing = np.isnan(rows)
        filled = rows.copy()
        if self.learn:
            for number in range(len(rows)):
                made = self.one(rows[number : number + 1])
                filled[number, missing[number]] = made[0, missing[number]]
        elif missing.any():
            filled[missing] = self.model.fill(rows)[missing]
        if self._bar is not None:
            self._bar.update(len(rows), done)
        self._stop.check()
        return filled

    def one(self, row: Any) -> Any:
        """What the model makes of one row (1, n_features), observed entries included."""
        row = row.astype(self.dtype, copy=False)
        if self.learn:
            return self.model.learn_and_fill(row)
        return self.model.decode(self.model.encode(row)[0])


class Bar:
    """How far a command is, on stderr if that is a terminal."""

    def __init__(self, what: str, quiet: bool) -> None:
        self._rich: Any = None
        self._rows = 0
        if quiet or sys.stderr is None or not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._rich = Progress(
            TextColumn(what), BarColumn(), TextColumn("{task.fields[rows]:,} rows"),
            TimeElapsedColumn(), console=Console(stderr=True), transient=True,
        )  # fmt: skip
        self._task = self._rich.add_task(what, total=None, rows=0)

    def __enter__(self) -> "Bar":
        if self._rich is not None:
            self._rich.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._rich is not None:
            self._rich.stop()

    def update(self, n_rows: int, done: float | None) -> None:
        """So many rows more, with which this share of all is done."""
        self._rows += n_rows
        if self._rich is not None:
            total = None if done is None else 1.0
            self._rich.update(self._task, total=total, completed=done or 0.0, rows=self._rows)
