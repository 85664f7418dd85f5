"""Checks of parameters: an error names the parameter, the requirement, and the value given."""

import math
import sys
from numbers import Integral, Real
from typing import Any

# Counts are passed to compiled loops, which multiply them in 64-bit integers.
LARGEST_COUNT = 2**31 - 1
SMALLEST, LARGEST = math.ulp(0.0), sys.float_info.max


def checked_number(
    name: str, value: Any, what: str, hint: str,
    least: float = 0.0, most: float = LARGEST,
) -> float:  # fmt: skip
    """The parameter as a plain float; otherwise a TypeError or ValueError."""
    if type(value).__name__ in ("bool", "bool_") or not isinstance(value, Real):
        raise TypeError(f"{name} must be a number {what} ({hint}), got {shown(value)}.")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not least <= number <= most:
        raise ValueError(f"{name} must be {what} ({hint}), got {shown(value)}.")
    return number


def checked_count(name: str, value: Any, meaning: str) -> int:
    """The parameter as a plain int of at least 1; otherwise a TypeError or ValueError."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be a whole number ({meaning}), got {shown(value)}.")
    count = int(value)
    if count < 1:
        raise ValueError(f"{name} must be 1 or more ({meaning}), got {shown(value)}.")
    if count > LARGEST_COUNT:
        raise ValueError(f"{name} must be at most {LARGEST_COUNT} ({meaning}), got {shown(value)}.")
    return count


def checked_level(name: str, value: Any) -> float:
    """The level of an interval: a probability strictly between 0 and 1."""
    level = checked_number(name, value, "between 0 and 1", "try 0.9", 0.0, 1.0)
    if not 0.0 < level < 1.0:
        raise ValueError(f"{name} must be between 0 and 1 (try 0.9), got {shown(value)}.")
    return level


def shown(value: Any) -> str:
    """The value's repr for a message, shortened if it is long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
