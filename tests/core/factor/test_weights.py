"""Rows and entries that have weights: by their equations, and however they are stored and cut."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.blocks import sparse_with_holes
from omfb.core.factor import refine
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.hyper import Hyper
from omfb.core.factor.init import init
from omfb.core.factor.predict import encode, predict
from omfb.core.factor.refine import unpacked
from omfb.core.factor.state import evolve
from omfb.core.factor.step import end_batch, step
from omfb.core.factor.table import Table
from omfb.core.weighted import WeightedRows, aligned, stacked

from ... import reference_factor as reference
from .making import assert_same, config, leaves, table, whiten
from .test_refine import made, rows_of


def weighted(rng, X, entries):
    """Rows with weights from 1/4 to 4, and entries too."""
    weights = 4.0 ** rng.uniform(-1, 1, len(X))
    return WeightedRows(X, weights, 4.0 ** rng.uniform(-1, 1, X.shape) if entries else None)


def sparse(rows):
    X = sparse_with_holes(rows.rows)
    precisions = None if rows.precisions is None else aligned(rows.precisions, X)
    return WeightedRows(X, rows.weights, precisions)


@given(
    seed=st.integers(0, 99), m=st.integers(2, 12), missing=st.sampled_from([0.0, 0.2, 0.7]),
    center=st.booleans(), noise=st.sampled_from(["isotropic", "diagonal"]),
    forget_factor=st.sampled_from([1.0, 0.9]), entries=st.booleans(),
    kind=st.sampled_from([lambda rows: rows, sparse]),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_a_weighted_batch_is_what_its_equations_say(
    seed, m, missing, center, noise, forget_factor, entries, kind
):
    given_ = config(center=center, noise=noise, forget_factor=forget_factor)
    X = weighted(np.random.default_rng(seed), table(seed, 60, m, missing), entries)
    state = end_batch(step(init(X, given_, seed=seed), kind(X[:16]))[0])
    rows = X[16:32]
    precisions = rows.precisions / state.params.precision if entries else None
    expected = reference.learn_batch(state, whiten(state, rows.rows), rows.weights, precisions)
    after = step(evolve(state, batch_left=17, update_left=99), kind(rows))[0]
    found = {name.split(".")[-1]: value for name, value in leaves(after).items()}
    for name, value in expected.items():
        if name == "residual_sums" and noise == "isotropic" and missing == 0.0:
            continue  # nothing uses them there
        size = np.abs(value).max(initial=1e-300) if np.ndim(value) else abs(value)
        np.testing.assert_allclose(found[name], value, rtol=1e-7, atol=1e-7 * size, err_msg=name)
    assert after.n_seen + after.schedule.extra_weight == pytest.approx(X[:32].weights.sum())


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_a_row_of_weight_two_is_the_row_twice_where_nothing_is_forgotten(noise):
    X, weights = table(1, 50, 8), np.random.default_rng(1).integers(1, 4, 50).astype(float)
    start = evolve(init(X, config(noise=noise)), fade=0.0, batch_left=999, update_left=999)
    once = step(start, WeightedRows(X, weights))[0]
    often = step(start, np.repeat(X, weights.astype(int), axis=0))[0]
    for name in ("C", "S", "code_cov_sum", "code_cov_weight", "counts", "n_rows", "residual_dof",
                 "residual_energy", "residual_sums"):  # fmt: skip
        mine, others = (
            next(v for n, v in leaves(state).items() if n.endswith("." + name))
            for state in (once, often)
        )
        if name == "residual_sums" and noise == "isotropic":
            continue  # nothing uses them there
        np.testing.assert_allclose(mine, others, rtol=1e-9, atol=1e-9, err_msg=name)


@given(
    seed=st.integers(0, 99), missing=st.sampled_from([0.0, 0.2]), entries=st.booleans(),
    cuts=st.lists(st.integers(0, 150), max_size=5),
)  # fmt: skip
@settings(max_examples=15, deadline=None)
def test_how_a_weighted_stream_is_cut_does_not_matter(seed, missing, entries, cuts):
    X = weighted(np.random.default_rng(seed), table(seed, 150, 9, missing), entries)
    state = init(X[:30], FactorConfig(n_components=3))
    at_once = step(state, X)[0]
    in_parts = state
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), len(X)], strict=True):
        in_parts = step(in_parts, X[first:last], reuse=in_parts is not state)[0]
    assert_same(end_batch(at_once), end_batch(in_parts), 1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("entries", [False, True])
def test_weights_of_one_change_nothing_but_rounding(missing, entries):
    X = table(2, 400, 9, missing)
    ones = WeightedRows(X, np.ones(400), np.ones(X.shape) if entries else None)
    given_ = FactorConfig(n_components=3)
    plain, same = (step(init(rows, given_), rows)[0] for rows in (X, ones))
    assert plain.holdout.n_scored > 5
    assert_same(end_batch(plain), end_batch(same), 1e-6)


def test_scores_of_held_out_entries_count_by_the_weights_of_their_rows():
    X = table(3, 64, 9, 0.2)
    state = step(init(X, FactorConfig(n_components=3)), X)[0]
    once, twice = (step(state, WeightedRows(X, np.full(64, w)))[2] for w in (1.0, 2.0))
    assert once.energy > 0.0
    # The dictionary is learned from rows of weight 2, too: only what precedes it is the same.
    assert 1.5 < twice.energy / once.energy < 2.5


def test_codes_and_predictions_know_the_precision_of_entries():
    rng = np.random.default_rng(0)
    X = table(5, 80, 7, 0.2)
    state = end_batch(step(init(X, config(2)), X)[0])
    rows = weighted(rng, X, True)
    codes, found = encode(state, rows), predict(state, rows).mean
    Y = whiten(state, X)
    for t in range(len(X)):
        x, _, _, _ = reference.code(
            state.C, state.batch.Sigma, 1.0 / state.batch.inverse_coverage, 1.0, Y[t],
            rows.precisions[t],
        )  # fmt: skip
        np.testing.assert_allclose(codes[t], x[:-1], rtol=1e-6, atol=1e-8)
        filled = state.C @ x * state.params.noise_std + state.params.center
        np.testing.assert_allclose(found[t], np.where(np.isnan(X[t]), filled, X[t]), rtol=1e-6)


def naive_round(X, start, one, weights, precisions):
    """Codes, loadings and their covariances after a round, by the formulas."""
    (n, m), R = X.shape, start.C.shape[1]
    r, Sigma = R - 1, unpacked(start.covariances, R)
    codes, covariances = np.empty((n, R)), np.zeros((n, R, R))
    for t in range(n):
        A, b = np.zeros((R, R)), np.zeros(R)
        for i in np.flatnonzero(~np.isnan(X[t])):
            w = precisions[t, i] / start.noise[i]
            A += w * (np.outer(start.C[i], start.C[i]) + Sigma[i])
            b += w * X[t, i] * start.C[i]
        covariances[t, :r, :r] = np.linalg.inv(A[:r, :r] + np.eye(r))
        codes[t] = np.append(covariances[t, :r, :r] @ (b[:r] - one * A[:r, r]), one)
    C, own, left = np.empty((m, R)), np.empty((m, R, R)), np.zeros(m)
    for i in range(m):
        S, h, seen = np.zeros((R, R)), np.zeros(R), np.flatnonzero(~np.isnan(X[:, i]))
        for t in seen:
            u = weights[t] * precisions[t, i]
            S += u * (np.outer(codes[t], codes[t]) + covariances[t])
            h += u * X[t, i] * codes[t]
        own[i] = np.linalg.inv(S / start.noise[i] + np.diag(1 / (start.v * start.sizes[i])))
        C[i] = own[i] @ h / start.noise[i]
        left[i] = np.sum(
            weights[seen] * precisions[seen, i] * (X[seen, i] - codes[seen] @ C[i]) ** 2
        )
    return codes, C, own, left


@pytest.mark.parametrize("missing", [0.0, 0.2, 0.8])
@pytest.mark.parametrize("entries", [False, True])
def test_a_weighted_round_of_refinement_equals_its_formulas(missing, entries):
    X, start = made(3, missing=missing)
    rows = weighted(np.random.default_rng(4), X, entries)
    seen = ~np.isnan(X)
    own = rows.precisions[seen] if entries else None
    whole = Table(rows_of(X), X.shape[1], rows.weights, own)
    precisions = rows.precisions if entries else np.ones(X.shape)
    codes, C, covariances, left = naive_round(X, start, 1.0, rows.weights, precisions)
    coded = refine.code(whole, start, 1.0)
    found = refine.solve(whole, coded, start)
    np.testing.assert_allclose(coded.X, codes, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(found[0], C, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(unpacked(found[1], C.shape[1]), covariances, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found[3], left, rtol=1e-7)


def test_a_round_of_a_weighted_table_is_one_of_the_repeated_rows():
    X, start = made(5, missing=0.3)
    weights = np.random.default_rng(5).integers(1, 4, len(X)).astype(float)
    often = Table(rows_of(np.repeat(X, weights.astype(int), axis=0)), X.shape[1])
    once = Table(rows_of(X), X.shape[1], weights)
    assert once.total == often.total
    mine, others = (refine.refine(each, start, 1.0, False, Hyper()) for each in (once, often))
    np.testing.assert_allclose(mine.C, others.C, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(mine.noise, others.noise, rtol=1e-6)


def test_weights_stay_with_their_rows_where_blocks_are_joined():
    rng = np.random.default_rng(0)
    X = table(0, 12, 5, 0.3)
    rows = weighted(rng, X, True)
    again = stacked([rows[:5], rows[5:]], np.concatenate)
    np.testing.assert_array_equal(again.precisions, rows.precisions)
    plain = stacked([X[:5], rows[5:]], np.concatenate)
    np.testing.assert_array_equal(plain.weights[:5], 1.0)
    np.testing.assert_array_equal(plain.precisions[:5], 1.0)
    np.testing.assert_array_equal(replace(rows).copy().rows, X)
    assert rows.astype(np.float32).dtype == np.float32
