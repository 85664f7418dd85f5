"""Memory for the next dictionary, so that a single row need not copy all of it."""

import math
import sys
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

# A dictionary smaller than this is copied faster than the features of a row are examined.
SMALL_DICTIONARY = 1 << 14


class DoubleBuffer:
    """The dictionary before the last row, to be written into for the next one.

    Parameters
    ----------
    array : ndarray of shape (n_features, n_components)
    after : ndarray of the same shape
        The dictionary after the last row.
    stale : ndarray of int, or None
        Features that the last row changed; None is all.
    """

    def __init__(
        self, array: NDArray[Any], after: NDArray[Any], stale: NDArray[Any] | None
    ) -> None:
        self._array, self._after, self._stale = array, after, stale

    def up_to_date(self, C: NDArray[Any]) -> NDArray[Any]:
        """An array equal to C that nothing else refers to."""
        # Two references are this object's and the call's; a third is an older state that is held.
        if sys.getrefcount(self._array) > 2 or not self._array.flags.writeable:
            return C.copy()
        if self._stale is None or C is not self._after:
            np.copyto(self._array, C)
        else:
            self._array[self._stale] = C[self._stale]
        return self._array


def observed_features(row: Any, C: NDArray[Any]) -> NDArray[Any] | None:
    """Features that a row observes; None if it may be all of them."""
    if scipy.sparse.issparse(row):
        return row.tocsr().indices.copy()
    if C.size < SMALL_DICTIONARY or math.isfinite(row.sum()):
        return None
    observed = np.flatnonzero(~np.isnan(row[0]))
    return observed if 2 * len(observed) < len(C) else None
