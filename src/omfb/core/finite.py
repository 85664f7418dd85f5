"""Numbers near the end of their type's range: no warnings, and nothing infinite comes out."""

from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray


def quiet() -> Any:
    """A context without warnings of numbers beyond a type's range: what comes out is checked."""
    return np.errstate(over="ignore", invalid="ignore")


def is_ordinary(values: NDArray[Any]) -> bool:
    """Whether numbers are so far from the end of their range that a model can start from them.

    Others are tried at once: if they cannot be used, they are refused before they are kept.
    """
    sizes = np.abs(values)
    most = float(np.finfo(values.dtype).max) ** 0.2
    extreme = (sizes >= most) | ((sizes <= 1.0 / most) & (sizes > 0.0))  # not where it is NaN
    return not extreme.any()


def made_finite(rows: NDArray[Any], made_of: Any) -> NDArray[Any]:
    """The numbers, what their type cannot hold being the largest that it can; NaN is refused."""
    if np.isfinite(rows).all():
        return rows
    if np.isinf(made_of.data if scipy.sparse.issparse(made_of) else made_of).any():
        raise ValueError("X contains infinity. Replace it, by NaN if it is unknown.")
    if np.isnan(rows).any():
        raise ValueError("X holds numbers so large that what is made of them overflows. Rescale X.")
    return within_range(rows)


def within_range(rows: NDArray[Any]) -> NDArray[Any]:
    """The numbers, infinite ones being the largest that their type can hold."""
    largest = np.finfo(rows.dtype).max
    return np.clip(rows, -largest, largest)
