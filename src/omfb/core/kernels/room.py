"""Room to work in that a thread keeps.

Fresh memory is slow: each page of it is a fault. Where malloc gives memory back at once, as in
Dask's workers, all larger arrays are fresh.
"""

import math
import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

# More than that is not kept.
MOST_BYTES = 1 << 24
# Where arrays begin, so that NumPy adds them up in the same order in every process.
ALIGNMENT = 64


class Room(threading.local):
    """Memory for one array at a time, in each thread."""

    def __init__(self) -> None:
        self._bytes = np.empty(0, np.uint8)

    def array(self, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
        """An array with anything in it; the one before is lost."""
        size = math.prod(shape) * np.dtype(dtype).itemsize
        if size > MOST_BYTES:
            return np.empty(shape, dtype)
        if size > len(self._bytes):
            made = np.empty(size + ALIGNMENT, np.uint8)
            self._bytes = made[-made.ctypes.data % ALIGNMENT :]
        return self._bytes[:size].view(dtype).reshape(shape)
