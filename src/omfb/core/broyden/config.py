"""`BroydenConfig`: the parameters of the paper's algorithm and its extensions, validated."""

from dataclasses import dataclass

from ..checks import LARGEST, LARGEST_COUNT, SMALLEST, checked_count, checked_number


@dataclass(frozen=True, slots=True)
class BroydenConfig:
    """Parameters of the update rule. The defaults are the paper's Algorithm 1.

    Numbers of any type are accepted and stored as plain floats and ints. An invalid value raises
    a TypeError or ValueError that names the parameter.

    Attributes
    ----------
    lam : float
        How stiffly the dictionary stays where it is.
    forget_factor : float
        Share of the precision S that each row keeps: from 0 (past codes do not count, the paper's
        rule) to 1 (all count, later ones more).
    ridge, smooth : float
        Pull of a code towards zero, and towards the code before.
    shrink : float
        Pull of the dictionary towards zero; if positive, codes count with their uncertainty.
    inner_iter : int
        Alternations between code and dictionary for each row or mini-batch.
    batch_size : int
        Rows that share one update of the dictionary.

    Examples
    --------
    >>> from omfb.core.broyden.config import BroydenConfig
    >>> BroydenConfig(ridge=1).ridge
    1.0
    >>> BroydenConfig(forget_factor=2)
    Traceback (most recent call last):
        ...
    ValueError: forget_factor must be between 0 and 1 (0 is the paper's rule), got 2.
    """

    lam: float = 1.0
    forget_factor: float = 0.0
    ridge: float = 0.0
    smooth: float = 0.0
    shrink: float = 0.0
    inner_iter: int = 2
    batch_size: int = 1

    def __post_init__(self) -> None:
        # One type per parameter: Numba compiles a kernel for each type it meets.
        for name, (what, hint, least, most) in NUMBERS.items():
            value = getattr(self, name)
            if type(value) is float and least <= value <= most:
                continue
            value = checked_number(name, value, what, hint, least, most)
            object.__setattr__(self, name, value)
        for name, meaning in COUNTS.items():
            value = getattr(self, name)
            if type(value) is int and 0 < value <= LARGEST_COUNT:
                continue
            object.__setattr__(self, name, checked_count(name, value, meaning))
        if self.shrink > 0.0 and self.forget_factor == 0.0:
            raise ValueError(
                f"shrink={self.shrink!r} needs forget_factor > 0, which keeps past codes: set "
                f"both, or shrink=0."
            )


# For each number: the requirement, a hint, the smallest and the largest value allowed.
NUMBERS = {
    "lam": ("greater than 0", "try 1.0", SMALLEST, LARGEST),
    "forget_factor": ("between 0 and 1", "0 is the paper's rule", 0.0, 1.0),
    "ridge": ("0 or more", "0 means no ridge", 0.0, LARGEST),
    "smooth": ("0 or more", "0 means no temporal pull", 0.0, LARGEST),
    "shrink": ("0 or more", "0 leaves the dictionary alone", 0.0, LARGEST),
}
COUNTS = {
    "inner_iter": "alternations for each update; the paper uses 2",
    "batch_size": "rows that share an update; 1 is the paper's Algorithm 1",
}
