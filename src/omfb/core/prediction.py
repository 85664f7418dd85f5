"""`Prediction`: filled rows and how far they may be off."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .conformal import N_BINS, WITHIN_ONE_DEVIATION, quantile, student_factor
from .finite import quiet, within_range

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Prediction:
    """Values that a model predicts, and their uncertainty if it was asked for.

    It unpacks as ``mean, std``.

    Attributes
    ----------
    mean : ndarray of shape (n_rows, n_features)
        Rows without missing entries; observed entries are as they were given.
    spread : ndarray of shape (n_rows, n_features) or None
        Standard deviations by the model, before calibration: 0 where entries are observed; None
        if they were not asked for.
    errors : ndarray of shape (n_bins,) or None
        Histogram of held-out errors in units of `spread` (`omfb.core.conformal`).
    dof : ndarray of shape (n_features,) or None
        Degrees of freedom of each feature's noise; None if there are many. With few the errors
        follow Student's law, and with none nothing is known: intervals are infinite.
    """

    mean: Array
    spread: Array | None = None
    errors: NDArray[np.float64] | None = None
    dof: NDArray[np.float64] | None = None

    @classmethod
    def observed(cls, rows: Array) -> Self:
        """Of rows that miss nothing: they are as they were given."""
        return cls(rows, np.zeros(rows.shape), np.zeros(N_BINS))

    def __getitem__(self, which: slice) -> "Prediction":
        """Some of the rows."""
        spread = None if self.spread is None else self.spread[which]
        return Prediction(self.mean[which], spread, self.errors, self.dof)

    def __iter__(self) -> Iterator[Array | None]:
        return iter((self.mean, self.std))

    @property
    def std(self) -> Array | None:
        """Calibrated standard deviations: one holds 68 % of the held-out errors."""
        if self.spread is None or self.errors is None:
            return None
        return self.half_width(WITHIN_ONE_DEVIATION)

    def half_width(self, level: float) -> Array:
        """Half the width of the conformal intervals that hold a share `level` of the errors.

        Infinite where nothing is known.
        """
        if self.spread is None or self.errors is None:
            raise ValueError("Intervals need a prediction with std=True.")
        unknown = np.isinf(self.spread)
        with quiet():
            half = quantile(self.errors, level) * self.spread
            if self.dof is not None:
                half = np.where(self.spread > 0.0, half * student_factor(level, self.dof), 0.0)
                unknown |= (self.dof == 0.0) & (self.spread > 0.0)
            return np.where(unknown, np.inf, within_range(half))

    def interval(self, level: float) -> tuple[Array, Array]:
        """Lower and upper bounds of these intervals; infinite where nothing is known."""
        half = self.half_width(level)
        known = np.isfinite(half)
        with quiet():
            low, high = within_range(self.mean - half), within_range(self.mean + half)
            return np.where(known, low, -np.inf), np.where(known, high, np.inf)
