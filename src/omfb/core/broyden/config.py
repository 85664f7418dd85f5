"""`BroydenConfig`: the parameters of the paper's algorithm and its extensions, validated."""

from dataclasses import dataclass

from ..checks import LARGEST, LARGEST_COUNT, SMALLEST, checked_count, checked_number, shown


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
    positive_code, positive_dict : bool
        Whether codes and dictionary are nonnegative.
    alpha, l1_ratio : float
        Penalty alpha (l1_ratio ‖x‖₁ + ½ (1 − l1_ratio) ‖x‖²) on a code, beside half of its squared
        residual. If positive, atoms have at most norm 1.
    absent : {"missing", "zero"}
        What entries are that a sparse matrix does not hold.

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
    positive_code: bool = False
    positive_dict: bool = False
    alpha: float = 0.0
    l1_ratio: float = 1.0
    absent: str = "missing"

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
        for name in FLAGS:
            value = getattr(self, name)
            if type(value).__name__ not in ("bool", "bool_"):
                raise TypeError(f"{name} must be True or False, got {shown(value)}.")
            object.__setattr__(self, name, bool(value))
        if self.shrink > 0.0 and self.forget_factor == 0.0:
            raise ValueError(
                f"shrink={self.shrink!r} needs forget_factor > 0, which keeps past codes: set "
                f"both, or shrink=0."
            )
        if not (isinstance(self.absent, str) and self.absent in ABSENT):
            raise ValueError(f"absent must be 'missing' or 'zero', got {shown(self.absent)}.")
        self._refuse_contradictions()

    @property
    def constrains_dictionary(self) -> bool:
        """Whether the dictionary is nonnegative or its atoms have a bounded norm."""
        return self.positive_dict or self.alpha > 0.0

    def _refuse_contradictions(self) -> None:
        penalised = [f"{name}=True" for name in FLAGS if getattr(self, name)]
        penalised += [f"alpha={self.alpha!r}"] * (self.alpha > 0.0)
        if self.l1_ratio != 1.0 and self.alpha == 0.0:
            raise ValueError(
                f"l1_ratio={self.l1_ratio!r} is a share of alpha, which is 0: set alpha as well."
            )
        if penalised and self.shrink > 0.0:
            raise ValueError(
                f"shrink={self.shrink!r} assumes normal codes and atoms, which {penalised[0]} "
                f"excludes: set one of them."
            )
        if self.smooth > 0.0 and (self.positive_code or self.alpha > 0.0):
            codes = next(name for name in penalised if not name.startswith("positive_dict"))
            raise ValueError(
                f"smooth={self.smooth!r} solves the codes of a sequence together, which {codes} "
                f"does not allow: set one of them."
            )


# For each number: the requirement, a hint, the smallest and the largest value allowed.
NUMBERS = {
    "lam": ("greater than 0", "try 1.0", SMALLEST, LARGEST),
    "forget_factor": ("between 0 and 1", "0 is the paper's rule", 0.0, 1.0),
    "ridge": ("0 or more", "0 means no ridge", 0.0, LARGEST),
    "smooth": ("0 or more", "0 means no temporal pull", 0.0, LARGEST),
    "shrink": ("0 or more", "0 leaves the dictionary alone", 0.0, LARGEST),
    "alpha": ("0 or more", "0 means no penalty", 0.0, LARGEST),
    "l1_ratio": ("between 0 and 1", "1 is the lasso, 0 the ridge", 0.0, 1.0),
}
ABSENT = ("missing", "zero")
FLAGS = ("positive_code", "positive_dict")
COUNTS = {
    "inner_iter": "alternations for each update; the paper uses 2",
    "batch_size": "rows that share an update; 1 is the paper's Algorithm 1",
}
