"""Memory for the next dictionary, or other arrays, so that a row need not copy all of it."""

import math
import sys
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.linalg.capacity import extended

# A dictionary smaller than this is copied faster than the features of a row are examined.
SMALL_DICTIONARY = 1 << 14


class DoubleBuffer:
    """An array of a state before the last row, to be written into for the next one.

    Parameters
    ----------
    array : ndarray
    after : ndarray of the same shape
        The array after the last row.
    stale : ndarray of int, or None
        Features that the last row changed; None is all.
    axis : {0, -1}, default=0
        The axis of the features.
    """

    def __init__(
        self, array: NDArray[Any], after: NDArray[Any], stale: NDArray[Any] | None, axis: int = 0
    ) -> None:
        self._array, self._after, self._stale, self._axis = array, after, stale, axis

    def up_to_date(self, now: NDArray[Any]) -> NDArray[Any]:
        """An array equal to `now` that nothing else refers to."""
        if self._is_held() or not self._array.flags.writeable or self._array.shape != now.shape:
            return now.copy()
        if self._stale is None or now is not self._after:
            np.copyto(self._array, now)
        elif self._axis == 0:
            self._array[self._stale] = now[self._stale]
        else:
            self._array[..., self._stale] = now[..., self._stale]
        return self._array

    def _is_held(self) -> bool:
        """Whether an older state that somebody holds refers to the array, or views its memory."""
        # Two references are this object's and the call's; of the memory, the view's, too.
        whole = self._array.base
        return sys.getrefcount(self._array) > 2 or (
            whole is not None and sys.getrefcount(whole) > 3
        )

    def widened(
        self, count: int, before: NDArray[Any], after: NDArray[Any]
    ) -> "DoubleBuffer | None":
        """The buffer once `before`, the array after the last row, has become `after`.

        That has `count` more features.
        """
        n = after.shape[self._axis]
        if self._stale is None or before is not self._after:
            return None
        if self._is_held() or self._array.ndim != after.ndim:
            return None
        array = extended(self._array, count, 0, self._axis)
        if array.shape != after.shape:
            return None
        stale = np.concatenate([self._stale, np.arange(n - count, n, dtype=self._stale.dtype)])
        return DoubleBuffer(array, after, stale, self._axis)


def observed_features(row: Any, C: NDArray[Any]) -> NDArray[Any] | None:
    """Features that a row observes; None if it may be all of them."""
    if scipy.sparse.issparse(row):
        return row.tocsr().indices.copy()
    if C.size < SMALL_DICTIONARY or math.isfinite(row.sum()):
        return None
    observed = np.flatnonzero(~np.isnan(row[0]))
    return observed if 2 * len(observed) < len(C) else None
