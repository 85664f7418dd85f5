"""What `omfb complete` writes besides the filled values: their uncertainty, and a report."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..core.prediction import Prediction
    from ..learner.learner import Learner

# Level of the intervals whose widths a report shows if no other one is asked for.
DEFAULT_LEVEL = 0.9
# Rows with an outlier that a report names.
FIRST_ROWS = 5


class ExtraColumns:
    """Extra columns, and counts for a report.

    Parameters
    ----------
    std : bool
        Whether to add the standard deviation of each feature: NAME_std.
    level : float or None
        If given, bounds that contain a value with this probability: NAME_low, NAME_high.
    report : bool
        Whether to count for a report.
    leaves : bool
        Whether some missing values may stay empty, which the report then counts.
    """

    def __init__(
        self, std: bool = False, level: float | None = None, report: bool = False,
        leaves: bool = False,
    ) -> None:  # fmt: skip
        if level is not None and not 0.0 < level < 1.0:
            raise UsageError(f"--interval must be between 0 and 1, such as 0.9, not {level}")
        self._std, self._level, self._report, self._leaves = std, level, report, leaves
        self.needs_std = std or level is not None or report
        self._rows = 0
        self._missing: Any = 0
        self._left: Any = 0
        self._widths: Any = 0.0
        self._outliers: dict[int, list[int]] = {}

    def check(self, learner: "Learner") -> None:
        """Refuse a model that has no uncertainty."""
        if self.needs_std and not learner.engine.has_uncertainty:
            raise UsageError(
                "a model of --estimator omfb estimates no noise: --std, --interval and --report "
                "need another one"
            )

    def names(self, features: list[str]) -> list[str]:
        """Names of the extra columns."""
        endings = ["std"] * self._std + ["low", "high"] * (self._level is not None)
        return [f"{name}_{ending}" for name in features for ending in endings]

    def columns(
        self, learner: "Learner", rows: "NDArray[Any]", prediction: "Prediction",
        allowed: Callable[[Any], Any], left: "NDArray[np.bool_]",
    ) -> "NDArray[Any]":  # fmt: skip
        """The extra columns of filled rows; counts for the report.

        Parameters
        ----------
        learner : Learner
        rows : ndarray of shape (n_rows, n_features)
            As they were given.
        prediction : Prediction
            The filled rows and, if needed, their spread.
        allowed : callable
            Makes bounds such as the model's user allows.
        left : ndarray of shape (n_rows, n_features)
            Which missing values stay empty: they have no bounds.
        """
        import numpy as np

        from ..core.finite import quiet, within_range

        missing = np.isnan(rows)
        if self._report:
            self._count(learner, rows, missing, left, prediction)
        columns: list[Any] = [prediction.std] if self._std else []
        if self._level is not None:
            low, high = prediction.interval(self._level)
            columns += [np.where(missing & ~left, allowed(side), np.nan) for side in (low, high)]
        if not columns:
            return np.empty((len(rows), 0))
        with quiet():
            together = np.stack(columns, axis=2).reshape(len(rows), len(columns) * rows.shape[1])
            return within_range(together.astype(learner.dtype))

    def _count(
        self, learner: "Learner", rows: "NDArray[Any]", missing: "NDArray[np.bool_]",
        left: "NDArray[np.bool_]", prediction: "Prediction",
    ) -> None:  # fmt: skip
        import numpy as np

        widths = 2.0 * prediction.half_width(self._level or DEFAULT_LEVEL)
        self._missing = self._missing + missing.sum(axis=0)
        self._left = self._left + left.sum(axis=0)
        self._widths = self._widths + np.where(missing & ~left, widths, 0.0).sum(axis=0)
        for row, feature in zip(*learner.outlier_entries(rows), strict=True):
            self._outliers.setdefault(int(feature), []).append(self._rows + int(row) + 1)
        self._rows += len(rows)

    def report(self, features: list[str]) -> str:
        """A line for each column: missing, filled, left empty, outliers, width, outlier rows."""
        import numpy as np

        level = self._level or DEFAULT_LEVEL
        heading = ["column", "missing", "filled", *["left"] * self._leaves, "outliers"]
        table = [[*heading, f"width of {level:g}", "outlier rows"]]
        missing, left = (np.broadcast_to(n, len(features)) for n in (self._missing, self._left))
        widths = np.broadcast_to(self._widths, len(features))
        for at, name in enumerate(features):
            empty, rows = int(left[at]), self._outliers.get(at, [])
            count = int(missing[at]) - empty
            width = f"{widths[at] / count:.4g}" if count else "-"
            shown = ",".join(map(str, rows[:FIRST_ROWS])) + (",…" if len(rows) > FIRST_ROWS else "")
            counts = (count + empty, count, *[empty] * self._leaves, len(rows))
            table.append([name, *map(str, counts), width, shown or "-"])
        sizes = [max(map(len, column)) for column in zip(*table, strict=True)]
        lines = (
            "  ".join(
                cell.ljust(size) if at in (0, len(sizes) - 1) else cell.rjust(size)
                for at, (cell, size) in enumerate(zip(line, sizes, strict=True))
            )
            for line in table
        )
        return "".join(line.rstrip() + "\n" for line in lines)
