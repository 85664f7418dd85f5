"""Nonnegative and sparse codes, constrained dictionaries: naive formulas, KKT, invariances."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.broyden import constraints
from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.broyden.coordinate_descent import descend, sweep
from omfb.core.broyden.encode import encode, fill
from omfb.core.broyden.engine import BROYDEN
from omfb.core.broyden.penalties import ElasticNet

from ... import reference
from .test_step import as_sparse, assert_close, assert_same_state, frozen, start

# Codes are continuous in the data, but not smooth: rounding is multiplied where a support changes.
CLOSE = 1e-7


@st.composite
def configs(draw):
    alpha = draw(st.sampled_from([0.0, 0.0, 0.2, 1.0]))
    return BroydenConfig(
        lam=draw(st.sampled_from([0.5, 5.0])),
        forget_factor=draw(st.sampled_from([0.0, 0.9, 1.0])),
        ridge=draw(st.sampled_from([0.0, 0.3])),
        inner_iter=draw(st.integers(1, 3)),
        batch_size=draw(st.sampled_from([1, 1, 3, 8])),
        positive_code=True if alpha == 0.0 else draw(st.booleans()),
        positive_dict=draw(st.booleans()),
        alpha=alpha,
        l1_ratio=draw(st.sampled_from([1.0, 0.5, 0.0])) if alpha else 1.0,
    )


@st.composite
def problems(draw):
    """A nonnegative stream with noise, and a nonnegative dictionary of norms below 1."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    r = draw(st.integers(1, 5))
    m, n = 3 * r + 4 + draw(st.integers(0, 20)), draw(st.integers(1, 50))
    C = rng.exponential(size=(m, r)) * (rng.random((m, r)) < 0.6)
    C += 0.01 * rng.random((m, r))
    C /= np.linalg.norm(C, axis=0)
    Y = rng.exponential(size=(n, r)) @ C.T + 0.1 * rng.normal(size=(n, m))
    if draw(st.booleans()):
        Y[rng.random(Y.shape) < draw(st.sampled_from([0.1, 0.4]))] = np.nan
        Y[rng.random(n) < 0.05] = np.nan
    return Y, 0.9 * C


@settings(max_examples=60)
@given(problems(), configs())
def test_a_step_equals_the_naive_formulas(problem, config):
    Y, C = problem
    told = reference.learn(reference.first(C, config.lam), Y, config)
    state, codes, info = broyden.step(start(C, config), Y)
    assert_close(codes, told.codes, CLOSE)
    assert_close(state.C, told.past.C, CLOSE)
    assert_close(state.G, told.past.C.T @ told.past.C, CLOSE)
    assert abs(info.residual - told.residual) <= CLOSE * told.energy
    if config.forget_factor > 0.0:
        assert_close(state.S, told.past.S, CLOSE)


@given(problems(), configs(), st.data())
def test_where_a_stream_is_cut_does_not_matter(problem, config, data):
    Y, C = problem
    whole, codes, _ = broyden.step(start(C, config), Y)
    cuts = data.draw(st.lists(st.integers(0, len(Y) // config.batch_size), max_size=5))
    state, parts = start(C, config), []
    for part in np.split(Y, sorted(config.batch_size * cut for cut in cuts)):
        state, part_codes, _ = broyden.step(state, part, reuse=data.draw(st.booleans()))
        parts.append(part_codes)
    assert_same_state(state, whole, CLOSE)
    assert_close(np.concatenate(parts), codes, CLOSE)
    assert state.rows_since_shrink == whole.rows_since_shrink


@given(problems(), configs())
def test_sparse_rows_equal_an_array_with_nan(problem, config):
    Y, C = problem
    dense, codes, _ = broyden.step(start(C, config), Y)
    state, sparse_codes, _ = broyden.step(start(C, config), as_sparse(Y))
    assert_same_state(state, dense, CLOSE)
    assert_close(sparse_codes, codes, CLOSE)


@given(problems(), configs())
def test_what_users_see_satisfies_the_constraints(problem, config):
    Y, C = problem
    state, codes, _ = BROYDEN.step(start(C, config), Y, reuse=False)
    before = frozen(state)
    atoms = BROYDEN.components(state)
    if config.positive_code:
        assert (codes >= 0.0).all()
        assert (encode(state, Y) >= 0.0).all()
    if config.positive_dict:
        assert (atoms >= 0.0).all()
        if config.positive_code:
            assert (fill(state, Y)[np.isnan(Y)] >= 0.0).all()
    if config.alpha > 0.0:
        assert (np.linalg.norm(atoms, axis=1) <= 1.0 + 1e-12).all()
    assert frozen(state) == before
    assert frozen(BROYDEN.finalize(state, None, None))["rows_since_shrink"] == 0 or not (
        config.constrains_dictionary
    )


@given(problems(), configs())
def test_the_objective_does_not_rise_over_inner_rounds(problem, config):
    Y, C = problem
    before, _, _ = broyden.step(start(C, config), Y)
    Y = Y[: config.batch_size]
    past = reference.Past(before.C, before.S, before.code, before.n_seen)
    values = []
    for rounds in range(1, 6):
        now = replace(before, config=replace(config, inner_iter=rounds), rows_since_shrink=0)
        if len(Y) >= broyden.rows_to_go(now):
            return  # then the dictionary is constrained as well
        state, codes, _ = broyden.step(now, Y)
        weights = replace(config, ridge=now.ridge)
        values.append(reference.objective(state.C, codes, Y, past, weights))
    assert all(np.diff(values) <= 1e-9 * (values[0] + np.nansum(Y**2)))


# -- codes ------------------------------------------------------------------------------------


def kkt(G, b, x, l1, ridge, positive):
    """The largest violation of the optimality conditions."""
    slope = G @ x - b + ridge * x
    at_zero = -slope - l1 if positive else np.abs(slope) - l1
    return np.where(x != 0.0, np.abs(slope + l1 * np.sign(x)), np.maximum(at_zero, 0.0)).max()


@settings(max_examples=200)
@given(
    st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 60),
    st.sampled_from([0.0, 0.01, 0.3]), st.sampled_from([0.0, 0.1]), st.booleans(),
    st.sampled_from([0.0, 0.9, 0.999]),
)  # fmt: skip
def test_codes_satisfy_the_kkt_conditions(seed, r, m, l1, ridge, positive, alike):
    """Also with more atoms than features, and with atoms that are nearly the same."""
    rng = np.random.default_rng(seed)
    C = (1.0 - alike) * rng.normal(size=(m, r)) + alike * rng.random((m, 1))
    if r > 3:
        C[:, 0] = 0.0
        C[:, 1] = C[:, 2]
    G, B = C.T @ C, rng.normal(size=(4, m)) @ C
    l1 = l1 * np.abs(B).max()
    X = ElasticNet(l1, ridge, positive, 1e-10).codes(G, B)
    assert not positive or (X >= 0.0).all()
    for b, x in zip(B, X, strict=True):
        assert kkt(G, b, x, l1, ridge, positive) <= 1e-8 * max(np.abs(b).max(), l1, 1e-300)


def test_nonnegative_codes_are_those_of_scipy(rng):
    C, Y = rng.random((30, 12)), rng.normal(size=(20, 30))
    X = ElasticNet(0.0, 0.0, True, 1e-10).codes(C.T @ C, Y @ C)
    assert_close(X, [scipy.optimize.nnls(C, y)[0] for y in Y], 1e-9)


def test_sweeps_and_solutions_on_the_support_lower_the_objective(rng):
    for positive in (False, True):
        C, y = rng.random((20, 10)), rng.normal(size=20)
        G, b, x = C.T @ C, C.T @ y, np.zeros(10)
        values = []
        for _ in range(30):
            values.append(0.5 * x @ G @ x - b @ x + 0.1 * np.abs(x).sum())
            sweep.py_func(G, 0.1, 0.0, positive, x, G @ x - b)  # kernels alone call it compiled
        assert (np.diff(values) <= 1e-14).all()
        best = np.zeros(10)
        descend(G, b, 0.1, 0.0, positive, 1e-10, best, np.empty((3, 10)))
        assert 0.5 * best @ G @ best - b @ best + 0.1 * np.abs(best).sum() <= values[-1] + 1e-13


def test_rows_that_overflow_are_refused(rng):
    Y, C = rng.random((10, 6)), rng.random((6, 2))
    state = start(C, BroydenConfig(positive_code=True, forget_factor=1.0))
    for X in (1e153 * Y, np.where(np.eye(10, 6) > 0, np.nan, 1e153 * Y)):
        with pytest.raises(ValueError, match="too large"):
            broyden.step(state, X)


# -- the dictionary ---------------------------------------------------------------------------


@pytest.mark.parametrize(("positive", "largest"), [(True, np.inf), (False, 1.0), (True, 1.0)])
def test_the_nearest_dictionary(rng, monkeypatch, positive, largest):
    C, X = rng.normal(size=(9, 4)), rng.normal(size=(30, 4))
    S = X.T @ X
    told = reference.nearest(C, S, positive, np.isfinite(largest))
    assert_close(constraints.nearest(C, S, positive, largest), told)
    assert (constraints.nearest(C.astype(np.float32), S, positive, largest) >= 0).all() == positive
    # With sweeps enough, it is the nearest one.
    monkeypatch.setattr(constraints, "SWEEPS", 2000)
    near = constraints.nearest(C, S, positive, largest)
    slope = 2.0 * (near - C) @ S
    free = np.linalg.norm(near, axis=0) < 1.0 - 1e-9
    if not positive:
        multiplier = -np.sum(slope * near, axis=0)
        assert_close(slope, -multiplier * near, 1e-8)
        assert (multiplier >= -1e-8).all()
        assert np.abs(slope[:, free]).max(initial=0.0) < 1e-6
    elif not np.isfinite(largest):
        assert np.abs(slope * near).max() < 1e-8
        assert slope.min() > -1e-8


def test_a_given_start_has_to_satisfy_the_constraints(rng):
    Y, C = rng.random((20, 6)), rng.normal(size=(6, 2))
    with pytest.raises(ValueError, match="init has negative entries"):
        broyden.init(Y, 2, BroydenConfig(positive_dict=True), init=C.T)
    state = broyden.init(Y, 2, BroydenConfig(alpha=1.0), init=C.T)
    assert (np.linalg.norm(state.C, axis=0) <= 1.0 + 1e-12).all()
    Y[rng.random(Y.shape) < 0.7] = np.nan
    for init in ("data", "random"):
        assert (broyden.init(Y, 2, BroydenConfig(positive_dict=True), init=init).C >= 0.0).all()


def test_a_constraint_that_is_set_later_holds_at_once(rng):
    Y = rng.normal(size=(50, 6))
    state, _, _ = BROYDEN.step(broyden.init(Y, 2, BroydenConfig(), seed=0), Y, reuse=False)
    assert (BROYDEN.components(state) < 0.0).any()
    later = BROYDEN.with_config(state, BroydenConfig(positive_dict=True))
    assert (BROYDEN.components(later) >= 0.0).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"positive_code": True, "smooth": 1.0}, "smooth=1.0 solves"),
        ({"alpha": 1.0, "smooth": 1.0}, "smooth=1.0 solves"),
        ({"positive_dict": True, "shrink": 1.0, "forget_factor": 1.0}, "positive_dict=True exclu"),
        ({"l1_ratio": 0.5}, "l1_ratio=0.5 is a share of alpha"),
        ({"positive_code": 1}, "positive_code must be True or False"),
    ],
)
def test_contradictions_are_refused(given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        BroydenConfig(**given)


def test_a_dictionary_may_be_nonnegative_with_smooth_codes(rng):
    Y = rng.normal(size=(60, 6))
    config = BroydenConfig(positive_dict=True, smooth=1.0, forget_factor=1.0)
    state, codes, _ = broyden.step(broyden.init(Y, 2, config, seed=0), Y)
    assert (BROYDEN.components(state) >= 0.0).all()
    assert (codes < 0.0).any()
