"""Diagnostics of a step (`Info`)."""

import math
import sys
from typing import NamedTuple


class Info(NamedTuple):
    """Energies (sums of squares) over the observed entries of a step's rows."""

    residual: float
    """‖y − C x‖², summed over the rows, with the dictionary before it learned from each row."""
    energy: float
    """‖y‖², summed over the rows."""

    def plus(self, other: "Info") -> "Info":
        """The sum of both."""
        return Info(self.residual + other.residual, self.energy + other.energy).sound()

    def sound(self) -> "Info":
        """Finite energies; where they overflowed, no energy counts as explained."""
        if math.isfinite(self.residual) and math.isfinite(self.energy):
            return self
        energy = self.energy if math.isfinite(self.energy) else sys.float_info.max
        return Info(energy, energy)

    @property
    def error(self) -> float:
        """The prequential error, sqrt(residual / energy); 0 if there is no energy."""
        if not self.energy > 0.0:
            return 0.0
        share = self.residual / self.energy
        if math.isinf(share):
            return math.sqrt(self.residual) / math.sqrt(self.energy)
        return math.sqrt(share)

    @property
    def score(self) -> float:
        """1 − residual / energy: 1 is a perfect fit, below 0 is worse than predicting zero."""
        error = self.error
        return max(1.0 - error * error, -sys.float_info.max)
