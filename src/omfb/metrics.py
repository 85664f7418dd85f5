"""How far an approximation is from the truth."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


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
