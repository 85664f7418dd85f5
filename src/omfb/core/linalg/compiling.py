"""How kernels are compiled: on the first call, cached on disk, with NaN kept meaningful.

A kernel is compiled once more into every kernel that calls it, and again into those that call them:
that is most of the time that the first call takes. So large ones are called from the kernels that
Python calls and not on the way there, none makes an array but by `np.empty` of floats, and a number
that is passed as True or False would be a type of its own.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import FunctionCache, NullCache

# Sums may be reordered and fused so that they vectorise. NaN and infinity keep
# their meaning: nothing here lets the compiler assume that they do not occur.
# Nobody calls kernels from C, so what that would take is left out.
OPTIONS = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract"},
    "no_cfunc_wrapper": True,
}


Tell = Callable[[str], object]

# A first fit of 0.2.0 with an empty cache took 8.4 s, on two shared cores.
NOTHING_CACHED = "compiling, once: about 8 s"
SOME_CACHED = "compiling, once, for data of another kind"

_listeners: list[Tell] = []


@contextmanager
def announced(tell: Tell) -> Iterator[None]:
    """Tell, at most once within this context, that a kernel is compiled, as no cache has it.

    Parameters
    ----------
    tell : callable
        Takes the message; it is called in the thread that compiles, before it does.
    """

    def tell_once(message: str) -> None:
        try:
            _listeners.remove(tell_once)
        except ValueError:  # another thread was first
            return
        tell(message)

    _listeners.append(tell_once)
    try:
        yield
    finally:
        with suppress(ValueError):
            _listeners.remove(tell_once)


def _announce(message: str) -> None:
    for tell in _listeners[:]:
        tell(message)


class NoCache(NullCache):  # type: ignore[misc]
    """For kernels that cannot be cached: every process compiles them."""

    def load_overload(self, sig: Any, target_context: Any) -> None:
        """Say that the kernel is compiled."""
        _announce(NOTHING_CACHED)


class KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache on disk. If that is full, kernels are compiled again the next time."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled kernel; None, which is announced, if it has to be compiled."""
        try:
            kernel = super().load_overload(sig, target_context)
        except Exception:  # the cache is damaged, in any of the ways in which pickles can be
            kernel = None
        if kernel is None and _listeners:
            cached = any(Path(self.cache_path).glob("*.nbi"))
            _announce(SOME_CACHED if cached else NOTHING_CACHED)
        return kernel

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled kernel, if there is room."""
        try:
            super().save_overload(sig, data)
        except OSError:
            return
        except Exception:  # the index is damaged: begin a new one
            with suppress(OSError):
                self.flush()
                super().save_overload(sig, data)


def jit(function: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile a kernel lazily; cache it where a cache can be written."""
    if numba.config.DISABLE_JIT:
        return _interpreted(function)
    kernel = numba.njit(**OPTIONS, **options)(function)
    try:
        kernel._cache = KernelCache(function)  # noqa: SLF001
    except RuntimeError:  # neither the package nor the user's cache folder is writable
        kernel._cache = NoCache()  # noqa: SLF001
    return kernel


def _interpreted(function: Callable[..., Any]) -> Callable[..., Any]:
    """The kernel as Python runs it: NumPy must not report what compiled code does not."""

    @wraps(function)
    def kernel(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return kernel


def inner_jit(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile what kernels alone call: without what Python would need to call it."""
    return jit(function, no_cpython_wrapper=True)
