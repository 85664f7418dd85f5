"""`omfb complete --max-gap` and `--max-std`: cells that stay empty, in files of any length."""

from typing import TYPE_CHECKING, Any

from ._errors import UsageError, say, usage_errors

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..core.prediction import Prediction
    from ..estimators.known import LongGaps
    from ..formats import TableSource
    from ..learner.learner import Learner


class LeftEmpty:
    """Which missing cells stay empty, and how many do.

    Parameters
    ----------
    max_gap : str or None
        A number of rows, or a duration such as 6h.
    max_std : float or None
        In standard deviations of a cell's column.
    """

    def __init__(self, max_gap: str | None = None, max_std: float | None = None) -> None:
        from ..estimators.known import Limits

        gap: Any = max_gap
        if max_gap is not None and max_gap.strip().lstrip("+-").isdigit():
            gap = int(max_gap)
        with usage_errors():
            self._limits = Limits(gap, max_std)
        self._gaps: LongGaps | None = None
        self._scale: Any = None
        self._first = 0
        self.n_missing = self.n_left = 0

    @property
    def any(self) -> bool:
        """Whether some cells may stay empty."""
        return self._limits.any

    @property
    def needs_std(self) -> bool:
        """Whether the deviation of filled values decides."""
        return self._limits.std is not None

    def check(self, learner: "Learner") -> None:
        """Refuse a model that has no uncertainty."""
        if self.needs_std and not learner.engine.has_uncertainty:
            raise UsageError(
                "a model of --estimator omfb estimates no noise: --max-std needs another one"
            )

    def prepare(self, source: "TableSource", learner: "Learner") -> None:
        """Look for the long gaps of a file, which may reach over many blocks of rows."""
        import numpy as np

        from ..core.blocks import dense_with_holes
        from ..core.factor.engine import FACTOR
        from ..estimators.known import LongGaps

        if self.needs_std:
            self._scale = FACTOR.scale(learner.state)
        if self._limits.rows is None and self._limits.seconds is None:
            return
        if not source.rereadable:
            raise UsageError(
                "--max-gap must know how long a gap will be, and rows of a pipe come one by one: "
                "save them first, or use --max-std"
            )
        times = source.row_times()
        if self._limits.seconds is not None and (times is None or times.fault is not None):
            raise UsageError(
                f"--max-gap is a duration, but {source.name} has no column of dates that ascend: "
                f"give a number of rows"
            )
        self._gaps = LongGaps(self._limits, source.n_features)
        for rows, _, at in source.timed_blocks():
            self._gaps.add(np.isnan(dense_with_holes(rows)), at)
        self._gaps.end()

    def flags(self, missing: "NDArray[np.bool_]", prediction: "Prediction") -> "NDArray[np.bool_]":
        """Which of the next rows' missing cells stay empty."""
        import numpy as np

        left = np.zeros_like(missing)
        if self._gaps is not None:
            left |= self._gaps.within(self._first, len(missing))
        if self.needs_std:
            left |= self._limits.uncertain(missing, prediction.std, self._scale)
        self._first += len(missing)
        self.n_missing += int(missing.sum())
        self.n_left += int(left.sum())
        return left

    def tell(self, output: str) -> None:
        """Say how many cells were filled, and how many not."""
        say(f"{output}: {self.n_missing - self.n_left} values filled, {self.n_left} left empty")
