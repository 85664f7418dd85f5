"""`FactorConfig`: what the user gives the factor model. It checks itself."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..checks import checked_count, checked_number, shown
from .hyper import Hyper

NOISES = ("isotropic", "diagonal")


@dataclass(frozen=True, slots=True)
class TimeIndex:
    """The index of the rows that a model learns from: forecasts go on with it.

    Attributes
    ----------
    kind : {"datetime", "period", "timedelta"}
    freq : str or None
        How often rows come, as pandas writes it; None if they are uneven.
    timezone, name : str or None
    """

    kind: str
    freq: str | None = None
    timezone: str | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        if self.kind not in ("datetime", "period", "timedelta"):
            raise ValueError(
                f"kind must be 'datetime', 'period' or 'timedelta', got {self.kind!r}."
            )


@dataclass(frozen=True, slots=True)
class FactorConfig:
    """What the user gives; everything else is estimated from the rows.

    Attributes
    ----------
    n_components : int or None
        Upper bound; components that the data do not need are switched off. None is
        `components_for`.
    forget_factor : float or "auto"
        Weight that the past keeps with each new row: 0.5 to 1 (nothing is forgotten). "auto" is 1
        until a change is noticed; then most of the past is forgotten.
    center, scale : bool
        Whether a mean is learned, and whether features are measured in standard deviations of
        their own.
    noise : {"isotropic", "diagonal"}
        Whether the features share one noise variance (beside their scales), or have one each.
    robust : bool
        Whether entries far from what the rest of their row predicts count as missing, where the
        rows have heavy tails.
    temporal : bool
        Whether rows are consecutive in time.
    seasons : str or None
        Cycles in time: "auto" looks for them, None has none. Otherwise their lengths, separated by
        blanks: "24" is 24 rows, "86400s" is a day.
    covariates : str or None
        Features that are always known, by their numbers, separated by blanks.
    drop_after : int or None
        Rows after which features that none of them observed are to be dropped; None is never.
    index : TimeIndex or None
        What the rows say of their times; None if they have none.
    hyper : Hyper
        Constants of the algorithm, for tests and ablations.
    """

    n_components: int | None = None
    forget_factor: float | str = 1.0
    center: bool = True
    scale: bool = True
    noise: str = "diagonal"
    robust: bool = True
    temporal: bool = False
    seasons: str | None = "auto"
    covariates: str | None = None
    index: TimeIndex | None = None
    drop_after: int | None = None
    hyper: Hyper = field(default_factory=Hyper)

    def __post_init__(self) -> None:
        if not (isinstance(self.forget_factor, str) and self.forget_factor == "auto"):
            given = checked_number("forget_factor", self.forget_factor, *FORGET_FACTOR)
            object.__setattr__(self, "forget_factor", given)
        if self.n_components is not None:
            count = checked_count("n_components", self.n_components, "how many at most")
            object.__setattr__(self, "n_components", count)
        if not isinstance(self.noise, str) or self.noise not in NOISES:
            raise ValueError(f"noise must be 'isotropic' or 'diagonal', got {shown(self.noise)}.")

    @property
    def known(self) -> tuple[int, ...]:
        """Features that are always known."""
        if self.covariates is None:
            return ()
        return tuple(int(each) for each in self.covariates.split())

    @property
    def forgets_at_alarms(self) -> bool:
        """Whether a change that is noticed makes the model forget."""
        return self.forget_factor == "auto"

    @property
    def fixed_forget_factor(self) -> float:
        """Weight that the past keeps with each row, whether or not a change is noticed."""
        return 1.0 if isinstance(self.forget_factor, str) else self.forget_factor

    def periods(self, step: float | None) -> NDArray[np.float64]:
        """Lengths of the given cycles in units of time.

        Parameters
        ----------
        step : float or None
            Seconds between two rows; None if rows have no times.
        """
        found = []
        for each in (self.seasons or "").split():
            if not each.endswith("s"):
                found.append(float(each) * (1.0 if step is None else step))
            elif step is not None:
                found.append(float(each[:-1]))
        return np.array(found)

    def components_for(self, n_features: int) -> int:
        """Upper bound on the components of a model of `n_features`.

        None is half of the features, two thirds of up to 60, at least 10 and at most 100, always
        fewer than features: the cost grows with the square, and components that are not needed
        are switched off.
        """
        if self.n_components is not None:
            return min(self.n_components, n_features)
        usual = max(n_features // 2, min(2 * n_features // 3, 40), 10)
        return max(1, min(n_features - 1, usual, 100))


FORGET_FACTOR = ("between 0.5 and 1", "0.99 keeps about 100 rows, 1 all; or 'auto'", 0.5, 1.0)
