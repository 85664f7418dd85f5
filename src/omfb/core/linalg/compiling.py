"""How kernels are compiled: on the first call, cached on disk, with NaN kept meaningful.

A kernel is compiled once more into every kernel that calls it, and again into those that call them:
that is most of the time that the first call takes. So large ones are called from the kernels that
Python calls and not on the way there, none makes an array but by `np.empty` of floats, and a number
that is passed as True or False would be a type of its own.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numba
from numba.core.caching import FunctionCache

# Sums may be reordered and fused so that they vectorise. NaN and infinity keep
# their meaning: nothing here lets the compiler assume that they do not occur.
# Nobody calls kernels from C, so what that would take is left out.
OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract"},
    "no_cfunc_wrapper": True,
}


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache on disk. If that is full, kernels are compiled again the next time."""

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, if there is room."""
        with suppress(OSError):
            super().save_overload(sig, data)


def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a kernel lazily; cache it where a cache can be written."""
    kernel = numba.njit(**OPTIONS, **options)(function)
    with suppress(RuntimeError):  # neither the package nor the user's cache folder is writable
        kernel._cache = KernelCache(function)  # noqa: SLF001
    return kernel


def inner_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile what kernels alone call: without what Python would need to call it."""
    return jit(function, no_cpython_wrapper=True)
