"""The dictionary during a run of blocks: deferring products changes only the time."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.broyden import dictionary
from omfb.core.broyden import runs as run
from omfb.core.broyden import step as broyden
from omfb.core.broyden.block import Gains
from omfb.core.broyden.config import BroydenConfig

from ... import reference
from .test_step import assert_close, configs, in_units, problems, start


@pytest.fixture
def deferred(monkeypatch):
    """Defer where possible, in blocks of eight rows; records for each block whether it was."""
    told = []
    mixed = dictionary.Dictionary._mixed

    def watched(self, T, B, Y):
        told.append(T is None)
        return mixed(self, T, B, Y)

    monkeypatch.setattr(dictionary, "WORTH_DEFERRING", 0)
    monkeypatch.setattr(run, "block_length", lambda m, r: 8)
    monkeypatch.setattr(dictionary.Dictionary, "_mixed", watched)
    return told


@settings(max_examples=80, deadline=None)
@given(problems(holes=False), configs, st.integers(2, 20))
def test_blocks_whose_product_is_deferred_equal_the_reference(problem, config, length):
    Y, C = problem
    config = replace(in_units(config, np.abs(C).max()), batch_size=1, shrink=0.0)
    told = reference.learn(reference.first(C, config.lam), Y, config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dictionary, "WORTH_DEFERRING", 0)
        patch.setattr(run, "block_length", lambda m, r: length)
        state, codes, _ = broyden.step(start(C, config), Y)
    assert_close(state.C, told.past.C)
    assert_close(codes, told.codes)
    assert_close(state.G, told.past.C.T @ told.past.C)


@given(st.integers(1, 20), st.integers(1, 8), st.integers(0, 2**32))
def test_gains_solved_towards_the_start_undo_what_a_block_takes(q, r, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(q, r))
    K = X / (1.0 + (X * X).sum(axis=1, keepdims=True))
    gains = Gains(K, K @ X.T)
    B, V = gains.towards_the_end(), gains.towards_the_start()
    U = np.triu(K @ X.T, 1)
    assert_close(B, np.linalg.solve(np.eye(q) + U, K))
    # A = I − XᵀB may be as good as singular: both sides are multiplied by it.
    assert_close(V - V @ X.T @ B, B, 1e-10 * max(np.abs(V).max() / np.abs(B).max(), 1.0))
    assert np.isclose(gains.mean_factor**r, abs(np.linalg.det(np.eye(r) - X.T @ B)), atol=1e-12)


def test_a_dictionary_that_changes_little_is_multiplied_once(rng, deferred):
    Y = rng.normal(size=(80, 4)) @ rng.normal(size=(4, 30)) + 0.1 * rng.normal(size=(80, 30))
    state = broyden.init(Y, 4, BroydenConfig(lam=500.0, ridge=0.1, forget_factor=1.0), seed=0)
    broyden.step(state, Y)
    assert deferred == [True] * 9 + [False]


def test_one_that_each_block_replaces_is_multiplied_each_time(rng, deferred):
    Y = rng.normal(size=(80, 4)) @ rng.normal(size=(4, 30)) + 0.1 * rng.normal(size=(80, 30))
    state = broyden.init(Y, 4, BroydenConfig(forget_factor=0.0, lam=1e-3), seed=0)
    broyden.step(state, Y)
    assert deferred == [False] * 10


def test_what_is_deferred_is_made_up_for_before_it_spoils_the_numbers(rng, deferred):
    Y = rng.normal(size=(400, 4)) @ rng.normal(size=(4, 30)) + 0.1 * rng.normal(size=(400, 30))
    state = broyden.init(Y, 4, BroydenConfig(forget_factor=0.0, lam=100.0), seed=0)
    learned, _, _ = broyden.step(state, Y)
    assert 2 < deferred.count(False) < 25
    told = reference.learn(reference.first(state.C, 100.0), Y, state.config)
    assert_close(learned.C, told.past.C, 1e-12)


def test_a_run_that_ends_amid_blocks_has_its_dictionary(rng, deferred):
    """The block after the deferred ones misses an entry: the run ends before it."""
    Y = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 30)) + 0.1 * rng.normal(size=(40, 30))
    Y[30, 3] = np.nan
    state = broyden.init(Y, 4, BroydenConfig(lam=500.0, ridge=0.1, forget_factor=1.0), seed=0)
    learned, codes, _ = broyden.step(state, Y)
    assert deferred[:3] == [True] * 3
    told = reference.learn(reference.first(state.C, 500.0), Y, state.config)
    assert_close(learned.C, told.past.C)
    assert_close(codes, told.codes)


def test_float32_loses_little_by_what_is_deferred(rng, monkeypatch):
    monkeypatch.setattr(run, "block_length", lambda m, r: 64)
    Y = (rng.random((640, 10)) @ rng.random((10, 300)) + rng.random((640, 300))).astype(np.float32)
    config, first = BroydenConfig(forget_factor=0.0, lam=20.0), rng.random((20, 300))

    def learned(dtype, worth):
        monkeypatch.setattr(dictionary, "WORTH_DEFERRING", worth)
        return broyden.step(broyden.init(Y.astype(dtype), 20, config, init=first), Y.astype(dtype))[
            0
        ].C

    exact = learned(np.float64, np.inf)
    at_once, later = (np.abs(learned(np.float32, w) - exact).max() for w in (np.inf, 0))
    assert 0.0 < later < 8.0 * at_once < 1e-3 * np.abs(exact).max()


@pytest.mark.parametrize("bad", [np.nan, np.inf, 0.0])
def test_a_factor_without_an_inverse_is_badly_conditioned(bad):
    assert dictionary.Factor(np.eye(3), np.eye(3)).is_well_conditioned
    broken = np.eye(3)
    broken[1, 1] = bad
    with np.errstate(all="ignore"):
        assert not dictionary.Factor(broken, 1.0 / broken).is_well_conditioned
