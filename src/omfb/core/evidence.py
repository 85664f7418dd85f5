"""Evidence: what states that went on from the same start have learned, in sums that add up.

A row fades as later ones come: one of n after a weight w counts ((w + t) / (w + n))ᶠ, on average

    u(n) = (w + n − w K) / ((f + 1) n),   K = (w / (w + n))ᶠ

K is what all rows leave of the start. With a_l = u(n) / u(n_l), the rows of part l count what they
would had the rows of all parts come in turns. Of one part it makes that part again.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Self


class MergeError(ValueError):
    """States that cannot be merged: the message says why."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What parts have learned since their start. It adds up, in any order but for rounding.

    Attributes
    ----------
    n_rows : int
        Rows of the parts.
    fading : float
        Their exponents f, summed over the rows.
    weighted : dict
        Sums in which rows fade, each part's divided by its average weight u(n_l).
    counted : dict
        Sums in which they do not.
    """

    n_rows: int
    fading: float
    weighted: dict[str, Any]
    counted: dict[str, Any]

    def plus(self, other: "Evidence") -> "Evidence":
        """The evidence of both."""
        return Evidence(
            self.n_rows + other.n_rows,
            self.fading + other.fading,
            {name: value + other.weighted[name] for name, value in self.weighted.items()},
            {name: value + other.counted[name] for name, value in self.counted.items()},
        )


@dataclass(frozen=True, slots=True)
class Fading:
    """How n rows fade that come after a weight: see the module.

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
        """The fading by which so many rows have left `kept` of what was before them."""
        exponent = math.log(kept) / math.log(weight / (weight + n_rows)) if n_rows else 0.0
        return cls(weight, exponent, n_rows)

    @property
    def kept(self) -> float:
        """K: what is left of what was before."""
        return float((self.weight / (self.weight + self.n_rows)) ** self.exponent)

    @property
    def mean(self) -> float:
        """u(n): what a row counts on average."""
        if self.n_rows == 0:
            return 1.0
        gathered = self.weight + self.n_rows - self.weight * self.kept
        return gathered / ((self.exponent + 1.0) * self.n_rows)


def merge_states(
    start: Any, parts: Sequence[Any], gather: Callable[[Any, Any], Evidence],
    merged: Callable[[Any, Evidence], Any],
) -> Any:  # fmt: skip
    """One state of parts that went on from a start, their evidence added up in their order."""
    if not parts:
        raise MergeError("there is nothing to merge: give at least one model")
    return merged(start, reduce(Evidence.plus, (gather(start, part) for part in parts)))


def check_start(shared: bool) -> None:
    """Refuse parts that did not go on from the start."""
    if not shared:
        raise MergeError(
            "they share no start: all must have gone on from the very model that is given as the "
            "start, under the same parameters"
        )
