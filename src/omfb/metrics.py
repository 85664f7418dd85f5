"""Errors of approximations, and calibration of their uncertainty.

`rmse`, `coverage`, `crps` and `nlpd` score filled values: hold out some entries, fill them, and
give the mask of the held-out entries as `where`. Entries whose truth is NaN are never scored.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr


def snr(truth: NDArray[Any], approximation: NDArray[Any]) -> float:
    """Signal-to-noise ratio in decibels: ``10 log₁₀(var(truth) / mean((truth − approximation)²))``.

    Parameters
    ----------
    truth, approximation : ndarray of the same shape

    Returns
    -------
    decibels : float
        Infinite if there is no difference.

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([0.0, 2.0, 0.0, 2.0])
    >>> round(snr(truth, truth + 0.1), 6)
    20.0
    """
    truth = np.asarray(truth, dtype=np.float64)
    noise = float(np.mean((truth - approximation) ** 2))
    with np.errstate(divide="ignore"):
        return float(10.0 * np.log10(truth.var() / noise))


def relative_error(truth: NDArray[Any], approximation: NDArray[Any]) -> float:
    """Frobenius norm of the difference over that of the truth.

    Parameters
    ----------
    truth, approximation : ndarray of the same shape

    Returns
    -------
    error : float

    Examples
    --------
    >>> import numpy as np
    >>> relative_error(np.array([3.0, 4.0]), np.array([3.0, 3.0]))
    0.2
    """
    truth = np.asarray(truth, dtype=np.float64)
    return float(np.linalg.norm(truth - approximation) / np.linalg.norm(truth))


def projection_error(rows: NDArray[Any], components: NDArray[Any]) -> float:
    """Frobenius norm of the residual with the best codes: ``min_X ‖rows − X components‖``.

    It scores a dictionary independently of how a method computes codes.

    Parameters
    ----------
    rows : ndarray of shape (n_samples, n_features)
    components : ndarray of shape (n_components, n_features)

    Returns
    -------
    error : float

    Examples
    --------
    >>> import numpy as np
    >>> projection_error(np.array([[3.0, 4.0]]), np.array([[1.0, 0.0]]))
    4.0
    """
    rows = np.asarray(rows, dtype=np.float64)
    basis, sizes, _ = np.linalg.svd(np.asarray(components, np.float64).T, full_matrices=False)
    basis = basis[:, sizes > sizes.max(initial=0.0) * len(basis) * np.finfo(np.float64).eps]
    return float(np.linalg.norm(rows - (rows @ basis) @ basis.T))


def rmse(truth: ArrayLike, filled: ArrayLike, where: ArrayLike | None = None) -> float:
    """Root mean square error of filled values.

    Parameters
    ----------
    truth, filled : array-like of the same shape
    where : array-like of bool, optional
        The entries to score; by default all.

    Returns
    -------
    error : float

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> held_out = np.array([[True, False], [False, True]])
    >>> rmse(truth, filled=truth + 0.5 * held_out, where=held_out)
    0.5
    """
    known, estimate = _scored(where, truth, filled)
    return float(np.sqrt(np.mean((known - estimate) ** 2)))


def coverage(
    truth: ArrayLike, low: ArrayLike, high: ArrayLike, where: ArrayLike | None = None
) -> float:
    """Share of values that lie within their intervals, ends included.

    90 % intervals are calibrated if about 0.9 of the values lie within them.

    Parameters
    ----------
    truth, low, high : array-like of the same shape
    where : array-like of bool, optional
        The entries to score; by default all.

    Returns
    -------
    share : float
        From 0 to 1.

    Examples
    --------
    >>> coverage(truth=[1.0, 2.0, 3.0, 4.0], low=[0.0, 0.0, 0.0, 5.0], high=[2.0, 2.0, 2.0, 6.0])
    0.5
    """
    known, lower, upper = _scored(where, truth, low, high)
    return float(np.mean((lower <= known) & (known <= upper)))


def crps(
    truth: ArrayLike, mean: ArrayLike, std: ArrayLike, where: ArrayLike | None = None
) -> float:
    """Mean continuous ranked probability score of normal predictions; lower is better.

    With z = (truth − mean) / std, Φ the normal distribution function and φ its density, the mean of
    ``std (z (2 Φ(z) − 1) + 2 φ(z) − 1/√π)``. It has the unit of the data, and is the absolute error
    where std is 0.

    Parameters
    ----------
    truth, mean, std : array-like of the same shape
    where : array-like of bool, optional
        The entries to score; by default all.

    Returns
    -------
    score : float

    References
    ----------
    T. Gneiting and A. E. Raftery, "Strictly proper scoring rules, prediction, and estimation",
    2007.

    Examples
    --------
    >>> round(crps(truth=[0.0], mean=[0.0], std=[1.0]), 4)
    0.2337
    >>> crps(truth=[3.0], mean=[1.0], std=[0.0])
    2.0
    """
    known, centre, spread = _scored(where, truth, mean, std)
    _refuse_negative(spread)
    error = known - centre
    certain = spread == 0.0
    z = error / np.where(certain, 1.0, spread)
    density = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi)
    scores = error * (2.0 * ndtr(z) - 1.0) + spread * (2.0 * density - 1.0 / np.sqrt(np.pi))
    return float(np.mean(np.where(certain, np.abs(error), scores)))


def nlpd(
    truth: ArrayLike, mean: ArrayLike, std: ArrayLike, where: ArrayLike | None = None
) -> float:
    """Mean negative log predictive density of normal predictions; lower is better.

    The mean of ``log(std √(2π)) + z²/2`` with z = (truth − mean) / std. An overconfident wrong
    prediction costs much more than in `crps`; if some std is 0, the score is infinite.

    Parameters
    ----------
    truth, mean, std : array-like of the same shape
    where : array-like of bool, optional
        The entries to score; by default all.

    Returns
    -------
    score : float

    Examples
    --------
    >>> round(nlpd(truth=[0.0, 1.0], mean=[0.0, 0.0], std=[1.0, 1.0]), 4)
    1.1689
    """
    known, centre, spread = _scored(where, truth, mean, std)
    _refuse_negative(spread)
    if not spread.all():
        return float("inf")
    z = (known - centre) / spread
    return float(np.mean(np.log(spread * np.sqrt(2.0 * np.pi)) + 0.5 * z**2))


def _scored(
    where: ArrayLike | None, truth: ArrayLike, *others: ArrayLike
) -> list[NDArray[np.float64]]:
    """The entries to score, of the truth and of each other array."""
    arrays = [np.asarray(values, np.float64) for values in (truth, *others)]
    known = ~np.isnan(arrays[0])
    if where is not None:
        chosen = np.asarray(where)
        if chosen.dtype != np.bool_:
            raise ValueError(f"where must be an array of booleans, not {chosen.dtype}")
        known = known & chosen if chosen.shape == known.shape else chosen
    shapes = {array.shape for array in (*arrays, known)}
    if len(shapes) > 1:
        raise ValueError(f"arrays must have the same shape, but have {sorted(shapes)}")
    if not known.any():
        raise ValueError("there is nothing to score: where is False or the truth NaN everywhere")
    return [array[known] for array in arrays]


def _refuse_negative(std: NDArray[np.float64]) -> None:
    if (std < 0.0).any():
        raise ValueError("a standard deviation cannot be negative")
