"""Merging: states that went on from the same start, each with rows of its own, become one.

C S is the sum of y xᵀ, so what rows tell adds up. With S₀ and C₀ the start, of which part l has
kept k_l, n_l its rows and n all of them,

    S = K S₀ + Σ a_l (S_l − k_l S₀),   C = C₀ + Σ a_l (C_l − C₀) S_l S⁻¹

A row fades as later ones come: one of n after a weight w counts ((w + t) / (w + n))ᶠ, on average

    u(n) = (w + n − w K) / ((f + 1) n),   K = (w / (w + n))ᶠ

K is what all rows leave of the start, and a_l = u(n) / u(n_l) makes the rows of a part count what
they would had the rows of all parts come in turns. Of one part it makes that part again.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any, Self

import numpy as np

from .kernels.shared import gram, inverse_of
from .state import State


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


def merge(start: State, parts: Sequence[State]) -> State:
    """One state of the rule from states that went on from the same start.

    Parameters
    ----------
    start : State
        With ``memory=1`` and ``shrink=0``: others keep nothing that adds up.
    parts : sequence of State
        What `step` made of it, each with rows of its own.

    Examples
    --------
    >>> import numpy as np
    >>> import omfb
    >>> from omfb.core.merge import merge
    >>> Y = np.random.default_rng(0).random((100, 20))
    >>> start = omfb.init(Y, n_components=3, seed=0)
    >>> merge(start, [omfb.step(start, rows)[0] for rows in (Y[:50], Y[50:])]).n_seen
    100
    """
    return merge_states(start, parts, gather, merged)


def gather(start: State, part: State) -> Evidence:
    """What a part has learned since its start."""
    _check_rule(start)
    n_rows = part.n_seen - start.n_seen
    check_start(
        n_rows >= 0
        and part.C.shape == start.C.shape
        and part.C.dtype == start.C.dtype
        and part.rule == start.rule
        and (part.scale, part.least_ridge) == (start.scale, start.least_ridge)
        and 0.0 < part.kept <= start.kept
    )
    kept = part.kept / start.kept
    fading = Fading.of(start.weight, kept, n_rows)
    change = (part.C.astype(np.float64) - start.C) @ part.S
    return Evidence(
        n_rows,
        n_rows * fading.exponent,
        {"S": (part.S - kept * start.S) / fading.mean, "change": change / fading.mean},
        {},
    )


def merged(start: State, evidence: Evidence) -> State:
    """The start with what its parts have learned."""
    n_rows = evidence.n_rows
    fading = Fading(start.weight, evidence.fading / max(n_rows, 1), n_rows)
    S = fading.kept * start.S + fading.mean * evidence.weighted["S"]
    C = start.C + fading.mean * evidence.weighted["change"] @ inverse_of(S)
    C = C.astype(start.C.dtype)
    return replace(
        start, C=C, G=gram(C), S=S, code=None, n_seen=start.n_seen + n_rows, drift=0,
        kept=fading.kept * start.kept,
    )  # fmt: skip


def check_start(shared: bool) -> None:
    """Refuse parts that did not go on from the start."""
    if not shared:
        raise MergeError(
            "they share no start: all must have gone on from the very model that is given as the "
            "start, under the same parameters"
        )


def _check_rule(start: State) -> None:
    if start.rule.memory != 1.0:
        raise MergeError(
            f"memory={start.rule.memory:g} keeps nothing that adds up: only models with memory=1 "
            f"can be merged"
        )
    if start.rule.shrink > 0.0:
        raise MergeError(
            f"shrink={start.rule.shrink:g} would count once for each model: only models with "
            f"shrink=0, or with none given, can be merged"
        )
