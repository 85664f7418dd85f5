"""Rows that observe the same features: exact blocks for each pattern, whatever the threads."""

import multiprocessing
import os
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from omfb.core import blocks
from omfb.core.broyden import dictionary
from omfb.core.broyden import runs as run
from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.broyden.encode import encode, fill
from omfb.core.linalg import patterns, threads
from omfb.core.linalg.rows import Rows

from ... import reference
from .test_step import EXACT, as_sparse, assert_close, assert_same_state, configs, in_units, start


@pytest.fixture(autouse=True)
def always_blocks(monkeypatch):
    """However little work it saves."""
    monkeypatch.setattr(blocks, "WORTH_A_BLOCK", 0)
    monkeypatch.setattr(patterns, "WORTH_A_PRODUCT", 0)


@st.composite
def outages(draw):
    """A noisy low-rank stream in which features fall out for some time; enough of them stay."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    r = draw(st.integers(1, 5))
    m = 2 * r + 3 + draw(st.integers(0, 30))
    C = rng.normal(size=(m, r))
    Y = rng.normal(size=(40, r)) @ C.T + 0.3 * rng.normal(size=(40, m))
    clean = Y.copy()
    for _ in range(draw(st.integers(1, 4))):
        first, length = rng.integers(40), draw(st.sampled_from([1, 5, 20]))
        hidden = rng.permutation(m)[: draw(st.integers(1, m - 2 * r - 2))]
        Y[first : first + length] = clean[first : first + length]
        Y[first : first + length, hidden] = np.nan
    return Y, C + 0.3 * rng.normal(size=(m, r))


@settings(max_examples=80, deadline=None)
@given(outages(), configs, st.booleans())
def test_an_outage_equals_the_reference(problem, config, sparse):
    Y, C = problem
    # A prior with a small forget_factor shrinks C to nothing, and rounding grows row by row.
    shrink = config.shrink if config.forget_factor >= 0.9 else 0.0
    config = in_units(replace(config, batch_size=1, shrink=shrink), np.abs(C).max())
    told = reference.learn(reference.first(C, config.lam), Y, config)
    state, codes, info = broyden.step(start(C, config), as_sparse(Y) if sparse else Y)
    assert_close(state.C, told.past.C)
    assert_close(codes, told.codes)
    assert_close(state.G, told.past.C.T @ told.past.C)
    assert abs(info.residual - told.residual) <= EXACT * told.energy
    if config.forget_factor > 0.0:
        assert_close(state.S, told.past.S)


def test_a_long_outage_keeps_the_gram_matrix(rng):
    """G of all features is recomputed although the blocks only see the observed ones."""
    Y = rng.normal(size=(3000, 4)) @ rng.normal(size=(4, 20)) + 0.1 * rng.normal(size=(3000, 20))
    Y[:, 5:9] = np.nan
    Y[0] = 1.0
    state, _, _ = broyden.step(broyden.init(Y, 4, seed=0), Y)
    assert np.abs(state.G - state.C.T @ state.C).max() <= 1e-12 * np.abs(state.G).max()
    assert state.entries_since_gram <= 8 * state.C.size + 256 * 20


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("smooth", [0.0, 0.5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_codes_of_shared_patterns_equal_those_of_single_rows(rng, shuffled, smooth, dtype):
    masks = rng.random((4, 25)) < 0.3
    which = rng.integers(4, size=200) if shuffled else np.repeat(np.arange(4), 50)
    Y = np.where(masks[which], np.nan, rng.normal(size=(200, 25))).astype(dtype)
    Y[3] = np.nan
    state = broyden.init(
        Y,
        4,
        BroydenConfig(ridge=0.1, smooth=smooth, forget_factor=1.0),
        init=rng.normal(size=(4, 25)),
    )
    codes = encode(state, Y)
    expected = reference.codes_of(state.C.astype(float), Y.astype(float), 0.1, smooth)
    tolerance = EXACT if dtype == np.float64 else 1e-5
    assert_close(codes, expected, tolerance)
    assert_close(encode(state, as_sparse(Y)), codes, tolerance)


def test_rows_are_grouped_by_what_they_observe(rng):
    masks = rng.random((5, 12)) < 0.5
    which = rng.integers(5, size=40)
    Y = np.where(masks[which], 1.0, np.nan)
    Y[7] = np.where(np.arange(12) == 3, 2.0, np.nan)
    rows = blocks.dense_rows(Y)
    groups, single = patterns.by_pattern(rows, 12, 3)
    assert sorted(np.concatenate([*groups, single]).tolist()) == list(range(40))
    for group in groups:
        assert (np.isnan(Y[group]) == np.isnan(Y[group[0]])).all()
    assert len(single) <= 2
    found = rows.take(np.array([7, 0]))
    assert isinstance(found, Rows)
    assert found.features[0] == 3
    for first, last in patterns.runs(rows):
        assert (np.isnan(Y[first:last]) == np.isnan(Y[first])).all()


def test_rows_of_one_hash_that_differ_are_not_grouped(rng, monkeypatch):
    monkeypatch.setattr(patterns, "hash_each", lambda starts, features, out: out.fill(0))
    Y = np.where(np.eye(6, dtype=bool), np.nan, rng.normal(size=(6, 6)))
    groups, single = patterns.by_pattern(blocks.dense_rows(Y), 6, 2)
    assert groups == []
    assert len(single) == 6


# -- m ≤ r ------------------------------------------------------------------------------------


@pytest.mark.parametrize("forget_factor", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("m", [1, 3, 5])
def test_no_more_features_than_components_equals_the_reference(rng, forget_factor, missing, m):
    C, Y = rng.normal(size=(m, 5)) + np.eye(m, 5), rng.normal(size=(30, m))
    if missing:
        Y[rng.random(Y.shape) < 0.3] = np.nan
    config = BroydenConfig(forget_factor=forget_factor, shrink=0.0)
    told = reference.learn(reference.first(C, 1.0), Y, config)
    state, codes, info = broyden.step(start(C, config), Y)
    tolerance = 1e-9 if forget_factor in (0.0, 1.0) else 1e-7  # the least ridge: a condition of 1e6
    assert_close(codes, told.codes, tolerance)
    assert_close(state.C, told.past.C, tolerance)
    assert abs(info.residual - told.residual) <= tolerance * told.energy
    if forget_factor > 0.0:
        assert_close(state.S, told.past.S, tolerance)


# -- threads ----------------------------------------------------------------------------------


def with_threads(patch, n):
    @contextmanager
    def team(work):
        yield threads.Team(n)

    patch.setattr(run, "team", team)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("outage", [False, True])
@pytest.mark.parametrize("forget_factor", [0.0, 1.0])
def test_threads_do_not_change_a_bit(rng, dtype, outage, forget_factor):
    m, r = 9000, 30
    Y = rng.random((300, m)).astype(dtype)
    Y[100:250, 50:600] = np.nan if outage else 0.5
    state = broyden.init(Y, r, BroydenConfig(forget_factor=forget_factor), init=rng.random((r, m)))
    results = []
    for n in (1, 2, 5):
        with pytest.MonkeyPatch.context() as patch:
            with_threads(patch, n)
            learned, codes, info = broyden.step(state, Y)
        results.append((learned.C.tobytes(), learned.G.tobytes(), codes.tobytes(), info))
    assert results[0] == results[1] == results[2]


def test_pieces_of_features_equal_the_reference(rng):
    m, r = 1400, 3
    C = rng.normal(size=(m, r))
    Y = rng.normal(size=(150, r)) @ C.T + 0.3 * rng.normal(size=(150, m))
    with pytest.MonkeyPatch.context() as patch:
        # 47 slices of 30 features, the last of 20
        patch.setattr(dictionary, "SMALL_PRODUCT", 64 * r * 30)
        patch.setattr(dictionary, "LEAST_WIDTH", 0)
        whole, _, _ = broyden.step(start(C + 0.1, BroydenConfig(forget_factor=1.0)), Y)
    told = reference.learn(reference.first(C + 0.1, 1.0), Y[:20], BroydenConfig(forget_factor=1.0))
    part, codes, _ = broyden.step(start(C + 0.1, BroydenConfig(forget_factor=1.0)), Y[:20])
    assert_close(part.C, told.past.C)
    assert_close(codes, told.codes)
    assert_same_state(whole, broyden.step(start(C + 0.1, BroydenConfig(forget_factor=1.0)), Y)[0])


@given(st.integers(1, 400_000), st.integers(1, 30_000))
def test_every_feature_is_in_one_slice(m, work):
    pieces = list(dictionary.cut(m, work))
    assert len(pieces) <= dictionary.MOST_PIECES
    at = 0
    for here, n in (ranges for piece in pieces for ranges in piece):
        assert here.start == at < here.stop
        assert n <= dictionary.STACK
        assert (here.stop - here.start) % n == 0
        at = here.stop
    assert at == m


def test_all_tasks_are_done_once_and_an_error_is_heard():
    done = np.zeros(50, int)

    def task(at):
        done[at] += 1
        if at == 20 and broken:
            raise ValueError("task 20")

    broken = False
    threads.Team(4).run(task, 50)
    assert (done == 1).all()
    broken = True
    with pytest.raises(ValueError, match="task 20"):
        threads.Team(4).run(task, 50)


def blas_threads():
    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


@pytest.mark.skipif(not blas_threads(), reason="no BLAS that threadpoolctl knows")
def test_blas_has_one_thread_meanwhile_and_its_own_afterwards():
    threads._blas.cache_clear()  # SciPy may have loaded its own since the last team
    with threadpool_limits(2):
        with threads.team(10**9) as outer, threads.team(10**9) as inner:
            assert set(blas_threads()) == {1}
            assert outer.n_threads == inner.n_threads <= 2
        assert set(blas_threads()) == {2}
    with threadpool_limits(1), threads.team(10**9) as team:
        assert team.n_threads == 1


def _learn_in_child(state, Y, expected):
    assert broyden.step(state, Y)[0].C.tobytes() == expected
    os._exit(0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(rng):
    Y = rng.random((128, 20_000))
    state = broyden.init(Y, 10, seed=0)
    with threadpool_limits(2):
        expected = broyden.step(state, Y)[0].C.tobytes()
        context = multiprocessing.get_context("fork")
        child = context.Process(target=_learn_in_child, args=(state, Y, expected))
        child.start()
        child.join(60)
    assert child.exitcode == 0


def test_a_block_of_full_sparse_rows_goes_through_the_same_recursion(rng):
    Y = rng.normal(size=(70, 30))
    state = broyden.init(Y, 4, seed=0)
    dense, codes, _ = broyden.step(state, Y)
    sparse, same, _ = broyden.step(state, scipy.sparse.csr_array(Y))
    assert_same_state(sparse, dense)
    assert_close(same, codes)


# -- filling ----------------------------------------------------------------------------------


@pytest.mark.parametrize("smooth", [0.0, 0.5])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("share", [0.0, 0.1, 1.0])
def test_what_is_filled_is_the_decoded_code_and_the_rest_stays(rng, smooth, sparse, share):
    Y = rng.normal(size=(60, 12))
    Y[(rng.random((60, 1)) < share) & (rng.random(Y.shape) < 0.3)] = np.nan
    state = broyden.init(
        Y,
        3,
        BroydenConfig(ridge=0.1, smooth=smooth, forget_factor=1.0),
        init=rng.normal(size=(3, 12)),
    )
    X = as_sparse(Y) if sparse else Y
    before = Y.copy()
    filled = fill(state, X)
    codes = encode(state, Y)
    missing = np.isnan(Y)
    assert np.array_equal(Y, before, equal_nan=True)
    assert np.array_equal(filled[~missing], Y[~missing])
    assert np.allclose(filled, np.where(missing, codes @ state.C.T, Y), rtol=1e-10)
    filled[:] = 0.0
    assert np.array_equal(Y, before, equal_nan=True)


def test_infinity_is_not_filled(rng):
    Y = rng.normal(size=(5, 4))
    Y[2, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        fill(broyden.init(Y[:2], 2, seed=0), Y)
