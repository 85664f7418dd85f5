"""Workspaces: memory that a thread keeps, and arrays that begin with a line of the cache.

Fresh memory is slow: each page of it is a fault. Where malloc gives memory back at once, as in
Dask's workers, all larger arrays are fresh.

An array that begins within a line has vectors across two of them: kernels that go over a matrix of
small space again and again take up to half as long again.
"""

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

# More than that is not kept.
MOST_BYTES = 1 << 24
# A line of the cache; also so that NumPy adds arrays up in the same order in every process.
ALIGNMENT = 64


class Workspace(threading.local):
    """Memory for one array at a time, in each thread."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array with anything in it; the one before is lost."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > MOST_BYTES:
            return np.empty(shape, dtype)
        if size > len(self._bytes):
            self._bytes = aligned((size,), np.uint8)
        return self._bytes[:size].view(dtype).reshape(shape)


def aligned(shape: tuple[int, ...], dtype: Any = np.float64) -> NDArray[Any]:
    """An array with anything in it that begins with a line of the cache."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    made = np.empty(size + ALIGNMENT, np.uint8)
    first = -made.__array_interface__["data"][0] % ALIGNMENT
    return made[first : first + size].view(dtype).reshape(shape)


def aligned_copy(array: NDArray[Any]) -> NDArray[Any]:
    """A copy that begins with a line of the cache."""
    copy = aligned(array.shape, array.dtype)
    copy[...] = array
    return copy
