"""Arrays that grow along an axis, with room behind them.

`extended(array, 1, value)` costs O(1) amortised: it returns a view of a larger array, whose next
elements are written once, by whoever extends the view that ends there. Views that end before stay
as they are, and extending one of them again makes a copy.
"""

import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Room, as a share of what there is, and at least so many elements.
ROOM, LEAST_ROOM = 0.5, 16

# How far each array with room is used, by its id.
_used: dict[int, tuple["weakref.ref[Any]", int]] = {}


def extended(array: NDArray[Any], count: int, value: Any, axis: int = -1) -> NDArray[Any]:
    """The array with `count` more elements along an axis.

    Parameters
    ----------
    array : ndarray
    count : int
    value : scalar or array-like
        What the new elements hold, broadcast.
    axis : {0, -1}, default=-1
    """
    n, whole = array.shape[axis], array.base
    # Taking the entry out is atomic: of two threads that extend the same view, one makes a copy.
    known = _used.pop(id(whole), None)
    if known is not None and not _fits(array, whole, known, axis, n + count):
        _used[id(whole)] = known
        known = None
    if known is None:
        whole, known = _with_room(array, n + count, axis)
    assert isinstance(whole, np.ndarray)
    _part(whole, n, n + count, axis)[...] = value
    _used[id(whole)] = known[0], n + count
    return _part(whole, 0, n + count, axis)


def _fits(
    array: NDArray[Any], whole: Any, known: tuple["weakref.ref[Any]", int], axis: int, needed: int
) -> bool:
    """Whether the array is all that is used of one that has room for as much as is needed."""
    reference, used = known
    alive = id(reference()) == id(whole)
    if not alive or used != array.shape[axis]:
        return False
    same_start = array.__array_interface__["data"] == whole.__array_interface__["data"]
    return bool(same_start and array.strides == whole.strides and needed <= whole.shape[axis])


def _with_room(
    array: NDArray[Any], needed: int, axis: int
) -> tuple[NDArray[Any], tuple["weakref.ref[Any]", int]]:
    shape, n = list(array.shape), array.shape[axis]
    shape[axis] = needed + max(LEAST_ROOM, int(ROOM * n))
    whole = np.empty(shape, array.dtype)
    _part(whole, 0, n, axis)[...] = array
    key = id(whole)
    return whole, (weakref.ref(whole, lambda _: _used.pop(key, None) and None), n)


def _part(whole: NDArray[Any], first: int, last: int, axis: int) -> NDArray[Any]:
    return whole[first:last] if axis == 0 else whole[..., first:last]
