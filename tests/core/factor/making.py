"""States, tables and comparisons that the tests of the factor model share."""

from dataclasses import fields, is_dataclass

import numpy as np

from omfb.core.conformal import N_BINS
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.hyper import Hyper
from omfb.core.factor.init import init
from omfb.core.factor.state import Temporal, evolve
from omfb.core.factor.step import end_batch, step
from omfb.core.factor.univariate import DISTANCES

NO_HOLDOUT = 2**62
"""`Hyper.holdout_every` with which no row holds anything out."""


def config(n_components=3, *, hyper=None, **given):
    """A config in which nothing is held out, so that every entry is learned."""
    hyper = {"holdout_every": NO_HOLDOUT, **(hyper or {})}
    return FactorConfig(n_components, hyper=Hyper(**hyper), **given)


def table(seed, n, m, missing=0.0, rank=2):
    """Rows of low rank, with columns of different units."""
    rng = np.random.default_rng(seed)
    X = 5 + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m))
    X += 0.3 * rng.standard_normal((n, m))
    X[rng.random((n, m)) < missing] = np.nan
    return X * 10.0 ** rng.integers(-2, 3, m)


def learned(X, given=None, seed=0):
    """The state after one pass over rows."""
    return step(init(X, given, seed=seed), X)[0]


def temporal_state(X, code_ar, *, known_dictionary=True, hyper=None, **given):
    """A state of len(code_ar) components with these autoregressions; others are 0 unless given.

    With a known dictionary (Σ = 0) what is missing has a Gaussian posterior.
    """
    m, r = X.shape[1], len(code_ar)
    state = end_batch(learned(X, config(r, hyper=hyper)))
    if known_dictionary:
        state = evolve(state, Sigma=np.zeros((r + 1, r + 1)))
    zeros = {
        "residual_ar": np.zeros(m), "last_code": np.zeros(r), "last_code_cov": np.eye(r),
        "last_residual": np.zeros(m), "residual_age": np.zeros(m, np.int64),
        "histogram": np.zeros(N_BINS), "one_step_histogram": np.zeros(N_BINS),
        "series_ar": np.zeros(m), "series_weight": np.zeros((len(DISTANCES), m)),
        "n_seen": state.n_seen, "last_value": np.zeros(m),
    }  # fmt: skip
    temporal = Temporal(np.asarray(code_ar, float), **{**zeros, **given})
    return evolve(state, temporal=temporal)


def whiten(state, X):
    """Rows, centred, in units of the noise."""
    return (X - state.params.center) / state.params.noise_std


def leaves(group, prefix=""):
    """Every array and number of nested dataclasses, by its path."""
    found = {}
    for each in fields(group):
        value = getattr(group, each.name)
        if is_dataclass(value):
            found |= leaves(value, f"{prefix}{each.name}.")
        else:
            found[prefix + each.name] = value
    return found


def assert_same(one, other, rtol=1e-8):
    """Nested dataclasses are equal: numbers to rounding, beside the largest of their array."""
    mine, others = leaves(one), leaves(other)
    assert mine.keys() == others.keys()
    for name, value in mine.items():
        if isinstance(value, np.ndarray | float):
            atol = rtol * np.abs(np.asarray(value, float)).max(initial=1e-300)
            np.testing.assert_allclose(others[name], value, rtol=rtol, atol=atol, err_msg=name)
        else:
            assert value == others[name], name


def assert_identical(one, other):
    """Nested dataclasses are equal to the last bit."""
    mine, others = leaves(one), leaves(other)
    assert mine.keys() == others.keys()
    for name, value in mine.items():
        assert np.array_equal(value, others[name]), name
