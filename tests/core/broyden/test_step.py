"""`step` against the naive formulas, and what must not matter to it."""

from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from omfb.core.broyden import mini_batch
from omfb.core.broyden import runs as run
from omfb.core.broyden import step as broyden
from omfb.core.broyden.config import BroydenConfig
from omfb.core.broyden.missing_rows import FACTORISED_FROM

from ... import reference

# Rounding in float64 over a few dozen well-conditioned steps; measured below 1e-12.
EXACT = 1e-10


def assert_close(actual, expected, tolerance=EXACT):
    """Relative to the largest entry."""
    actual, expected = np.asarray(actual, float), np.asarray(expected, float)
    assert actual.shape == expected.shape
    error = np.max(np.abs(actual - expected), initial=0.0)
    assert error <= tolerance * max(np.max(np.abs(expected), initial=0.0), 1e-300)


configs = st.builds(
    lambda **values: BroydenConfig(
        **{**values, "shrink": values["shrink"] if values["forget_factor"] else 0.0}
    ),
    lam=st.sampled_from([0.05, 1.0, 10.0]),
    forget_factor=st.sampled_from([0.0, 0.5, 0.9, 1.0]) | st.floats(0.01, 0.99),
    ridge=st.sampled_from([0.0, 0.0, 0.4]),
    smooth=st.sampled_from([0.0, 0.0, 0.7]),
    shrink=st.sampled_from([0.0, 0.0, 3.0]),
    inner_iter=st.integers(1, 4),
    batch_size=st.sampled_from([1, 1, 2, 3, 8, 20]),
)


@st.composite
def problems(draw, holes=None):
    """A noisy low-rank stream, a dictionary near its own, and how much of it is seen.

    Every row that sees anything sees more than twice as many features as there are atoms, which
    keeps the systems well conditioned; a few rows see nothing.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    r = draw(st.integers(1, 5) | st.just(FACTORISED_FROM + 1))
    m = 2 * r + 3 + draw(st.integers(0, 30))
    n = draw(st.integers(1, 40))
    scale = draw(st.sampled_from([1.0, 1e-3, 1e4]))
    C = rng.normal(size=(m, r))
    Y = rng.normal(size=(n, r)) @ C.T + 0.3 * rng.normal(size=(n, m))
    C += 0.3 * rng.normal(size=(m, r))
    if draw(st.booleans()) if holes is None else holes:
        share = draw(st.sampled_from([0.05, 0.4, 0.9]))
        touched = draw(st.sampled_from([0.1, 1.0]))
        for y in Y[rng.random(n) < touched]:
            hidden = rng.permutation(m)[: min(int(share * m), m - 2 * r - 2)]
            y[hidden] = np.nan
        Y[rng.random(n) < 0.05] = np.nan
    return scale * Y, scale * C


def start(C, config, dtype=np.float64):
    return broyden.init(np.zeros((1, len(C)), dtype), C.shape[1], config, init=C.T)


def in_units(config, scale):
    """ridge and smooth weigh against the data's energy."""
    return replace(config, ridge=config.ridge * scale**2, smooth=config.smooth * scale**2)


def assert_same_state(a, b, tolerance=EXACT):
    assert_close(a.C, b.C, tolerance)
    assert_close(a.G, b.G, tolerance)
    assert_close(a.S, b.S, tolerance)
    assert a.n_seen == b.n_seen


# -- the reference ----------------------------------------------------------------------------


@given(problems(holes=False), configs)
def test_without_memory_the_reference_is_the_papers_algorithms(problem, config):
    Y, C = problem
    Y, C = Y / np.abs(C).max(), C / np.abs(C).max()
    config = BroydenConfig(
        lam=config.lam,
        forget_factor=0.0,
        inner_iter=config.inner_iter,
        batch_size=config.batch_size,
    )
    told = reference.learn(reference.first(C, config.lam), Y, config)
    papers = reference.mini_batches(Y, C, config.lam, config.batch_size, config.inner_iter)
    assert_close(told.past.C, papers[0])
    assert_close(told.codes, papers[1])
    if config.batch_size == 1:
        for algorithm in (reference.algorithm_1, reference.algorithm_2):
            assert_close(algorithm(Y, C, config.lam, config.inner_iter)[0], told.past.C)


def test_without_memory_the_reference_is_the_papers_algorithm_with_holes(rng):
    C = rng.normal(size=(30, 3))
    Y = rng.normal(size=(20, 3)) @ C.T
    Y[rng.random(Y.shape) < 0.4] = np.nan
    told = reference.learn(
        reference.first(C + 0.1, 2.0), Y, BroydenConfig(lam=2.0, forget_factor=0.0)
    )
    papers = reference.algorithm_2(Y, C + 0.1, 2.0)
    assert_close(told.past.C, papers[0])
    assert_close(told.codes, papers[1])


@settings(max_examples=200)
@given(problems(), configs)
def test_step_equals_the_reference(problem, config):
    Y, C = problem
    config = in_units(config, np.abs(C).max())
    told = reference.learn(reference.first(C, config.lam), Y, config)
    state, codes, info = broyden.step(start(C, config), Y)
    assert_close(state.C, told.past.C)
    assert_close(codes, told.codes)
    assert_close(info.energy, told.energy)
    assert abs(info.residual - told.residual) <= EXACT * told.energy
    assert_close(state.G, told.past.C.T @ told.past.C)
    if config.forget_factor > 0.0:  # otherwise nothing ever reads it
        assert_close(state.S, told.past.S)
    assert state.n_seen == len(Y)
    if config.smooth > 0.0:  # likewise
        assert (state.code is None) == (told.past.x is None)
    if told.past.x is not None:
        assert_close(state.code, told.past.x)


@given(problems(), configs)
def test_float32_equals_the_reference_to_its_own_precision(problem, config):
    """Y and C are rounded once and C at each of some 50 updates, each time by 6e-8; a code
    multiplies that by the condition of its system, some tens here."""
    Y, C = (a.astype(np.float32) for a in problem)
    config = in_units(config, float(np.abs(C).max()))
    told = reference.learn(reference.first(C, config.lam), Y, config)
    state, codes, info = broyden.step(start(C, config, np.float32), Y)
    assert state.C.dtype == codes.dtype == np.float32
    assert_close(state.C, told.past.C, 2e-5)
    assert_close(codes, told.codes, 1e-4)
    assert abs(info.residual - told.residual) <= 1e-5 * told.energy


# Here the last pivot of a singular system is rounding noise as large as 1e-12 of its diagonal.
@example(seed=2, config=BroydenConfig(lam=0.05, forget_factor=0.0, inner_iter=1), r=5)
@given(st.integers(0, 2**32), configs, st.integers(2, 6))
def test_too_few_entries_get_the_code_of_minimum_norm(seed, config, r):
    """Nothing decides between many codes that fit: the reference takes the shortest."""
    rng = np.random.default_rng(seed)
    m, n = 8 * r, 12
    C, Y = rng.normal(size=(m, r)), rng.normal(size=(n, m))
    for y in Y:
        y[rng.permutation(m)[rng.integers(1, r) :]] = np.nan
    config = replace(config, ridge=0.0, smooth=0.0, shrink=0.0)
    told = reference.learn(reference.first(C, config.lam), Y, config)
    assume(np.abs(told.codes).max() < 50)  # two rows of C may be nearly parallel
    state, codes, _ = broyden.step(start(C, config), Y)
    # G squares the condition of C, up to 50² here.
    assert_close(codes, told.codes, 1e-9)
    assert_close(state.C, told.past.C, 1e-9)


@given(problems(), configs)
def test_the_objective_does_not_rise_over_inner_rounds(problem, config):
    Y, C = problem
    config = in_units(config, np.abs(C).max())
    before, _, _ = broyden.step(start(C, config), Y)
    if before.code is None:
        return
    Y, config = Y[: config.batch_size], replace(config, shrink=0.0)
    past = reference.Past(before.C, before.S, before.code, before.n_seen)
    values = []
    for rounds in range(1, 6):
        told = replace(before, config=replace(config, inner_iter=rounds))
        state, codes, _ = broyden.step(told, Y)
        values.append(
            reference.objective(state.C, codes, Y, past, replace(config, ridge=told.ridge))
        )
    assert all(np.diff(values) <= 1e-12 * (values[0] + np.nansum(Y**2)))


# -- what must not matter -------------------------------------------------------------------


@given(problems(), configs, st.data())
def test_where_a_stream_is_cut_does_not_matter(problem, config, data):
    Y, C = problem
    config = in_units(config, np.abs(C).max())
    whole, codes, info = broyden.step(start(C, config), Y)
    cuts = data.draw(st.lists(st.integers(0, len(Y) // config.batch_size), max_size=6))
    cuts = sorted(config.batch_size * cut for cut in cuts)
    state, parts, residual = start(C, config), [], 0.0
    for part in np.split(Y, cuts):
        reuse = data.draw(st.booleans())
        state, part_codes, part_info = broyden.step(state, part, reuse=reuse)
        parts.append(part_codes)
        residual += part_info.residual
    assert_same_state(state, whole)
    assert_close(np.concatenate(parts), codes)
    assert abs(residual - info.residual) <= EXACT * info.energy


@given(problems(), configs, st.integers(1, 60))
def test_the_length_of_a_kernels_block_does_not_matter(problem, config, length):
    Y, C = problem
    config = replace(in_units(config, np.abs(C).max()), batch_size=1)
    usual, codes, _ = broyden.step(start(C, config), Y)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "block_length", lambda m, r: length)
        state, other_codes, _ = broyden.step(start(C, config), Y)
    assert_same_state(state, usual)
    assert_close(other_codes, codes)


KINDS = [
    scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.coo_array,
    scipy.sparse.csr_matrix, scipy.sparse.csc_matrix,
]  # fmt: skip


def as_sparse(Y, kind=scipy.sparse.csr_array):
    """Store what is observed, zeros included, and nothing else."""
    row, column = np.nonzero(~np.isnan(Y))
    return kind(scipy.sparse.coo_array((Y[row, column], (row, column)), shape=Y.shape))


@given(problems(), configs, st.sampled_from(KINDS))
def test_sparse_input_equals_an_array_with_nan(problem, config, kind):
    Y, C = problem
    config = in_units(config, np.abs(C).max())
    Y = np.where(np.abs(Y) < np.abs(C).mean() / 4, 0.0, Y)  # zeros can be observed
    X = as_sparse(Y, kind)
    assert X.nnz == np.count_nonzero(~np.isnan(Y))
    dense, codes, info = broyden.step(start(C, config), Y)
    state, sparse_codes, sparse_info = broyden.step(start(C, config), X)
    assert_same_state(state, dense)
    assert_close(sparse_codes, codes)
    assert_close(sparse_info, info)


@given(problems(holes=False), configs)
def test_a_full_mask_equals_no_mask(problem, config):
    """A sparse matrix that stores everything goes through the kernels for missing entries."""
    Y, C = problem
    config = in_units(config, np.abs(C).max())
    dense, codes, _ = broyden.step(start(C, config), Y)
    state, masked_codes, _ = broyden.step(start(C, config), as_sparse(Y))
    assert_same_state(state, dense)
    assert_close(masked_codes, codes)


@given(problems(), configs, st.randoms(use_true_random=False))
def test_permuting_features_permutes_the_dictionary(problem, config, random):
    Y, C = problem
    config = in_units(config, np.abs(C).max())
    order = random.sample(range(len(C)), len(C))
    state, codes, _ = broyden.step(start(C, config), Y)
    permuted, same_codes, _ = broyden.step(start(C[order], config), Y[:, order])
    assert_close(permuted.C, state.C[order])
    assert_close(same_codes, codes)


@given(problems(), configs, st.sampled_from([2.0**-30, 3.0, 1e6]))
def test_scaling_the_data_scales_the_dictionary_and_nothing_else(problem, config, scale):
    Y, C = problem
    config = replace(config, ridge=0.0, smooth=0.0)
    state, codes, _ = broyden.step(start(C, config), Y)
    scaled, same_codes, _ = broyden.step(start(scale * C, config), scale * Y)
    assert_close(scaled.C, scale * state.C)
    assert_close(same_codes, codes)


@pytest.mark.parametrize("order", ["F", "reversed", "strided", "read-only"])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("batch_size", [1, 4])
def test_how_an_array_lies_in_memory_does_not_matter(rng, order, holes, batch_size):
    Y = rng.normal(size=(40, 12))
    Y[holes & (rng.random(Y.shape) < 0.2)] = np.nan
    config = BroydenConfig(batch_size=batch_size, forget_factor=1.0)
    C = rng.normal(size=(12, 3))
    expected, codes, _ = broyden.step(start(C, config), Y)
    if order == "F":
        same = np.asfortranarray(Y)
    elif order == "reversed":
        same = Y[::-1, ::-1].copy()[::-1, ::-1]
    elif order == "strided":
        same = np.repeat(np.repeat(Y, 2, axis=0), 3, axis=1)[::2, ::3]
    else:
        same = Y.copy()
        same.flags.writeable = False
    state, same_codes, _ = broyden.step(start(C, config), same)
    assert_same_state(state, expected)
    assert_close(same_codes, codes)


# -- what must not be touched -----------------------------------------------------------------


def frozen(state):
    """A copy of everything in a state, to compare bit by bit."""
    values = {field.name: getattr(state, field.name) for field in fields(state)}
    return {k: v.tobytes() if isinstance(v, np.ndarray) else v for k, v in values.items()}


@given(problems(), configs, st.booleans())
def test_a_step_leaves_the_given_state_and_the_rows_as_they_were(problem, config, sparse):
    Y, C = problem
    state, _, _ = broyden.step(start(C, config), Y)
    X = as_sparse(Y) if sparse else Y
    data = X.data if sparse else X
    before, rows = frozen(state), data.tobytes()
    after, codes, _ = broyden.step(state, X)
    assert frozen(state) == before
    assert data.tobytes() == rows
    codes[:] = 7.0  # the caller may do as they like with the codes
    assert after.code is None or not (after.code == 7.0).any()
    again, _, _ = broyden.step(state, X)
    assert frozen(again) == frozen(after)


@pytest.mark.parametrize("batch_size", [1, 4])
def test_an_empty_block_changes_nothing(rng, batch_size):
    state = start(rng.normal(size=(9, 2)), BroydenConfig(batch_size=batch_size, forget_factor=1.0))
    for nothing in (np.empty((0, 9)), scipy.sparse.csr_array((0, 9))):
        after, codes, info = broyden.step(state, nothing)
        assert frozen(after) == frozen(state)
        assert codes.shape == (0, 2)
        assert info == (0.0, 0.0)


@pytest.mark.parametrize("init", ["data", "random", "array"])
def test_init_leaves_its_arguments_alone_and_repeats_itself(rng, init):
    Y = rng.normal(size=(20, 6))
    init = rng.normal(size=(3, 6)) if init == "array" else init
    given, rows = np.copy(init), Y.copy()
    state = broyden.init(Y, 3, init=init, seed=5)
    same = broyden.init(Y, 3, init=init, seed=5)
    assert frozen(state) == frozen(same)
    broyden.step(state, Y, reuse=True)
    assert np.array_equal(Y, rows)
    assert np.array_equal(init, given)


# -- what must not be accepted ----------------------------------------------------------------


@pytest.mark.parametrize("width", [5, 7])
@pytest.mark.parametrize("kind", ["complete", "holes", "sparse"])
@pytest.mark.parametrize("batch_size", [1, 3])
def test_rows_of_another_width_are_refused(rng, width, kind, batch_size):
    Y = rng.normal(size=(4, width))
    if kind == "holes":
        Y[:, 0] = np.nan
    X = as_sparse(Y) if kind == "sparse" else Y
    state = start(rng.normal(size=(6, 2)), BroydenConfig(batch_size=batch_size, forget_factor=1.0))
    before = frozen(state)
    with pytest.raises(ValueError, match=f"{width} features"):
        broyden.step(state, X)
    assert frozen(state) == before


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("batch_size", [1, 4])
@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinity_is_refused_wherever_it_stands(rng, sparse, batch_size, value):
    Y = rng.normal(size=(90, 6))
    Y[85, 3] = value
    state = start(rng.normal(size=(6, 2)), BroydenConfig(batch_size=batch_size, forget_factor=1.0))
    before = frozen(state)
    with pytest.raises(ValueError, match="X contains infinity"):
        broyden.step(state, as_sparse(Y) if sparse else Y)
    assert frozen(state) == before


@pytest.mark.parametrize("holes", [0.0, 0.1])
@pytest.mark.parametrize(
    "given",
    [{"forget_factor": 0.9}, {"smooth": 0.4}, {"alpha": 0.1}, {"positive_code": True}],
    ids=str,
)
def test_mini_batches_of_few_features_are_learned_as_others_are(monkeypatch, given, holes):
    """Their rounds are made with the dictionary, not in reduced space."""
    rng = np.random.default_rng(0)
    X = rng.random((60, 2)) @ rng.random((2, 8)) + 0.1 * rng.random((60, 8))
    X[rng.random(X.shape) < holes] = np.nan
    found = []
    for narrow in (True, False):
        monkeypatch.setattr(mini_batch, "is_narrow", lambda state, narrow=narrow: narrow)
        state = broyden.init(X, 3, BroydenConfig(batch_size=20, **given), init="random", seed=0)
        for _ in range(3):
            state, codes, info = broyden.step(state, X, reuse=True)
        found.append((state.C, state.G, state.S, codes, info.residual, info.energy))
    for mine, others in zip(*found, strict=True):
        np.testing.assert_allclose(mine, others, rtol=1e-8, atol=1e-10)
