"""Kernels on their own: compiled or not, how often compiled, and the linear algebra in them."""

import errno
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core import caching

from omfb.core.broyden import penalties as codes
from omfb.core.broyden import smooth_codes as chain
from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.linalg import observed, row_products, small, threads
from omfb.core.linalg.compiling import jit

from ... import reference

# All kinds of step, by everything that an estimator can be given.
ALL_KINDS = """
import itertools, sys
import numpy as np, scipy.sparse
from omfb.core.broyden import step as broyden
from omfb import OMFB
from omfb.core.broyden.config import BroydenConfig

rng = np.random.default_rng(0)
Y = rng.normal(size=(9, 7))
holes = np.where(rng.random(Y.shape) < 0.3, np.nan, Y)
holes[4] = np.nan
few = np.where(np.arange(9)[:, None] % 7 == np.arange(7), Y, np.nan)
some = Y.copy()
some[5, 2] = np.nan
sparse = scipy.sparse.csr_array(np.nan_to_num(holes))
C = rng.normal(size=(3, 7))
results = []
kinds = [Y, holes, few, some, sparse]
for dtype, X, batch, forget_factor, smooth in itertools.product(
    [np.float64, np.float32], kinds, [1, 4], [0.0, 0.9, 1.0], [0.0, 0.5]
):
    if X is few and smooth > 0.0:
        continue  # codes that nothing settles
    given = {"forget_factor": forget_factor, "smooth": smooth, "inner_iter": 3}
    config = BroydenConfig(batch_size=batch, **given)
    X = X.astype(dtype)
    state, codes, info = broyden.step(broyden.init(X, 3, config, init=C), X)
    results.append(np.concatenate([state.C.ravel(), state.G.ravel(), codes.ravel(), info]))
"""


def run(code, **environment):
    """Run code in a fresh interpreter; return what it prints."""
    environment = {**os.environ, "PYTHONWARNINGS": "error::UserWarning", **environment}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_compiled_equals_uncompiled(tmp_path):
    """Uncompiled, Python also checks the bounds of every index."""
    for name, disabled in (("compiled", "0"), ("plain", "1")):
        save = f"np.savez({str(tmp_path / name)!r}, *results)"
        run(ALL_KINDS + save, NUMBA_DISABLE_JIT=disabled)
    compiled, plain = (np.load(tmp_path / f"{name}.npz") for name in ("compiled", "plain"))
    assert len(compiled.files) == len(plain.files) == 108
    for at, name in enumerate(compiled.files):
        a, b = compiled[name], plain[name]
        # Sums are reordered, no more: rounding of the type, times a condition of up to 1e6 where
        # the least ridge settles a code.
        tolerance = 1e-10 if at < 54 else 1e-4
        assert np.abs(a - b).max() <= tolerance * np.abs(b).max()


COUNT = """
import json, importlib, pkgutil
import numba, omfb.core
frozen = Y.copy()
frozen.flags.writeable = False
frozen_holes = holes.copy()
frozen_holes.flags.writeable = False
for dtype in (np.float64, np.float32):
    for X in [np.asfortranarray(Y), Y[::-1], Y[:, ::-1], frozen, frozen_holes, sparse.tocsc(),
              scipy.sparse.csr_matrix(sparse), few]:
        X = X.astype(dtype, copy=False)
        for batch in (1, 4):
            model = OMFB(2, batch_size=batch, shuffle=False, random_state=0).fit(X)
            model.partial_fit(X[:1]).partial_fit(X[1:3]).transform(X)
            model.set_params(smooth=0.5).transform(X)
counts = {}
for module in pkgutil.walk_packages(omfb.core.__path__, "omfb.core."):
    module = importlib.import_module(module.name)
    for name, value in vars(module).items():
        if isinstance(value, numba.core.dispatcher.Dispatcher):
            counts[name] = sorted(str(s) for s in value.signatures)
print(json.dumps(counts))
"""


def test_no_kernel_is_compiled_for_more_than_the_two_types(tmp_path):
    """However an array lies in memory, and whether it may be written to: one for each type."""
    counts = json.loads(run(ALL_KINDS + COUNT))
    assert len(counts) > 10
    too_many = {name: signatures for name, signatures in counts.items() if len(signatures) > 2}
    assert too_many == {}


USUAL = """
import numpy as np
from omfb import OnlineFactorAnalysis
from omfb.core.linalg import posterior
X = np.random.default_rng(0).normal(size=(60, 7))
X[::3, 2:4] = np.nan
OnlineFactorAnalysis(3, random_state=0).fit(X).transform(X)
print([str(signature[4]) for signature in posterior.code_rows.signatures])
"""


def test_what_drops_outliers_is_not_compiled_where_there_are_none():
    """It takes a second, and most data have none: a limit of None is a type of its own."""
    assert run(USUAL).strip() == "['none']"


def positive_definite(rng, r, condition=1e3):
    Q, _ = np.linalg.qr(rng.normal(size=(r, r)))
    M = (Q * np.geomspace(1.0, condition, r)) @ Q.T
    return (M + M.T) / 2


def test_a_full_disk_keeps_no_kernel_from_being_used(monkeypatch):
    """Numba would raise an error that names no file."""
    tried = []

    def full(self, key, data):
        tried.append(key)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(caching.IndexDataCacheFile, "save", full)
    monkeypatch.setattr(caching.IndexDataCacheFile, "load", lambda self, key: None)
    assert jit(lambda x: x + 1.0)(2.0) == 3.0
    assert len(tried) == 1


@given(st.integers(0, 2**32), st.integers(1, 20), st.sampled_from([1e-200, 1.0, 1e200]))
def test_invert_inverts(seed, r, scale):
    rng = np.random.default_rng(seed)
    M = positive_definite(rng, r)
    inverse = scale * M
    assert small.invert(inverse, 1e-12)
    assert np.abs(scale * inverse @ M - np.eye(r)).max() < 1e-11  # condition 1e3
    assert np.array_equal(inverse, inverse.T)


@given(st.integers(0, 2**32), st.integers(1, 20), st.sampled_from([1e-200, 1.0, 1e200]))
def test_factors_solve(seed, r, scale):
    rng = np.random.default_rng(seed)
    M, x = positive_definite(rng, r), rng.normal(size=r)
    factors, found = scale * M, scale * (M @ x)
    assert small.factorise(factors, 1e-12)
    small.solve(factors, found)
    assert np.abs(found - x).max() < 1e-11 * np.abs(x).max()  # condition 1e3


@given(st.integers(0, 2**32), st.integers(2, 20))
def test_what_is_singular_is_refused(seed, r):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(r, r // 2)) * np.exp(5 * rng.normal(size=r))[:, None]
    for attempt in (small.invert, small.factorise):
        assert not attempt(A @ A.T, 1e-12)
        assert not attempt(np.full((r, r), np.nan), 1e-12)


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_a_precision_that_is_singular_is_inverted_anyway(scale):
    """Its smallest pivot is raised to a share of the diagonal entry."""
    inverse = np.full((2, 2), scale)
    assert not small.invert(inverse, 1e-6)
    expected = np.array([[1e6 + 1.0, -1e6], [-1e6, 1e6]])  # of [[1, 1], [1, 1 + 1e-6]]
    assert np.allclose(scale * inverse, expected, rtol=1e-9)


@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([1e-200, 1.0, 1e200]))
def test_minimum_norm_is_the_pseudoinverse(seed, rank, scale):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(rank, 8))
    G, b = A.T @ A, A.T @ rng.normal(size=rank)
    x = codes.solve_minimum_norm(scale * G, scale * b, 1e-12)
    expected = np.linalg.pinv(G, rcond=1e-10, hermitian=True) @ b
    assert np.abs(x - expected).max() <= 1e-9 * np.abs(expected).max()


@given(st.integers(0, 2**32), st.integers(1, 9), st.integers(1, 150), st.floats(0.0, 1.0))
def test_both_sides_of_the_mask_give_the_observed_gram(seed, r, m, share):
    rng = np.random.default_rng(seed)
    C = rng.normal(size=(m, r))
    seen = np.flatnonzero(rng.random(m) < share).astype(np.int32)
    out = np.empty((r, r))
    observed.observed_gram(C, C.T @ C, seen, out)
    assert np.abs(out - C[seen].T @ C[seen]).max() <= 1e-13 * m


def test_an_observed_gram_survives_missing_features_of_another_size(rng):
    """Taking 1e20 off 1e20 + 1 would leave nothing of the observed side."""
    C = rng.normal(size=(12, 3))
    C[0] *= 1e10
    seen = np.arange(1, 12, dtype=np.int32)
    out = np.empty((3, 3))
    observed.observed_gram(C, C.T @ C, seen, out)
    assert np.allclose(out, C[seen].T @ C[seen], rtol=1e-12)


@given(
    st.integers(0, 2**32),
    st.integers(1, 4),
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([1e-3, 0.7, 1e3]),
    st.booleans(),
)
def test_a_chain_in_parts_is_the_joint_least_squares(seed, r, lengths, ridge, smooth, past):
    rng = np.random.default_rng(seed)
    C, x_before = rng.normal(size=(3 * r + 2, r)), rng.normal(size=r) if past else None
    Y = rng.normal(size=(sum(lengths), len(C)))
    Y[rng.random(Y.shape) < 0.2] = np.nan
    Y[0, : r + 1] = 1.0  # some row knows every direction, so that all are known
    Y[0, r + 1 :] = 0.0
    seen, filled = ~np.isnan(Y), np.nan_to_num(Y)
    grams = np.einsum("ti,ij,ik->tjk", seen.astype(float), C, C)
    cuts = np.cumsum(lengths)[:-1]
    parts = zip(np.split(grams, cuts), np.split(filled @ C, cuts), strict=True)
    parts = [lambda p=part: p for part in parts]
    expected = reference.codes_of(C, Y, ridge, smooth, x_before)
    for kept_bytes in (0, 8 * 6 * r * r, 1 << 20):  # nothing but the last part, some, all
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(chain, "KEPT_BYTES", kept_bytes)
            found = chain.chain(codes.Quadratic(ridge, smooth, 1e-12), parts, x_before)
        assert [len(part) for part in found] == lengths
        assert np.abs(np.concatenate(found) - expected).max() <= 1e-9 * np.abs(expected).max()


def test_threads_share_all_the_work():
    counted = np.zeros(1001, dtype=int)

    def kernel(first, last):
        counted[first:last] += 1

    threads.in_threads(kernel, len(counted), work=10**9)
    assert (counted == 1).all()


@pytest.mark.parametrize(
    ("forget_factor", "n"), [(0.0, 200_000), (0.99, 200_000), (1.0, 1_000_000)]
)
@pytest.mark.parametrize("holes", [False, True])
def test_the_gram_matrix_does_not_drift_in_a_million_steps(rng, forget_factor, n, holes):
    m, r = 6, 2
    state = broyden.init(
        rng.normal(size=(4, m)), r, BroydenConfig(forget_factor=forget_factor), seed=0
    )
    Y = rng.normal(size=(n // 10, r)) @ rng.normal(size=(r, m)) + rng.normal(size=(n // 10, m)) / 9
    if holes:
        Y[np.arange(len(Y)), rng.integers(m, size=len(Y))] = np.nan
    for _ in range(10):
        state, _, _ = broyden.step(state, Y, reuse=True)
        G = state.C.T @ state.C
        assert np.abs(state.G - G).max() <= 1e-8 * np.abs(G).max()
    assert state.n_seen == n


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("batch_size", [1, 10])
def test_float32_keeps_its_gram_matrix_too(rng, holes, batch_size):
    """The Gram matrix follows C before it is rounded: 6e-8 for each of the updates in between."""
    state = broyden.init(
        rng.random((8, 40), np.float32),
        4,
        BroydenConfig(batch_size=batch_size, forget_factor=1.0),
        seed=0,
    )
    Y = rng.random((5_000, 40), np.float32)
    Y[holes & (rng.random(Y.shape) < 0.3)] = np.nan
    state, _, _ = broyden.step(state, Y)
    G = state.C.astype(float).T @ state.C
    assert np.abs(state.G - G).max() <= 1e-5 * np.abs(G).max()


@pytest.mark.parametrize("many_registers", [True, False])
@given(st.integers(1, 11), st.integers(1, 70), st.integers(0, 2**32), st.sampled_from("df"))
def test_products_of_rows_are_added_above_the_diagonal(many_registers, q, m, seed, dtype):
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(q, m)).astype(dtype)
    first, last = sorted(rng.integers(m + 1, size=2))
    before = rng.normal(size=(q, q))
    expected = before + Y[:, first:last].astype(float) @ Y[:, first:last].T.astype(float)
    read_only = Y.copy()
    read_only.flags.writeable = False
    apart = np.repeat(Y, 2, axis=0)[::2]
    for rows in (Y, read_only, apart, np.asfortranarray(Y)):
        N = before.copy()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(row_products, "MANY_REGISTERS", many_registers)
            patch.setattr(row_products, "FEW", 0)
            row_products.add_row_products(rows, slice(first, last), N)
        tolerance = 1e-12 if dtype == "d" else 1e-4
        np.testing.assert_allclose(np.triu(N), np.triu(expected), atol=tolerance)
