"""Evidence: sums of statistics since a common start, which add up over the parts of a merge.

Rows fade as later ones arrive: row t of n after a weight w counts ((w + t) / (w + n))ᶠ, on average

    u(n) = (w + n − w K) / ((f + 1) n),   K = (w / (w + n))ᶠ

K is the share of the start that is left after all rows. With a_l = u(n) / u(n_l), the rows of part
l count as if the rows of all parts had been interleaved. Merging a single part gives that part.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self


class MergeError(ValueError):
    """States that cannot be merged, with the reason."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Statistics that parts have gathered since their start; sums, in any order up to rounding.

    Attributes
    ----------
    n_rows : int
        Number of rows of the parts.
    fading : float
        Sum over the rows of their exponents f.
    weighted : dict
        Sums in which rows fade, each part's divided by its average weight u(n_l).
    counted : dict
        Sums in which rows do not fade.
    """

    n_rows: int
    fading: float
    weighted: dict[str, Any]
    counted: dict[str, Any]

    def plus(self, other: "Evidence") -> "Evidence":
        """The sum of both."""
        return Evidence(
            self.n_rows + other.n_rows,
            self.fading + other.fading,
            {name: value + other.weighted[name] for name, value in self.weighted.items()},
            {name: value + other.counted[name] for name, value in self.counted.items()},
        )


@dataclass(frozen=True, slots=True)
class Fading:
    """The fading of n rows after a weight, as in the module's docstring.

    Attributes
    ----------
    weight, exponent : float
    n_rows : int
    """

    weight: float
    exponent: float
    n_rows: int

    @classmethod
    def of(cls, weight: float, kept: float, n_rows: int) -> Self:
        """The fading for which `n_rows` rows leave a share `kept` of what came before."""
        exponent = math.log(kept) / math.log(weight / (weight + n_rows)) if n_rows else 0.0
        return cls(weight, exponent, n_rows)

    @property
    def kept(self) -> float:
        """K: the share that is left of what came before."""
        return float((self.weight / (self.weight + self.n_rows)) ** self.exponent)

    @property
    def mean(self) -> float:
        """u(n): the average weight of a row."""
        if self.n_rows == 0:
            return 1.0
        gathered = self.weight + self.n_rows - self.weight * self.kept
        return gathered / ((self.exponent + 1.0) * self.n_rows)


def merge_states(
    start: Any, parts: Sequence[Any], gather: Callable[[Any, Any], Evidence],
    merged: Callable[[Any, Evidence], Any],
) -> Any:  # fmt: skip
    """Merge parts that continued from a start, adding their evidence in the given order."""
    if not parts:
        raise MergeError("there is nothing to merge: give at least one model")
    return merged(start, reduce(Evidence.plus, (gather(start, part) for part in parts)))


def check_start(shared: bool) -> None:
    """Raise a MergeError for parts that did not continue from the start."""
    if not shared:
        raise MergeError(
            "they have no common start: all must have continued from the model that is given as "
            "the start, with the same parameters"
        )
