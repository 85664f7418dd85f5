"""How far an approximation is from the truth, and how honest its uncertainty is.

`rmse`, `coverage`, `crps` and `nlpd` judge filled values: hide some entries, fill them, and give
the mask of what was hidden as `where`. Entries whose truth is NaN are not known and never judged.
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
        Infinite where there is no difference.

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
    """Frobenius norm of what no codes could explain: ``min_X ‖rows − X components‖``.

    It judges a dictionary alone, in the same way whatever codes its method would use.

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
        The entries to judge; by default all.

    Returns
    -------
    error : float

    Examples
    --------
    >>> import numpy as np
    >>> truth = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> hidden = np.array([[True, False], [False, True]])
    >>> rmse(truth, filled=truth + 0.5 * hidden, where=hidden)
    0.5
    """
    known, estimate = _judged(where, truth, filled)
    return float(np.sqrt(np.mean((known - estimate) ** 2)))


def coverage(
    truth: ArrayLike, low: ArrayLike, high: ArrayLike, where: ArrayLike | None = None
) -> float:
    """Share of values that lie within their intervals, ends included.

    Intervals of 90 % are honest if about 0.9 of the values lie within them.

    Parameters
    ----------
    truth, low, high : array-like of the same shape
    where : array-like of bool, optional
        The entries to judge; by default all.

    Returns
    -------
    share : float
        From 0 to 1.

    Examples
    --------
    >>> coverage(truth=[1.0, 2.0, 3.0, 4.0], low=[0.0, 0.0, 0.0, 5.0], high=[2.0, 2.0, 2.0, 6.0])
    0.5
    """
    known, lower, upper = _judged(where, truth, low, high)
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
        The entries to judge; by default all.

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
    known, centre, spread = _judged(where, truth, mean, std)
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

    The mean of ``log(std √(2π)) + z²/2`` with z = (truth − mean) / std. A prediction that is sure
    of itself and wrong costs much more than in `crps`; where std is 0, it is infinite.

    Parameters
    ----------
    truth, mean, std : array-like of the same shape
    where : array-like of bool, optional
        The entries to judge; by default all.

    Returns
    -------
    score : float

    Examples
    --------
    >>> round(nlpd(truth=[0.0, 1.0], mean=[0.0, 0.0], std=[1.0, 1.0]), 4)
    1.1689
    """
    known, centre, spread = _judged(where, truth, mean, std)
    _refuse_negative(spread)
    if not spread.all():
        return float("inf")
    z = (known - centre) / spread
    return float(np.mean(np.log(spread * np.sqrt(2.0 * np.pi)) + 0.5 * z**2))


def _judged(
    where: ArrayLike | None, truth: ArrayLike, *others: ArrayLike
) -> list[NDArray[np.float64]]:
    """The entries to judge, of the truth and of each other array."""
    arrays = [np.asarray(values, np.float64) for values in (truth, *others)]
    known = ~np.isnan(arrays[0])
    if where is not None:
        chosen = np.asarray(where)
        if chosen.dtype != np.bool_:
            raise ValueError(f"where needs booleans, not {chosen.dtype}")
        known = known & chosen if chosen.shape == known.shape else chosen
    shapes = {array.shape for array in (*arrays, known)}
    if len(shapes) > 1:
        raise ValueError(f"arrays to compare need one shape, but have {sorted(shapes)}")
    if not known.any():
        raise ValueError("there is nothing to judge: where is False or the truth NaN everywhere")
    return [array[known] for array in arrays]


def _refuse_negative(std: NDArray[np.float64]) -> None:
    if (std < 0.0).any():
        raise ValueError("a standard deviation cannot be negative")
