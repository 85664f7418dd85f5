"""What `omfb complete` tells besides the filled values: how sure they are, and a report."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._errors import UsageError

if TYPE_CHECKING:
    from ..learner.learner import Learner

# The level of the intervals whose widths a report tells where no other one is asked for.
USUAL_LEVEL = 0.9
# Rows with an outlier that a report names.
FIRST_ROWS = 5


class Further:
    """Further columns, and counts for a report.

    Parameters
    ----------
    std : bool
        Whether to add the standard deviation of each feature: NAME_std.
    level : float or None
        If given, bounds that hold a value with this probability: NAME_low, NAME_high.
    report : bool
        Whether to count what a report tells.
    """

    def __init__(self, std: bool = False, level: float | None = None, report: bool = False) -> None:
        if level is not None and not 0.0 < level < 1.0:
            raise UsageError(f"--interval must be between 0 and 1, such as 0.9, not {level}")
        self._std, self._level, self._report = std, level, report
        self.needs_deviations = std or level is not None or report
        self._rows = 0
        self._missing: Any = 0
        self._widths: Any = 0.0
        self._outliers: dict[int, list[int]] = {}

    def check(self, learner: "Learner") -> None:
        """Refuse a model that does not know how sure it is."""
        if self.needs_deviations and not _knows_noise(learner):
            raise UsageError(
                "the model follows a rule that was given in full, which knows nothing of noise: "
                "fit without --memory 0 to use --std, --interval or --report"
            )

    def is_in_time(self, learner: "Learner") -> bool:
        """Whether the model fills rows from their neighbours."""
        if not _knows_noise(learner):
            return False
        state = learner.used()
        return state.memory is not None

    def names(self, features: list[str]) -> list[str]:
        """Names of the further columns."""
        endings = ["std"] * self._std + ["low", "high"] * (self._level is not None)
        return [f"{name}_{ending}" for name in features for ending in endings]

    def filled(self, learner: "Learner", rows: Any) -> tuple[Any, Any]:
        """Filled rows, and the deviation of each entry: 0 where it is observed."""
        from ..core.factor import predict as encode
        from ..core.factor import temporal as in_time
        from ..core.finite import made_finite, quiet

        fill = in_time.fill_in_time if self.is_in_time(learner) else encode.fill
        with quiet():
            made, deviations = fill(learner.used(), rows, deviations=True)
            return made_finite(made, rows), deviations

    def columns(
        self, learner: "Learner", rows: Any, filled: Any, deviations: Any,
        allowed: Callable[[Any], Any],
    ) -> Any:  # fmt: skip
        """The further columns of rows that were filled; counts for the report."""
        import numpy as np

        from ..core.conformal import calibration, quantile
        from ..core.factor.predict import errors_of
        from ..core.finite import quiet, within_range

        if not (self._std or self._report or self._level is not None):
            return np.empty((len(rows), 0))
        missing, errors = np.isnan(rows), errors_of(learner.used())
        columns = [calibration(errors) * deviations] if self._std else []
        if self._level is not None:
            half = quantile(errors, self._level) * deviations
            bounds = (allowed(filled - half), allowed(filled + half))
            columns += [np.where(missing, bound, filled) for bound in bounds]
        if self._report:
            width = 2.0 * quantile(errors, self._level or USUAL_LEVEL)
            self._missing = self._missing + missing.sum(axis=0)
            self._widths = self._widths + width * np.where(missing, deviations, 0.0).sum(axis=0)
            self._count_outliers(learner, rows)
            self._rows += len(rows)
        if not columns:
            return np.empty((len(rows), 0))
        with quiet():
            together = np.stack(columns, axis=2).reshape(len(rows), len(columns) * rows.shape[1])
            return within_range(together.astype(learner.dtype))

    def _count_outliers(self, learner: "Learner", rows: Any) -> None:
        import numpy as np

        from ..core.factor.e_step import codes_of
        from ..core.factor.holdout_scores import outlier_limit
        from ..core.factor.predict import settled
        from ..core.factor.winsorize import believed

        state = settled(learner.state)
        if not state.drops:
            return
        given = believed(state, np.ascontiguousarray(rows, dtype=state.C.dtype))
        dropped = codes_of(state, given, limit=outlier_limit(state)).dropped
        starts, features, _ = given.entries
        for at in np.flatnonzero(dropped).tolist():
            row = int(np.searchsorted(starts, at, side="right")) - 1
            self._outliers.setdefault(int(features[at]), []).append(self._rows + row + 1)

    def report(self, features: list[str]) -> str:
        """A line for each column: missing, filled, outliers with their first rows, mean width."""
        import numpy as np

        level = self._level or USUAL_LEVEL
        table = [["column", "missing", "filled", "outliers", f"width of {level:g}", "outlier rows"]]
        missing = np.broadcast_to(self._missing, len(features))
        widths = np.broadcast_to(self._widths, len(features))
        for at, name in enumerate(features):
            count, rows = int(missing[at]), self._outliers.get(at, [])
            width = f"{widths[at] / count:.4g}" if count else "-"
            shown = ",".join(map(str, rows[:FIRST_ROWS])) + (",…" if len(rows) > FIRST_ROWS else "")
            table.append([name, str(count), str(count), str(len(rows)), width, shown or "-"])
        sizes = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = (
            "  ".join(
                cell.ljust(size) if at in (0, 5) else cell.rjust(size)
                for at, (cell, size) in enumerate(zip(line, sizes, strict=True))
            )
            for line in table
        )
        return "".join(line.rstrip() + "\n" for line in lines)


def _knows_noise(learner: "Learner") -> bool:
    from ..core.factor.state import Model

    return isinstance(learner.state, Model)
