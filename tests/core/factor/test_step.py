"""A step equals its equations, however a stream is cut."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.blocks import sparse_with_holes
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.init import init
from omfb.core.factor.state import evolve
from omfb.core.factor.step import end_batch, next_batch, step

from ... import reference_factor as reference
from .making import assert_identical, assert_same, config, learned, leaves, table, whiten


@given(
    seed=st.integers(0, 99), m=st.integers(2, 12), missing=st.sampled_from([0.0, 0.2, 0.7]),
    center=st.booleans(), scale=st.booleans(), noise=st.sampled_from(["isotropic", "diagonal"]),
    forget_factor=st.sampled_from([1.0, 0.9]), constant=st.sampled_from([0, 20, 60]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_batch_is_what_its_equations_say(
    seed, m, missing, center, scale, noise, forget_factor, constant
):
    given_ = config(center=center, scale=scale, noise=noise, forget_factor=forget_factor)
    X = table(seed, 60, m, missing)
    head = X.copy()
    if constant:
        head[:, 0], X[:, 0] = 3.0, np.where(np.arange(60) < constant, 3.0, 3.01)
    state = end_batch(step(init(head, given_, seed=seed), X[:16])[0])
    expected = reference.learn_batch(state, whiten(state, X[16:32]))
    after = step(evolve(state, batch_left=17, update_left=99), X[16:32])[0]
    found = {name.split(".")[-1]: value for name, value in leaves(after).items()}
    for name, value in expected.items():
        if name == "residual_sums" and noise == "isotropic" and missing == 0.0:
            continue  # nothing uses them there
        size = np.abs(value).max(initial=1e-300) if np.ndim(value) else abs(value)
        np.testing.assert_allclose(found[name], value, rtol=1e-7, atol=1e-7 * size, err_msg=name)


@given(
    seed=st.integers(0, 99),
    missing=st.sampled_from([0.0, 0.2, 0.6]),
    cuts=st.lists(st.integers(0, 150), max_size=6),
    batch=st.sampled_from([None, 5]),
    constant=st.integers(0, 150),
)
@settings(max_examples=40, deadline=None)
def test_how_a_stream_is_cut_does_not_matter(seed, missing, cuts, batch, constant):
    X = table(seed, 150, 9, missing)
    X[:constant, 4] = 2.0
    hyper = {name: batch for name in ("first_batch", "last_batch", "longest_batch") if batch}
    state = init(X[:30], config(hyper=hyper))
    at_once = step(state, X)[0]
    in_parts = state
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), len(X)], strict=True):
        in_parts = step(in_parts, X[first:last], reuse=in_parts is not state)[0]
    assert_same(end_batch(at_once), end_batch(in_parts), 1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_held_out_entries_do_not_depend_on_the_cut_either(missing):
    X = table(1, 150, 9, missing)
    state = init(X, FactorConfig(n_components=3))
    at_once = step(state, X)[0]
    assert at_once.holdout.n_scored > 5
    in_parts = state
    for t in range(len(X)):
        in_parts = step(in_parts, X[t : t + 1], reuse=t > 0)[0]
    assert_same(end_batch(at_once), end_batch(in_parts), 1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.8])
@pytest.mark.parametrize(
    "kind", ["first row of a batch", "later row", "beyond the limit", "nothing observed"]
)
def test_a_single_row_is_learned_as_in_a_batch(missing, kind):
    """A dense row goes through functions of its own, a sparse one through those of batches."""
    X = table(3, 200, 9, missing)
    state = learned(X[:165], config())
    state = next_batch(state) if kind == "first row of a batch" else state
    assert (state.batch.C_batch is None) == (kind == "first row of a batch")
    row = X[-1:].copy()
    if kind == "beyond the limit":
        row[0, 2] = 1e5
    if kind == "nothing observed":
        row[:] = np.nan
    single, codes, _ = step(state, row)
    usual, usual_codes, _ = step(state, sparse_with_holes(row))
    assert_same(single, usual)
    np.testing.assert_allclose(codes, usual_codes, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_batches_may_be_longer_than_those_by_default(missing):
    X = table(4, 3000, 6, missing)
    rows = dict.fromkeys(("first_batch", "last_batch", "longest_batch"), 2500)
    state = init(X, config(2, hyper=rows))
    at_once = step(state, X)[0]
    assert at_once.schedule.n_seen == 3000
    in_parts = step(step(state, X[:2200])[0], X[2200:])[0]
    assert_same(end_batch(at_once), end_batch(in_parts), 1e-6)


@pytest.mark.parametrize("n", [1, 120])
def test_the_given_state_is_not_changed(n):
    X = table(3, 120, 8, 0.2)
    state = step(init(X, FactorConfig(n_components=3)), X[:50])[0]
    before = deepcopy(state)
    step(state, X[:n])
    assert_identical(state, before)


def test_sparse_rows_are_rows_with_missing_entries():
    X = table(4, 130, 10, 0.5)
    dense, sparse = (init(rows, config()) for rows in (X, sparse_with_holes(X)))
    assert_same(dense, sparse)
    (dense, codes, _), (sparse, others, _) = step(dense, X), step(sparse, sparse_with_holes(X))
    assert_same(dense, sparse)
    np.testing.assert_allclose(codes, others, rtol=1e-8, atol=1e-10)


def test_rows_of_later_passes_are_no_new_evidence():
    X = table(10, 200, 8, 0.1)
    state = evolve(learned(X, config(2)), pass_rows=200)
    for _ in range(30):
        state = step(state, X)[0]
    assert state.stats.n_rows < 200


def test_the_statistics_of_the_last_row_fade_as_later_rows_come():
    """With a forget factor of 0.9 the start has lost (1 − fade / rows) and 0.9 for each row."""
    X = table(11, 40, 6)
    state = init(X, config(2, forget_factor=0.9))
    after = step(state, X)[0]
    schedule = state.schedule
    rows = np.arange(1, 41) + schedule.head_start
    expected = np.prod(0.9 * (1.0 - schedule.fade / rows))
    assert after.stats.start_weight == pytest.approx(expected, rel=1e-10)


def test_codes_of_a_batch_come_from_its_first_dictionary():
    X = table(12, 300, 8, 0.1)
    state = learned(X, config())
    state = evolve(next_batch(evolve(state, update_left=0)), batch_left=40, update_left=40)
    first, codes, _ = step(state, X[:20])
    assert first.batch.C_batch is state.params.C
    assert not np.array_equal(first.params.C, state.params.C)
    second, more, _ = step(first, X[:20])
    np.testing.assert_allclose(codes, more, rtol=1e-10)  # though C has learned from the same rows
    assert second.schedule.batch_left > 0
    assert second.batch.C_batch is None  # the next batch begins with C as it is now
