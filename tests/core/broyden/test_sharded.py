"""Learning by slices of the features is learning: the same to rounding, wherever they are cut."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.broyden.init import first_dictionary, scale_of, window_length
from omfb.core.broyden.precision import recompute_due
from omfb.core.broyden.sharded import (
    addends,
    decide,
    first_of,
    first_slice,
    largest,
    longest_step,
    row_products,
    step_lengths,
    updated,
    without_features,
)
from omfb.core.info import Info
from omfb.core.linalg.rows import gram

from ...making import rows, same


def cut(Y, edges):
    return np.split(Y, edges, axis=1)


def added(parts):
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return total


def learned_by_slices(state, Y, edges, longest=64):
    """What tasks of a cluster do, one after the other."""
    C, slices = np.split(state.C, edges), cut(Y, edges)
    now, total, at = without_features(state), Info(0.0, 0.0), 0
    for length in step_lengths(state, len(Y), longest):
        here = [part[at : at + length] for part in slices]
        due = recompute_due(now.entries_since_gram, state.C.size)
        sums = added([addends(c, y, due) for c, y in zip(C, here, strict=True)])
        now, X, B, info = decide(now, sums, Y.shape[1])
        C = [updated(c, y, X, B) for c, y in zip(C, here, strict=True)]
        total, at = total.plus(info), at + length
    assert at == len(Y)
    return replace(now, C=np.concatenate(C)), total


CONFIGS = [
    BroydenConfig(forget_factor=0.0),
    BroydenConfig(forget_factor=0.0, lam=10.0, inner_iter=3),
    BroydenConfig(forget_factor=1.0, ridge=0.1),
    BroydenConfig(forget_factor=0.98),
    BroydenConfig(forget_factor=0.0, batch_size=10),
    BroydenConfig(forget_factor=1.0, batch_size=16),
    BroydenConfig(forget_factor=0.0, smooth=0.5),
    BroydenConfig(forget_factor=1.0, smooth=0.5, batch_size=7),
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 99),
    edges=st.sets(st.integers(1, 16), max_size=5).map(sorted),
    longest=st.integers(1, 300),
)
def test_a_block_of_rows(config, seed, edges, longest):
    rng = np.random.default_rng(seed)
    Y = rows(rng, 150, 17)
    state = broyden.init(Y, 3, config, seed=seed)  # as many as the data have
    expected, _, info = broyden.step(state, Y)
    found, told = learned_by_slices(state, Y, edges, longest)
    for name in ("C", "G", "S", "code"):
        assert same(getattr(found, name), getattr(expected, name)), name
    assert found.n_seen == expected.n_seen
    assert found.start_weight == pytest.approx(expected.start_weight, rel=1e-12)
    assert told == pytest.approx(info, rel=1e-10)


@pytest.mark.parametrize(("m", "r"), [(12, 6), (12, 12), (5, 8)])
@pytest.mark.parametrize("forget_factor", [0.0, 1.0])
def test_singular_systems(m, r, forget_factor, rng):
    """More atoms than the rows have dimensions, or than there are features."""
    Y = rng.normal(size=(40, 3)) @ rng.normal(size=(3, m))
    start = 0.1 * rng.normal(size=(r, 3)) @ rng.normal(size=(3, m))
    state = broyden.init(Y, r, BroydenConfig(forget_factor=forget_factor), init=start)
    expected, _, _ = broyden.step(state, Y)
    found, _ = learned_by_slices(state, Y, [2, 4])
    # Of a dictionary that is singular, what it makes of rows is what is determined.
    project = [c @ np.linalg.pinv(c, rcond=1e-6) for c in (found.C, expected.C)]
    assert same(*project, 1e-7)


def test_rows_that_overflow_are_refused(rng):
    Y = rows(rng, 20, 6)
    state = broyden.init(Y, 2, BroydenConfig(forget_factor=0.0), seed=0)
    with pytest.raises(ValueError, match="too large"):
        learned_by_slices(state, 1e160 * Y, [3])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("init", ["data", "random"])
@pytest.mark.parametrize("kind", ["usual", "dependent", "zero", "huge", "few"])
def test_the_first_dictionary_is_the_same(kind, init, dtype, rng):
    Y = rows(rng, 30, 11, dtype=dtype)
    if kind == "dependent":  # noise takes the place of atoms that the rows do not give
        Y[:] = np.outer(np.arange(1, 31), np.arange(1, 12))
    Y = {"zero": 0 * Y, "huge": Y * dtype(1e30), "few": Y[:3]}.get(kind, Y)
    r, seed = 4, 5
    C, scale = first_dictionary(Y, r, init, seed)
    head, edges = Y[: window_length(r)], [2, 3, 8]
    slices = cut(head, edges)
    assert scale_of(max(map(largest, slices)), Y.dtype) == scale
    products = sum(row_products(part, scale) for part in slices)
    first = first_of(products, init, seed, r, Y.shape[1], scale)
    starts = [0, *edges]
    parts = [first_slice(y, at, first) for y, at in zip(slices, starts, strict=True)]
    found = np.concatenate(parts)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, C, rtol=1e-6 if dtype == np.float32 else 1e-14)
    assert same(sum(map(gram, parts)), gram(C), 1e-6 if dtype == np.float32 else 1e-14)


def test_many_narrow_slices_take_longer_steps():
    assert longest_step(20, [1_000_000] * 100) == longest_step(20, [100_000] * 2) == 64
    assert longest_step(200, [1_000_000]) == 192
    assert 64 < longest_step(20, [10_000] * 8) < longest_step(20, [10_000] * 100) == 256
    assert longest_step(20, [1, 2]) == 256


@given(n=st.integers(1, 500), longest=st.integers(1, 99), size=st.integers(1, 60))
def test_rows_are_cut_into_steps(n, longest, size):
    state = broyden.init(np.eye(4), 2, BroydenConfig(forget_factor=0.0, batch_size=size), seed=0)
    lengths = step_lengths(state, n, longest)
    assert sum(lengths) == n
    assert min(lengths) > 0
    if size > 1:
        assert set(lengths[:-1]) <= {size}
    else:
        assert max(lengths) <= longest
        assert max(lengths) - min(lengths) <= 1
