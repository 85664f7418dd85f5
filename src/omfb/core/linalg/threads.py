"""Plain threads around single-threaded products: how work on many features is shared.

BLAS libraries share a product between their own threads, with a barrier in each product: many
small products gain little, and where another process keeps a core busy each of them waits for
the thread that has no core. Here the features are cut into pieces whose bounds depend on the shape
alone, and each thread takes the next piece when it has finished one, so a slow thread takes fewer.
What is summed over pieces is summed in their order: neither the number of threads nor their timing
changes a bit of the result.

Not Numba's parallel loops: those end the process when it was forked, and take seconds to compile.
"""

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from itertools import count
from typing import Any

import numba
import numpy as np
from threadpoolctl import ThreadpoolController

Task = Callable[[int], None]
# Multiply-adds that pay for waking another thread, some 50 µs.
WORTH_A_THREAD = 2_000_000
# Enough that a thread which is kept waiting leaves most of them to the others.
MOST_PIECES = 16


class _Blas:
    """NumPy's BLAS, held to one thread while anybody here has threads of its own."""

    def __init__(self) -> None:
        # Loaded by now: NumPy's, and perhaps SciPy's, whose threads stall the others' just as well.
        found = ThreadpoolController().select(user_api="blas").lib_controllers
        self._libraries = [(library, library.num_threads) for library in found]
        self._lock = threading.Lock()
        self._users = 0

    @contextmanager
    def single(self) -> Iterator[int]:
        """Give the number of threads that BLAS would have used; it uses one meanwhile."""
        with self._lock:
            if self._users == 0:
                self._libraries = [(lib, lib.get_num_threads()) for lib, _ in self._libraries]
                for library, n_threads in self._libraries:
                    if n_threads > 1:
                        _set_threads(library, 1)
            self._users += 1
            most = min((n for _, n in self._libraries), default=1)
        try:
            yield most
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self.restore()

    def restore(self) -> None:
        """Give back its threads."""
        for library, n_threads in self._libraries:
            if n_threads > 1:
                _set_threads(library, n_threads)


def _set_threads(library: Any, n_threads: int) -> None:
    """Set how many threads a library has, whichever thread this is.

    threadpoolctl 3.8 lets the first thread that sets it keep all others from it, without a word.
    """
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(n_threads)
    release(force=True)


@cache
def _blas() -> _Blas:
    return _Blas()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max(_cores() - 1, 1), thread_name_prefix="omfb")


@cache
def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _forget_threads() -> None:
    """A forked process has the pool's bookkeeping, but none of its threads."""
    if _blas.cache_info().currsize:
        _blas().restore()  # another thread may have held it to one
    for made in (_blas, _pool, _cores):
        made.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_threads)


class Team:
    """The calling thread and its helpers, of which there may be none."""

    def __init__(self, n_threads: int) -> None:
        self.n_threads = n_threads

    def run(self, task: Task, n: int) -> None:
        """Call task(0), …, task(n − 1), each by whoever is free; return when all are done."""
        numbers = count()

        def take() -> None:
            nonlocal numbers
            try:
                while (at := next(numbers)) < n:
                    task(at)
            except BaseException:
                numbers = count(n)  # no more of it
                raise

        reported = np.geterr()  # by the caller; NumPy keeps that for each thread

        def help_out() -> None:
            with np.errstate(**reported):
                take()

        helpers: list[Future[None]] = []
        with suppress(RuntimeError):  # the interpreter is ending: the caller does it all
            helpers = [_pool().submit(help_out) for _ in range(min(self.n_threads, n) - 1)]
        try:
            take()
        finally:
            taken = [helper for helper in helpers if not helper.cancel()]
            wait(taken)
        for helper in taken:
            helper.result()


@contextmanager
def team(work: int) -> Iterator[Team]:
    """A team for so many multiply-adds at a time; BLAS has one thread meanwhile.

    As many threads as BLAS would use (OPENBLAS_NUM_THREADS, threadpoolctl), but no more than Numba
    may (NUMBA_NUM_THREADS), than there are cores for this process, or than pay off.
    """
    if work < WORTH_A_THREAD:
        yield Team(1)
        return
    with _blas().single() as most:
        yield Team(
            max(1, min(most, numba.config.NUMBA_NUM_THREADS, _cores(), 1 + work // WORTH_A_THREAD))
        )


@contextmanager
def products_in_one_thread(needed: bool = True) -> Iterator[None]:
    """BLAS has one thread; teams have theirs all the same.

    For what must not depend, in its last bits, on how many BLAS may have, and for work of teams
    with products in between: after a product BLAS's threads spin for a tenth of a second, on the
    cores that a team needs.
    """
    with _blas().single() if needed else nullcontext():
        yield


def in_threads(
    kernel: Callable[[int, int], None], n_items: int, work: int, most_pieces: int = MOST_PIECES
) -> None:
    """Call kernel(first, last) over ranges of independent items, in threads where that pays.

    Kernels release the interpreter's lock. Each piece does anew what its items share: where that
    is much, a kernel has fewer pieces.
    """
    if work < 2 * WORTH_A_THREAD or n_items < 2:
        kernel(0, n_items)
        return
    pieces = min(n_items, most_pieces)
    bounds = [n_items * part // pieces for part in range(pieces + 1)]
    with team(work) as helpers:
        helpers.run(lambda at: kernel(bounds[at], bounds[at + 1]), pieces)
