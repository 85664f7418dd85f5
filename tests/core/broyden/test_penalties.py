"""The seam for codes: another penalty in all kinds of block, against the naive formulas."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.optimize import nnls

from omfb.core import blocks
from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.broyden.encode import encode

from ... import reference


class NonNegative:
    """x ≥ 0, by coordinate descent."""

    smooth = 0.0

    def codes(self, G, B, x_before=None):
        X = np.zeros_like(B)
        for _ in range(5000):
            before = X.copy()
            for j in range(len(G)):
                X[:, j] = np.maximum(X[:, j] + (B[:, j] - X @ G[j]) / G[j, j], 0.0)
            if np.abs(X - before).max() <= 1e-15 * np.abs(X).max():
                break
        return X


@dataclass(frozen=True, slots=True)
class NonNegativeRule(BroydenConfig):
    penalty: NonNegative = NonNegative()  # noqa: RUF009


def nonnegative_codes(C, Y, ridge, smooth, x_before=None):
    seen = ~np.isnan(Y)
    return np.array([nnls(C[o], y[o])[0] for y, o in zip(Y, seen, strict=True)])


def stream(rng, missing, m=14, r=3, n=40):
    C = rng.random((m, r))
    Y = rng.exponential(size=(n, r)) @ C.T + 0.3 * rng.normal(size=(n, m))
    if missing == "random":
        Y[rng.random(Y.shape) < 0.2] = np.nan
    elif missing == "outage":
        Y[10:30, 3:6] = np.nan
    return Y, C + 0.2 * rng.random((m, r))


def assert_close(a, b, tolerance=1e-8):
    assert np.abs(a - b).max() <= tolerance * np.abs(b).max()


@pytest.mark.parametrize("missing", ["none", "random", "outage"])
@pytest.mark.parametrize("forget_factor", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("batch_size", [1, 5])
def test_another_penalty_learns_by_the_naive_formulas(
    rng, monkeypatch, missing, forget_factor, batch_size
):
    monkeypatch.setattr(reference, "codes_of", nonnegative_codes)
    monkeypatch.setattr(blocks, "WORTH_A_BLOCK", 0)
    Y, C = stream(rng, missing)
    config = NonNegativeRule(lam=0.5, forget_factor=forget_factor, batch_size=batch_size)
    told = reference.learn(reference.first(C, config.lam), Y, config)
    state, codes, info = broyden.step(broyden.init(Y, 3, config, init=C.T), Y)
    assert (codes >= 0.0).all()
    assert (codes == 0.0).any()
    assert_close(codes, told.codes)
    assert_close(state.C, told.past.C)
    assert_close(state.G, told.past.C.T @ told.past.C)
    assert np.isclose(info.residual, told.residual, rtol=1e-8)
    if forget_factor > 0.0:
        assert_close(state.S, told.past.S)


@pytest.mark.parametrize("missing", ["none", "random", "outage"])
def test_another_penalty_encodes(rng, missing):
    Y, C = stream(rng, missing)
    codes = encode(broyden.init(Y, 3, NonNegativeRule(), init=C.T), Y)
    expected = nonnegative_codes(C, Y, 0.0, 0.0)
    assert (expected == 0.0).any()
    assert_close(codes, expected)


@pytest.mark.parametrize("ridge", [0.0, 0.7])
def test_the_closed_form_is_what_its_compiled_kernels_find(rng, ridge):
    """One row at a time with `Quadratic.codes` alone, against the kernels."""
    Y, C = stream(rng, "random")
    from omfb.core.broyden.penalties import Quadratic

    class Slow:
        smooth = 0.0
        codes = Quadratic(ridge, 0.0, 1e-10).codes

    @dataclass(frozen=True, slots=True)
    class SlowConfig(BroydenConfig):
        penalty: Slow = Slow()  # noqa: RUF009

    for X in (Y, np.nan_to_num(Y)):
        fast = broyden.step(
            broyden.init(X, 3, BroydenConfig(ridge=ridge, forget_factor=1.0), init=C.T), X
        )
        slow = broyden.step(
            broyden.init(X, 3, SlowConfig(ridge=ridge, forget_factor=1.0), init=C.T), X
        )
        assert_close(fast[1], slow[1], 1e-10)
        assert_close(fast[0].C, slow[0].C, 1e-10)
