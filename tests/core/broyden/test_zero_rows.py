"""Sparse rows whose absent entries are zeros, against the same rows as arrays."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from omfb import OMFB
from omfb.core.broyden import step as broyden
from omfb.core.broyden import zero_rows
from omfb.core.broyden.config import BroydenConfig
from omfb.core.broyden.encode import encode, fill
from omfb.core.broyden.engine import BROYDEN

from .test_step import assert_close, assert_same_state, frozen, start

configs = st.builds(
    lambda penalty, **given: BroydenConfig(absent="zero", **penalty, **given),
    st.sampled_from(
        [
            {},
            {"smooth": 0.3},
            {"positive_code": True, "positive_dict": True},
            {"alpha": 0.1},
            {"ridge": 0.2},
        ]
    ),
    lam=st.sampled_from([0.5, 5.0]),
    forget_factor=st.sampled_from([0.0, 0.9, 1.0]),
    inner_iter=st.integers(1, 3),
    batch_size=st.sampled_from([1, 1, 4, 30]),
)


@st.composite
def counts(draw):
    """Counts, most of them zero, and a dictionary."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    r = draw(st.integers(1, 5))
    m, n = 3 * r + 4 + draw(st.integers(0, 60)), draw(st.integers(1, 120))
    C = rng.exponential(size=(m, r)) * (rng.random((m, r)) < 0.5) + 0.01
    Y = rng.poisson(0.3 * rng.exponential(size=(n, r)) @ C.T).astype(float)
    return Y, C / np.linalg.norm(C, axis=0)


@given(counts(), configs)
def test_zeros_that_are_absent_equal_zeros_that_are_there(problem, config):
    Y, C = problem
    dense, codes, info = broyden.step(start(C, config), Y)
    state, sparse_codes, sparse_info = broyden.step(start(C, config), scipy.sparse.csr_array(Y))
    assert_same_state(state, dense, 1e-7)
    assert_close(sparse_codes, codes, 1e-7)
    assert abs(sparse_info.residual - info.residual) <= 1e-8 * info.energy
    assert_close(encode(state, scipy.sparse.csc_array(Y)), encode(dense, Y), 1e-7)
    np.testing.assert_array_equal(fill(state, scipy.sparse.csr_array(Y)), Y)
    scores = [BROYDEN.score_held_out(state, X) for X in (Y, scipy.sparse.csr_array(Y))]
    assert_close(*scores, 1e-10)


@given(counts(), configs, st.data())
def test_where_a_stream_is_cut_does_not_matter(problem, config, data):
    Y, C = problem
    X = scipy.sparse.csr_array(Y)
    whole, codes, _ = broyden.step(start(C, config), X)
    cuts = data.draw(st.lists(st.integers(0, len(Y) // config.batch_size), max_size=5))
    bounds = [0, *sorted(config.batch_size * cut for cut in cuts), len(Y)]
    state, parts = start(C, config), []
    for first, last in pairwise(bounds):
        before = frozen(state)
        after, part, _ = broyden.step(state, X[first:last])
        assert frozen(state) == before
        state = after
        parts.append(part)
    assert_same_state(state, whole, 1e-7)
    assert_close(np.concatenate(parts), codes, 1e-7)


@pytest.mark.parametrize("condition", [0.0, 1.5, 1e5])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_when_the_factor_is_multiplied_out_does_not_matter(rng, monkeypatch, condition, dtype):
    Y = rng.poisson(0.2, size=(700, 40)).astype(dtype)
    config = BroydenConfig(forget_factor=1.0, absent="zero")
    first = broyden.init(Y, 4, config, seed=0)
    dense = broyden.step(first, Y)[0]
    monkeypatch.setattr(
        zero_rows, "LARGEST_CONDITION", dict.fromkeys(("float64", "float32"), condition)
    )
    state = broyden.step(first, scipy.sparse.csr_array(Y))[0]
    assert state.C.dtype == dtype
    assert_same_state(state, dense, 1e-9 if dtype == np.float64 else 1e-3)


def test_the_first_dictionary_is_that_of_the_same_rows_as_an_array(rng):
    Y = rng.poisson(0.2, size=(30, 40)).astype(float)
    Y[3:] = Y[:1]  # too few that differ
    config = BroydenConfig(absent="zero")
    for init in ("data", "random"):
        states = [
            broyden.init(X, 6, config, init=init, seed=1) for X in (Y, scipy.sparse.csr_array(Y))
        ]
        assert_close(states[1].C, states[0].C, 1e-12)


def test_numbers_of_any_size_are_learned(rng):
    Y = rng.poisson(0.5, size=(50, 12)).astype(float)
    for scale in (1e-150, 1e150):
        config = BroydenConfig(absent="zero", forget_factor=1.0)
        state = broyden.init(scipy.sparse.csr_array(scale * Y), 3, config, seed=0)
        assert state.scale != 1.0
        state, _, _ = broyden.step(state, scipy.sparse.csr_array(scale * Y))
        usual, _, _ = broyden.step(broyden.init(scipy.sparse.csr_array(Y), 3, config, seed=0), Y)
        assert_close(state.C * state.scale / scale, usual.C, 1e-9)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e200])
def test_what_cannot_be_an_entry_is_refused_and_changes_nothing(rng, value):
    Y = scipy.sparse.csr_array(rng.poisson(0.5, size=(50, 12)).astype(float))
    model = OMFB(3, absent="zero", random_state=0).fit(Y)
    before, bad = model.components_, Y.copy()
    bad.data[5] = value
    for call in (model.partial_fit, model.transform):
        with pytest.raises(ValueError, match=r"X (has NaN among|contains)"):
            call(bad)
    np.testing.assert_array_equal(model.components_, before)


def test_arrays_keep_their_missing_entries(rng):
    Y = rng.normal(size=(60, 8))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    config = BroydenConfig(forget_factor=1.0)
    first = broyden.init(Y, 2, config, seed=0)
    zero = replace(first, config=replace(config, absent="zero"))
    assert_same_state(broyden.step(zero, Y)[0], broyden.step(first, Y)[0], 1e-12)


def test_sparse_matrices_that_look_like_counts_are_told_about(rng):
    X = scipy.sparse.random_array((60, 20), density=0.2, rng=rng, format="csr")
    for method in ("fit", "partial_fit"):
        with pytest.warns(UserWarning, match="absent entries count as missing"):
            getattr(OMFB(2, random_state=0), method)(X)
    for absent in ("missing", "zero"):
        OMFB(2, absent=absent, random_state=0).fit(X)  # warnings are errors
    X.data -= 0.5
    OMFB(2, random_state=0).fit(X)


def test_the_fit_is_that_of_a_singular_value_decomposition(rng):
    """One pass over rows that all atoms are needed for."""
    topics = rng.exponential(size=(5, 300)) * (rng.random((5, 300)) < 0.1)
    Y = rng.poisson(rng.exponential(size=(2000, 5)) @ topics).astype(float)
    model = OMFB(5, forget_factor=1.0, absent="zero", random_state=0).fit(scipy.sparse.csr_array(Y))
    Q = np.linalg.qr(model.components_.T)[0]
    error = np.linalg.norm(Y - Y @ Q @ Q.T)
    best = np.sqrt(np.sum(np.linalg.svd(Y, compute_uv=False)[5:] ** 2))
    assert error <= 1.01 * best
