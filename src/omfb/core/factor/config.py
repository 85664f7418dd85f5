"""What the user gives; what is None is found from the stream."""

from dataclasses import dataclass

from ..broyden.config import COUNTS, NUMBERS
from ..checks import checked_count, checked_number, shown

NOISES = ("shared", "feature")
# Components that a table gets where nobody says how many: no more, as the cost grows with r².
MOST_COMPONENTS, SOME_COMPONENTS, LEAST_COMPONENTS = 100, 40, 10


@dataclass(frozen=True, slots=True)
class Settings:
    """A number that is given is obeyed; None is found from the stream.

    Attributes
    ----------
    n_components : int or None
        At most so many; components that the data do not need are switched off.
    memory : float
        From above 0 to 1: what of the past is left after each row.
    lam : float or None
        How many rows the first dictionary weighs.
    ridge : float or None
        Pull of a code towards zero, in the (scaled) data's units; None is the model's own.
    smooth : float or None
        Pull of a code towards that of the row before, for rows in time; None is found.
    shrink : float or None
        Pull of the dictionary towards zero, in rows; None is one for each component.
    inner_iter : int or None
        Alternations between codes and dictionary; None is 1.
    batch_size : int or None
        Rows whose codes come from the same dictionary; None grows, see `schedule.py`.
    center, scale : bool
        Whether a mean is learned, and whether features are measured in deviations of their own.
    noise : {"shared", "feature"}
        Whether the features share one noise, beside their scales.
    outliers : bool
        Whether entries far from what the rest of their row says count as missing, where the stream
        shows heavy tails.
    in_time : bool
        Whether neighbouring rows belong together.
    """

    n_components: int | None = None
    memory: float = 1.0
    lam: float | None = None
    ridge: float | None = None
    smooth: float | None = None
    shrink: float | None = None
    inner_iter: int | None = None
    batch_size: int | None = None
    center: bool = True
    scale: bool = True
    noise: str = "feature"
    outliers: bool = True
    in_time: bool = False

    def __post_init__(self) -> None:
        for name, (what, hint, least, most) in NUMBERS.items():
            value = getattr(self, name)
            if value is not None:
                number = checked_number(name, value, what, hint, least, most)
                object.__setattr__(self, name, number)
        for name, meaning in {"n_components": "how many at most", **COUNTS}.items():
            value = getattr(self, name)
            if value is not None:
                object.__setattr__(self, name, checked_count(name, value, meaning))
        if not self.memory > 0.0:
            raise ValueError("memory=0 is the paper's rule, which finds nothing: use omfb.Rule.")
        if not isinstance(self.noise, str) or self.noise not in NOISES:
            raise ValueError(f"noise must be 'shared' or 'feature', got {shown(self.noise)}.")

    def components_for(self, n_features: int) -> int:
        """How many components a model of so many features has at most.

        Half of the features, and two thirds of few, as each counts more there. Also of rows that
        observe little: those that are too many are switched off, those that are missing are lost.
        """
        if self.n_components is not None:
            return min(self.n_components, n_features)
        usual = max(n_features // 2, min(2 * n_features // 3, SOME_COMPONENTS), LEAST_COMPONENTS)
        return max(1, min(n_features - 1, usual, MOST_COMPONENTS))
