"""Extreme and degenerate input: a finite, sensible result, or an error that says what is wrong."""

import inspect
import sys
import warnings

import hypothesis
import numpy as np
import pytest
import scipy.sparse
from hypothesis import strategies as st

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.core.blocks import dense_with_holes
from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.broyden.encode import encode
from omfb.core.factor import engine as factor_engine
from omfb.core.info import Info
from omfb.persistence.records import flatten

EVERY_KIND = pytest.mark.parametrize("batch_size", [1, 5])


def low_rank(rng, n=60, m=12, rank=2, noise=0.05):
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m)) + noise * rng.normal(size=(n, m))


ENGINES = pytest.mark.parametrize("engine", [OMFB, OnlineFactorAnalysis])


def make(engine, n_components, **parameters):
    """An estimator that forgets nothing, without the parameters that it does not have."""
    parameters = {"forget_factor": 1.0, "max_iter": 1, "random_state": 0, **parameters}
    names = inspect.signature(engine).parameters
    return engine(n_components, **{name: parameters[name] for name in parameters if name in names})


def fitted(X, n_components=3, engine=OMFB, **parameters):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Never observed", UserWarning)
        return make(engine, n_components, **parameters).fit(X)


def assert_sensible(model, X, longest=1e4):
    """Everything finite; codes no worse than none at all, and of ordinary length."""
    codes = model.transform(X)
    assert np.isfinite(model.components_).all()
    assert np.isfinite(codes).all()
    assert np.abs(codes).max(initial=0.0) < longest
    assert np.isfinite(model.complete(X)).all()
    if model.learner_.engine.name == "broyden":  # codes of its own entries
        largest = np.nanmax(np.abs(dense(X)), initial=1e-300)  # squares of huge data overflow
        left = np.nansum(((dense(X) - model.inverse_transform(codes)) / largest) ** 2)
        assert left <= (1.0 + 1e-6) * np.nansum((dense(X) / largest) ** 2)
        assert 0.0 <= model.prequential_error_ <= 1.0 + 1e-6
    assert np.isfinite(model.score(X))
    assert model.score(X) <= 1.0
    assert np.isfinite(model.prequential_error_)


def assert_finite_state(model):
    tensors = {}
    flatten(model.learner_.state, "state", tensors)
    matrices = [tensor for name, tensor in tensors.items() if name[-2:] in (".C", ".G", ".S")]
    assert matrices
    assert all(np.isfinite(matrix).all() for matrix in matrices)


def dense(X):
    return dense_with_holes(X).astype(np.float64)


def learned_or_refused(learn):
    """What `learn` returns, or None where it refuses X in so many words."""
    try:
        return learn()
    except ValueError as error:
        if "X " not in str(error):
            raise
        return None


# -- shapes and ranks -------------------------------------------------------------------------

DEGENERATE = {
    "more atoms than features": np.arange(40.0).reshape(20, 2) % 7,
    "more atoms than rows": np.random.default_rng(0).normal(size=(2, 30)),
    "one row": np.arange(1.0, 9.0)[None],
    "one column": np.arange(1.0, 9.0)[:, None],
    "one number": np.array([[3.0]]),
    "constant": np.full((30, 8), 2.5),
    "zero": np.zeros((30, 8)),
    "one row that is not zero": np.eye(1, 8, 3) * np.eye(30, 1, -20),
    "duplicate rows": np.repeat(np.random.default_rng(1).normal(size=(2, 8)), 20, axis=0),
    "rank one": np.outer(np.arange(1.0, 31.0), np.arange(1.0, 9.0)),
    "nothing observed": np.full((30, 8), np.nan),
    "one entry observed": np.where(np.eye(30, 8, -5) * np.eye(30, 1, -7), 3.0, np.nan),
    "one entry in each row": np.where(np.arange(30)[:, None] % 8 == np.arange(8), 2.0, np.nan),
    "half the rows missing": np.where(np.arange(30)[:, None] % 2, np.nan, 1.0 + np.arange(8)),
    "half the columns missing": np.where(np.arange(8) % 2, np.nan, 1.0 + np.arange(30)[:, None]),
    "first rows missing": np.where(np.arange(30)[:, None] < 15, np.nan, 1.0 + np.arange(8)),
    "mixed scales by column": np.random.default_rng(2).normal(size=(30, 8)) * 10.0 ** -np.arange(8),
    "mixed scales by row": np.random.default_rng(3).normal(size=(30, 8))
    * 10.0 ** (np.arange(30) % 9)[:, None],
}


FACTORS = OnlineFactorAnalysis
EVERY_ENGINE = pytest.mark.parametrize(
    ("engine", "forget_factor"),
    [(OMFB, 0.0), (OMFB, 0.9), (OMFB, 1.0), (FACTORS, 0.9), (FACTORS, 1.0)],
)


@EVERY_KIND
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@EVERY_ENGINE
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_data_have_a_sensible_model(name, forget_factor, dtype, batch_size, engine):
    X = DEGENERATE[name].astype(dtype)
    longest = 1e11 if "mixed" in name else 1e4
    for smooth in (0.0, 0.5):
        how = {"engine": engine, "forget_factor": forget_factor, "max_iter": 2}
        how["batch_size"] = batch_size
        model = fitted(X, smooth=smooth, shuffle=False, **how)
        assert_sensible(model, X, longest)
    if forget_factor > 0.0:
        model = fitted(X, **{**how, "shrink": 3.0})
        assert_sensible(model, X, longest)
    sparse = scipy.sparse.csr_array(np.nan_to_num(X))
    assert_sensible(fitted(sparse, **{**how, "max_iter": 1}), sparse, longest)


@pytest.mark.parametrize(
    "name", ["constant", "duplicate rows", "rank one", "one row", "one column"]
)
@EVERY_KIND
def test_data_of_low_rank_are_explained_in_full(name, batch_size):
    X = DEGENERATE[name]
    model = fitted(X, batch_size=batch_size, max_iter=3)
    explained = 1.0 - np.sum((X - model.inverse_transform(model.transform(X))) ** 2) / np.sum(X**2)
    assert explained > 1.0 - 1e-6
    assert X.shape[1] == 1 or model.score(X) > 1.0 - 1e-6
    holes = X.copy()
    holes[0, -1] = np.nan
    if X.shape[1] > 1:
        assert np.allclose(model.complete(holes), X, rtol=1e-2)


@pytest.mark.parametrize("kind", ["dependent atoms", "more atoms than features", "few entries"])
def test_codes_are_of_minimum_norm_where_many_fit(rng, kind):
    atoms = rng.normal(size=(4, 3 if kind == "more atoms than features" else 9))
    if kind == "dependent atoms":
        atoms[3] = atoms[0] - 2.0 * atoms[1]
    X = rng.normal(size=(6, atoms.shape[1]))
    if kind == "few entries":
        X[:, 3:] = np.nan
    state = broyden.init(X, 4, init=atoms)
    seen = ~np.isnan(X[0])
    expected = X[:, seen] @ np.linalg.pinv(atoms[:, seen])
    assert np.allclose(encode(state, X), expected, rtol=1e-9)  # nothing learned
    for batch_size in (1, 6):
        once = broyden.init(
            X, 4, BroydenConfig(inner_iter=1, batch_size=batch_size, forget_factor=1.0), init=atoms
        )
        codes = broyden.step(once, X[:batch_size])[1]
        assert np.allclose(codes, expected[:batch_size], rtol=1e-9)


# -- sizes --------------------------------------------------------------------------------------

SIZES = [(np.float64, s) for s in (1e-300, 1e-150, 1e-60, 1e60, 1e150, 1e300)]
SIZES += [(np.float32, s) for s in (1e-35, 1e-25, 1e-10, 1e10, 1e25, 1e35)]


@EVERY_KIND
@pytest.mark.parametrize("holes", [False, True])
@EVERY_ENGINE
@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_data_of_any_size_give_the_same_codes(
    rng, dtype, size, forget_factor, holes, batch_size, engine
):
    Y = low_rank(rng)
    if holes and engine is FACTORS:
        pytest.skip("what rows hold out follows from their values")
    Y[holes & (rng.random(Y.shape) < 0.2)] = np.nan
    # A power of two, so that not even rounding differs.
    scale = 2.0 ** np.round(np.log2(size))
    parameters = {"engine": engine, "forget_factor": forget_factor, "max_iter": 2}
    parameters["batch_size"] = batch_size
    usual = fitted(Y.astype(dtype), **parameters)
    X = (Y * scale).astype(dtype)
    assert np.isfinite(X[~np.isnan(Y)]).all()
    model = fitted(X, **parameters)
    tolerance = 1e-9 if dtype == np.float64 else 1e-3
    codes = usual.transform(Y.astype(dtype))
    assert np.allclose(model.transform(X), codes, rtol=tolerance, atol=tolerance)
    atoms = usual.components_.astype(np.float64)
    assert np.allclose(model.components_ / scale, atoms, rtol=tolerance, atol=tolerance)
    assert np.isclose(model.score(X), usual.score(Y.astype(dtype)), rtol=tolerance)
    if engine is OMFB:  # elsewhere, which entries are scored follows from their values
        assert np.isclose(model.prequential_error_, usual.prequential_error_, rtol=tolerance)
    filled = model.complete(X).astype(np.float64) / scale
    assert np.allclose(filled, usual.complete(Y.astype(dtype)), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("dtype", "size"),
    [(np.float64, 1.7e308), (np.float64, 1e-310), (np.float32, 3e38), (np.float32, 1e-40)],
)
@EVERY_KIND
@ENGINES
def test_the_ends_of_a_types_range_work_or_are_refused(rng, dtype, size, batch_size, engine):
    """The largest numbers, and those too small to be normal."""
    Y = rng.uniform(0.2, 1.0, size=(40, 8))
    X = (Y * size).astype(dtype)
    how = {"engine": engine, "batch_size": batch_size}
    model = learned_or_refused(lambda: fitted(X, **how))
    if model is not None:
        assert_sensible(model, X)
        if engine is OMFB:
            assert model.score(X) > 0.5
        else:  # these columns have nothing in common: the means are all there is
            assert model.score(X) > -0.2


@pytest.mark.parametrize("init", ["random", "array"])
@pytest.mark.parametrize("size", [1e-150, 1e150])
@EVERY_KIND
@ENGINES
def test_a_dictionary_of_another_size_than_the_data_works_or_is_refused(
    rng, init, size, batch_size, engine
):
    X = size * low_rank(rng)
    init = rng.random((3, 12)) if init == "array" else init
    how = {"engine": engine, "init": init, "batch_size": batch_size}
    model = learned_or_refused(lambda: fitted(X, **how))
    if model is not None:
        assert_sensible(model, X, longest=np.inf)


JUMPS = [1e-200, 1e-20, 1e10, 1e20, 1e100, 1e150, 1e153, 1e155]


@EVERY_KIND
@pytest.mark.parametrize("holes", [False, True])
@EVERY_ENGINE
@pytest.mark.parametrize("jump", JUMPS)
@pytest.mark.parametrize("rows", [1, 40])
def test_a_jump_in_scale_is_learned_or_refused(
    rng, jump, forget_factor, holes, batch_size, rows, engine, monkeypatch
):
    monkeypatch.setattr(factor_engine, "head_rows", lambda n_features, config: 20)
    Y = low_rank(rng, n=120)
    Y[holes & (rng.random(Y.shape) < 0.2)] = np.nan
    model = make(engine, 3, forget_factor=forget_factor, batch_size=batch_size).partial_fit(Y[:40])
    before = model.components_.copy(), model.n_samples_seen_
    for at in range(40, 80, rows):
        block = jump * Y[at : at + rows]
        if learned_or_refused(lambda block=block: model.partial_fit(block)) is None:
            assert np.array_equal(model.components_, before[0])
            assert model.n_samples_seen_ == before[1]
        assert np.isfinite(model.components_).all()
        assert_finite_state(model)
        before = model.components_.copy(), model.n_samples_seen_


@EVERY_KIND
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("forget_factor", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("jump", [1e-10, 1e5, 1e10, 1e20])
def test_codes_explain_their_rows_after_a_jump(rng, jump, forget_factor, holes, batch_size):
    """The precision S then holds squares of either size, and must still be inverted."""
    Y = low_rank(rng, n=80)
    Y[40:] *= jump
    Y[holes & (rng.random(Y.shape) < 0.2)] = np.nan
    config = BroydenConfig(forget_factor=forget_factor, batch_size=batch_size)
    state, _, _ = broyden.step(broyden.init(Y, 3, config, seed=0), Y[:40])
    for y in Y[40:]:
        state, codes, _ = broyden.step(state, y[None])
        seen = ~np.isnan(y)
        error = np.linalg.norm((y - state.C @ codes[0])[seen]) / np.linalg.norm(y[seen])
        assert error < 0.8  # data of rank two, three atoms


@EVERY_KIND
@pytest.mark.parametrize("holes", [False, True])
@EVERY_ENGINE
@pytest.mark.parametrize("rows", [1, 3])
def test_a_row_whose_code_overflows_changes_nothing(
    rng, forget_factor, holes, batch_size, rows, engine, monkeypatch
):
    """The row and the atoms are in range, but not the square of the code between them."""
    monkeypatch.setattr(factor_engine, "head_rows", lambda n_features, config: 20)
    Y = low_rank(rng)
    Y[holes & (rng.random(Y.shape) < 0.2)] = np.nan
    model = make(engine, 3, forget_factor=forget_factor, batch_size=batch_size)
    model.partial_fit(1e-50 * Y)
    before = model.components_.copy()
    huge = 1e140 * Y[:rows]
    if learned_or_refused(lambda: model.partial_fit(huge)) is None:
        assert np.array_equal(model.components_, before)
    assert_finite_state(model)


@EVERY_KIND
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("forget_factor", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("condition", [1e1, 1e3, 1e4, 1e5, 1e6, 1e8])
def test_atoms_that_are_nearly_dependent_lose_no_more_than_they_must(
    rng, condition, forget_factor, holes, batch_size
):
    """Spectra that fall off are what real data have. Weak directions may be lost, but a row's
    residual stays small, G stays CᵀC, and blocks do no worse than single rows."""
    m, r, n = 60, 20, 200
    U, V = np.linalg.qr(rng.normal(size=(m, r)))[0], np.linalg.qr(rng.normal(size=(r, r)))[0]
    C = (U * np.geomspace(1.0, 1.0 / condition, r)) @ V
    Y = rng.normal(size=(n, r)) @ C.T + 1e-3 / condition * rng.normal(size=(n, m))
    Y[holes & (rng.random(Y.shape) < 0.1)] = np.nan
    config = BroydenConfig(forget_factor=forget_factor, batch_size=batch_size)
    state, _, info = broyden.step(broyden.init(Y, r, config, init=C.T), Y)
    assert np.sqrt(info.residual / info.energy) < 1e-2
    G = state.C.T @ state.C
    assert np.abs(state.G - G).max() <= 1e-8 * np.abs(G).max()


@EVERY_KIND
@ENGINES
def test_a_stream_that_begins_with_zeros_or_nothing_still_learns(rng, batch_size, engine):
    Y = low_rank(rng)
    for start in (np.zeros((20, 12)), np.full((20, 12), np.nan)):
        model = make(engine, 3, batch_size=batch_size)
        for block in np.split(np.concatenate([start, Y, Y]), 28):
            model.partial_fit(block)
        assert model.score(Y) > 0.95


# -- long streams -------------------------------------------------------------------------------


@pytest.mark.parametrize("forget_factor", [0.0, 0.9, 1.0])
@EVERY_KIND
def test_a_long_stream_of_noise_keeps_the_dictionarys_size(rng, forget_factor, batch_size):
    """Only C x is tied to the data: C may not fade while x grows."""
    Y = rng.normal(size=(60_000, 6))
    model = make(OMFB, 2, forget_factor=forget_factor, batch_size=batch_size)
    early = np.linalg.norm(model.partial_fit(Y[:1000]).components_)
    late = np.linalg.norm(model.partial_fit(Y[1000:]).components_)
    assert 1e-2 < late / early < 1e2


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [OMFB(2), OMFBImputer(2)])
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_no_rows_and_no_columns_are_refused(estimator, method):
    for X in (np.empty((0, 4)), np.empty((4, 0)), scipy.sparse.csr_array((0, 4))):
        with pytest.raises(ValueError, match=r"0 (sample|feature)"):
            getattr(estimator, method)(X)


@ENGINES
def test_values_too_large_beside_the_first_rows_are_refused(rng, engine):
    model = make(engine, 2).fit(rng.normal(size=(30, 6)))
    for huge in (1e200, 1.7e308):
        with pytest.raises(ValueError, match="too large"):
            model.partial_fit(np.full((1, 6), huge))
        with pytest.raises(ValueError, match="too large"):
            model.transform(np.full((1, 6), huge))


def test_a_score_is_finite_however_bad():
    assert Info(1e297, 1e-43).score == -sys.float_info.max
    assert Info(1.0, 4.0).score == 0.75


def test_energies_that_overflow_explain_nothing():
    """Once infinite, a running error would be NaN for ever."""
    huge = Info(0.5e308, 1.5e308)
    total = huge.plus(huge)
    assert total == Info(sys.float_info.max, sys.float_info.max)
    assert total.error == 1.0
    assert total.plus(Info(1.0, 2.0)).error == 1.0


@hypothesis.settings(max_examples=120, deadline=None)
@hypothesis.given(
    seed=st.integers(0, 2**32), exponent=st.sampled_from([10, 37, 100, 153, 160, 200, -100, -160]),
    forget_factor=st.sampled_from([0.0, 0.5, 0.9, 1.0]), lam=st.sampled_from([1e-8, 1.0, 1e8]),
    shrink=st.sampled_from([0.0, 1.0]), smooth=st.sampled_from([0.0, 1.0]),
    ridge=st.sampled_from([0.0, 1.0]), inner_iter=st.sampled_from([1, 3]),
    dtype=st.sampled_from("df"), where=st.sampled_from(["all", "half", "row", "entry"]),
)  # fmt: skip
def test_a_step_ends_in_numbers_or_is_refused(
    seed, exponent, forget_factor, lam, shrink, smooth, ridge, inner_iter, dtype, where
):
    rng = np.random.default_rng(seed)
    m, r, n = (int(rng.choice(some)) for some in ([3, 8, 40], [1, 2, 5], [1, 5, 20, 150]))
    shrink = shrink if forget_factor > 0.0 else 0.0
    config = BroydenConfig(
        forget_factor=forget_factor,
        lam=lam,
        shrink=shrink,
        smooth=smooth,
        ridge=ridge,
        inner_iter=inner_iter,
    )
    Y, some = rng.normal(size=(n, m)), (rng.integers(n), rng.integers(m))
    Y[{"all": ..., "half": slice(n // 2, None), "row": some[0], "entry": some}[where]] *= (
        10.0**exponent
    )
    with np.errstate(all="ignore"):
        Y = Y.astype(dtype)
    state = broyden.init(rng.normal(size=(30, m)).astype(dtype), r, config, seed=0)
    before = [part.copy() for part in (state.C, state.G, state.S)]
    try:
        after, codes, _ = broyden.step(state, Y)
        for part in (after.C, after.G, after.S, codes):
            assert np.isfinite(part).all()
    except ValueError:
        pass  # in words, which other tests read
    assert all(map(np.array_equal, before, (state.C, state.G, state.S)))
