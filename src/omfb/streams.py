"""Blocks of rows from arrays, memory-mapped arrays and sparse matrices."""

import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

# A block is about this large: many kernel blocks, and a small part of memory.
BLOCK_BYTES = 1 << 24


def block_rows(X: Any, multiple: int) -> int:
    """How many rows make a block, at least `multiple` and a multiple of it."""
    row_bytes = max(X.shape[1], 1) * X.dtype.itemsize
    return multiple * max(1, BLOCK_BYTES // (row_bytes * multiple))


def blocks(X: Any, order: NDArray[np.intp] | None, length: int) -> Iterator[Any]:
    """Yield the rows of X in the given order, or as they lie, `length` at a time.

    Of a memory-mapped file, no more than a block stays in the process's memory.
    """
    mapped = _mapping(X)
    for start in range(0, X.shape[0] if order is None else len(order), length):
        here = slice(start, start + length)
        yield X[here] if order is None else X[order[here]]
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)


def _mapping(X: Any) -> mmap.mmap | None:
    """The memory map behind an array, if its pages can be dropped without losing anything."""
    while isinstance(X, np.ndarray):
        # Pages of a copy-on-write map ("c") are the only copy of what was written to them.
        if isinstance(X, np.memmap) and X.mode in ("r", "r+"):
            mapped = X._mmap  # type: ignore[attr-defined]
            return mapped if hasattr(mapped, "madvise") else None
        X = X.base
    return None
