"""Rows with what is missing filled in, with or without learning from them."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ._errors import StopSignal, say
from ._extra_columns import ExtraColumns
from ._limits import LeftEmpty

if TYPE_CHECKING:
    from ..core.prediction import Prediction
    from ..formats import Filled
    from ..learner.learner import Learner

# Of a stream in time, how many rows before a row it is filled together with.
ROWS_BEFORE = 32


class Filler:
    """Fills rows by a model; with `learn`, the model learns from each row.

    Row by row, a learning filler gives what it gives block by block: each row is filled by the
    dictionary that has learned from all rows up to it. Rows in time are filled jointly: those of
    a block, or, one by one, each with the rows before it.

    Parameters
    ----------
    model : Learner
    learn : bool
    stop : StopSignal
        Looked at after each block.
    bar : Bar or None
    extra : ExtraColumns or None
        What is written besides the filled values.
    allowed : callable
        Makes filled values, and bounds of intervals, such as the model's user allows.
    left : LeftEmpty or None
        Which cells stay empty.
    in_order : bool
        Whether times of rows may be used.
    """

    def __init__(
        self, model: "Learner", learn: bool, stop: StopSignal, bar: Any = None,
        extra: ExtraColumns | None = None, allowed: Callable[[Any], Any] = lambda values: values,
        left: LeftEmpty | None = None, *, in_order: bool = True,
    ) -> None:  # fmt: skip
        self.model, self.learn = model, learn
        self._stop, self._bar = stop, bar
        self._extra, self._allowed = extra or ExtraColumns(), allowed
        self.dtype = model.dtype
        self._before: Any = [] if model.is_temporal else None
        self._left = left or LeftEmpty()
        self._needs_std = self._extra.needs_std or self._left.needs_std
        self._in_order = in_order and model.is_temporal
        self._times: list[float] = []  # of the rows before
        self._n_rows = 0

    @property
    def further_names(self) -> list[str]:
        """See `Fill.further_names`."""
        names = self.model.feature_names or [f"x{i}" for i in range(self.model.n_features)]
        return self._extra.names(names)

    def __call__(self, rows: Any, done: float | None = None, times: Any = None) -> "Filled":
        """The rows, filled; the rows given are not changed."""
        import numpy as np

        from ..core.blocks import UnknownCovariateError, check_known
        from ..core.prediction import Prediction
        from ..formats import Filled
        from ..learner.predictor import known_features

        try:
            check_known(rows, known_features(self.model.config), self.model.feature_names)
        except UnknownCovariateError as error:
            row = self._n_rows + (error.row or 0)
            raise UnknownCovariateError(row, error.feature, error.names) from None
        self._n_rows += len(rows)
        if self.learn and len(rows) > 0:
            at = [None] * len(rows) if times is None else times.tolist()
            each = [self.one(rows[number : number + 1], at[number]) for number in range(len(rows))]
            filled = Filled(*(np.concatenate(parts) for parts in zip(*each, strict=True)))
        elif np.isnan(rows).any():
            times = times if self._in_order else None
            filled = self._with_extra(rows, self._predicted(rows, times))
        else:
            filled = self._with_extra(rows, Prediction.observed(rows))
        if self._bar is not None:
            self._bar.update(len(rows), done)
        self._stop.check()
        return filled

    def one(self, row: Any, time: float | None = None) -> "Filled":
        """One row (1, n_features) that is filled as soon as it has come."""
        return self._with_extra(row, self._one(row, self._checked(time)))

    def add_features(self, names: list[str]) -> None:
        """Let rows to come have more features."""
        from ..learner.row_blocks import widened

        self.model.add_features(names)
        if self._before is not None:
            self._before = [widened(row, len(names)) for row in self._before]

    def _checked(self, time: float | None) -> float | None:
        """The time of the next row; None, from then on, if it is missing or goes back."""
        if time is None or not self._in_order:
            return None
        if not (self._times and time < self._times[-1]) and time == time:
            return time
        say("omfb: times of rows go back, or are missing: from here on, they are not used")
        self._in_order, self._times = False, []
        self._before = []
        return None

    def _with_extra(self, rows: Any, prediction: "Prediction") -> "Filled":
        """Rows with their missing entries as predicted, and the extra columns."""
        import numpy as np

        from ..formats import Filled

        missing, filled = np.isnan(rows), rows.copy()
        filled[missing] = prediction.mean[missing]
        left = self._left.flags(missing, prediction) if self._left.any else np.zeros_like(missing)
        made = replace(prediction, mean=filled)
        columns = self._extra.columns(self.model, rows, made, self._allowed, left)
        return Filled(np.where(left, np.nan, filled).astype(filled.dtype), columns)

    def remember(self, row: Any, time: float | None = None) -> None:
        """Take a row for the one before the next, without learning from it or filling it."""
        if self._before is not None:
            time = self._checked(time)
            self._before = [*self._before[1 - ROWS_BEFORE :], row.astype(self.dtype, copy=False)]
            if time is not None:
                self._times = [*self._times[1 - ROWS_BEFORE :], time]

    def _one(self, row: Any, time: float | None) -> "Prediction":
        import numpy as np

        from ..core.prediction import Prediction

        row = row.astype(self.dtype, copy=False)
        if self._before is None and not self._needs_std:
            made = self.model.learn_and_fill(row) if self.learn else self.model.fill(row)
            return Prediction(self._allowed(made))
        if self.learn:
            self.model.learn(row, times=None if time is None else np.array([time]))
        times = None if time is None else np.array([*self._times, time])
        prediction = self._predicted(np.concatenate([*(self._before or []), row]), times)
        self.remember(row, time)
        return prediction[-1:]

    def _predicted(self, rows: Any, times: Any = None) -> "Prediction":
        """The rows filled by the model as it is, with their spread if it is needed."""
        prediction = self.model.predict(rows, std=self._needs_std, times=times)
        return replace(prediction, mean=self._allowed(prediction.mean))


class Bar:
    """A progress bar on stderr, if that is a terminal."""

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
        """Count more rows, with which this share of all is done."""
        self._rows += n_rows
        if self._rich is not None:
            total = None if done is None else 1.0
            self._rich.update(self._task, total=total, completed=done or 0.0, rows=self._rows)
