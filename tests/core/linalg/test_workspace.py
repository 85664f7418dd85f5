"""Workspaces: the same memory again, never that of another thread, from a line's start."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

from omfb import OMFB
from omfb.core.linalg import workspace
from omfb.core.linalg.workspace import Workspace, aligned, aligned_copy


def test_a_thread_gets_the_same_memory_again():
    kept = Workspace()
    first = kept.array((30, 4), np.float64)
    again = kept.array((5, 7), np.float32)
    assert first.shape == (30, 4)
    assert again.dtype == np.float32
    assert np.shares_memory(first, again)
    assert again.ctypes.data % workspace.ALIGNMENT == 0
    larger = kept.array((300, 4), np.float64)
    assert np.shares_memory(larger, kept.array((1, 1), np.float64))


def test_threads_have_memory_of_their_own():
    kept = Workspace()
    mine = kept.array((8, 8), np.float64)
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(kept.array, (8, 8), np.float64).result()
    assert not np.shares_memory(mine, other)


def test_much_memory_is_not_kept(monkeypatch):
    monkeypatch.setattr(workspace, "MOST_BYTES", 100)
    kept = Workspace()
    assert not np.shares_memory(kept.array((50,), float), kept.array((50,), float))


def test_models_that_learn_in_turns_or_side_by_side_do_not_mix(rng):
    tables = [rng.normal(size=(900, 3)) @ rng.normal(size=(3, 20)) for _ in range(2)]
    tables = [X + 0.1 * rng.normal(size=X.shape) for X in tables]

    def learned(X, before=lambda: None):
        model = OMFB(random_state=0)
        for start in range(0, len(X), 100):
            before()
            model.partial_fit(X[start : start + 100])
        return model.components_.tobytes()

    other = OMFB(random_state=0).partial_fit(tables[1])
    alone = [learned(X) for X in tables]
    assert learned(tables[0], lambda: other.partial_fit(tables[1][:50])) == alone[0]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(learned, tables)) == alone


def test_arrays_begin_with_a_line_of_the_cache(rng):
    for shape in ((1,), (3, 5), (40, 2, 7)):
        for dtype in (np.float64, np.float32, np.uint8):
            made = aligned(shape, dtype)
            assert (made.shape, made.dtype) == (shape, dtype)
            assert made.flags.c_contiguous
            assert made.flags.writeable
            assert made.__array_interface__["data"][0] % workspace.ALIGNMENT == 0
    given = rng.normal(size=(30, 4))
    copy = aligned_copy(given)
    assert copy.tobytes() == given.tobytes()
    assert not np.shares_memory(copy, given)
