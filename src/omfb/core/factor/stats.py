"""Sufficient statistics of the rows so far. Each is defined here, once, with all that acts on it.

All of them are sums over rows that fade alike: a row's contribution is multiplied by what every
later row leaves of the past. So they add, fade and merge as one (`plus`, `fade`, `minus`). A change
of basis of the codes or of the features' units acts on some: the metadata of a field says how.

To add a statistic, declare a field with its laws and fill it in `step.py`. Nothing else changes.
"""

from dataclasses import dataclass, field, fields
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]


def _sum(*, basis: bool = False, squares: bool = False) -> Any:
    """A faded sum, of terms like x̃x̃ᵀ (`basis`) or of squares in units of the noise (`squares`)."""
    return field(metadata={"basis": basis, "squares": squares})


@dataclass(frozen=True, slots=True)
class Stats:
    """Faded sums over the rows so far, for m features and r components (R = r + 1 with the mean).

    Attributes
    ----------
    S : ndarray of shape (R, R)
        Precision of a row of C: Σ s x̃x̃ᵀ, s the observed share of the row, and what is left of the
        prior diag(1/v). C S is the sum of y x̃ᵀ.
    code_cov_sum : ndarray of shape (r, r)
        Posterior covariances of the codes since the last M-step.
    code_cov_weight : float
        The weights of these.
    counts : ndarray of shape (m,)
        How many rows observe each feature.
    residual_sums : ndarray of shape (2, m)
        Squared residuals of each feature over their variance, and their number.
    n_rows : float
        The number of rows, each by its observed share.
    residual_energy, residual_dof : float
        Squared residuals of all features together, and their degrees of freedom.
    prior_weight : float
        What S still holds of the prior.
    start_weight : float
        What is left of the statistics at the start, for merges.
    """

    S: Matrix = _sum(basis=True)  # noqa: RUF009
    code_cov_sum: Matrix = _sum(basis=True)  # noqa: RUF009
    code_cov_weight: float = _sum()
    counts: Vector = _sum()  # noqa: RUF009
    residual_sums: Matrix = _sum(squares=True)  # noqa: RUF009
    n_rows: float = _sum()
    residual_energy: float = _sum(squares=True)
    residual_dof: float = _sum()
    prior_weight: float = _sum()
    start_weight: float = _sum()

    @classmethod
    def start(cls, S: Matrix, n_features: int, n_rows: float) -> Self:
        """Statistics before any row: the first dictionary counts as `n_rows`."""
        r = len(S) - 1
        return cls(
            S=S, code_cov_sum=np.zeros((r, r)), code_cov_weight=0.0,
            counts=np.full(n_features, n_rows), residual_sums=np.zeros((2, n_features)),
            n_rows=n_rows, residual_energy=0.0, residual_dof=0.0, prior_weight=1.0,
            start_weight=1.0,
        )  # fmt: skip

    def fade(self, left: float) -> Self:
        """What is left after rows that leave this much of the past."""
        return type(self)(*(left * value for value in self._values()))

    def plus(self, other: Self) -> Self:
        """The sums over the rows of both."""
        pairs = zip(self._values(), other._values(), strict=True)
        return type(self)(*(mine + others for mine, others in pairs))

    def minus(self, other: Self) -> Self:
        """The sums without those of `other`."""
        return self.plus(other.fade(-1.0))

    def rotate(self, T_inverse: Matrix) -> Self:
        """The sums over codes T⁻¹x̃ instead of x̃."""

        def rotated(M: Matrix) -> Matrix:
            T = T_inverse[: len(M), : len(M)]
            turned = T @ M @ T.T
            return 0.5 * (turned + turned.T)

        return self._where("basis", rotated)

    def rescale(self, change: Vector) -> Self:
        """The sums if the noise of each feature were `change` times as large."""
        typical = float(np.exp(np.mean(np.log(change))))

        def rescaled(sums: Any) -> Any:
            if isinstance(sums, np.ndarray):
                return sums / np.array([change**2, np.ones_like(change)])
            return sums / typical**2

        return self._where("squares", rescaled)

    def _values(self) -> list[Any]:
        return [getattr(self, each.name) for each in fields(self)]

    def _where(self, law: str, change: Any) -> Self:
        return type(self)(*(
            change(getattr(self, each.name)) if each.metadata[law] else getattr(self, each.name)
            for each in fields(self)
        ))  # fmt: skip


def inverse_coverage(counts: Vector, least_share: float) -> Vector:
    """1 / f of each feature, f its count beside the average one's, at most 1.

    A feature that has been observed f times as often as the average one is known with the
    covariance Σ / f.
    """
    shares = counts / max(float(counts.mean()), 1e-300)
    rarity: Vector = (1.0 / np.clip(shares, least_share, 1.0)).astype(np.float64)
    return rarity


def inverse(S: Matrix) -> Matrix:
    """S⁻¹ of a precision; of a little more than S where rounding has made it singular.

    One row that is a hundred million deviations off does that: what it says of one direction leaves
    no digits for the others.
    """
    try:
        return np.asarray(np.linalg.inv(S), np.float64)
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.inv(S + np.diag(1e-12 * np.diagonal(S))), np.float64)
