"""The model with nothing to tune equals its equations, however a stream is cut."""

from dataclasses import fields, replace

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.blocks import sparse_with_holes
from omfb.core.factor import holdout as hide
from omfb.core.factor import predict as encode
from omfb.core.factor import refine as polish
from omfb.core.factor.config import Settings
from omfb.core.factor.init import start
from omfb.core.factor.m_step import revised
from omfb.core.factor.step import learn, next_batch

from ... import reference_model as reference

RTOL = 1e-8


@pytest.fixture(autouse=True)
def nothing_hidden(request, monkeypatch):
    """Equations are compared with every entry learned, unless a test is about what is hidden."""
    if "hidden" not in request.node.name:
        monkeypatch.setattr(hide, "ONE_IN", 2**63)


def table(seed, n, m, missing, rank=2):
    rng = np.random.default_rng(seed)
    X = 5 + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m))
    X += 0.3 * rng.standard_normal((n, m))
    X[rng.random((n, m)) < missing] = np.nan
    return X * 10.0 ** rng.integers(-2, 3, m)


def same(a, b, rtol=RTOL):
    for field in fields(a):
        one, other = getattr(a, field.name), getattr(b, field.name)
        if isinstance(one, np.ndarray):
            scale = np.abs(one.astype(float)).max(initial=1e-300)
            np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol * scale, err_msg=field.name)
        elif isinstance(one, float):
            assert one == pytest.approx(other, rel=rtol), field.name
        else:
            assert one == other, field.name


@given(
    seed=st.integers(0, 99), m=st.integers(2, 12), missing=st.sampled_from([0.0, 0.2, 0.7]),
    center=st.booleans(), scale=st.booleans(), noise=st.sampled_from(["shared", "feature"]),
    memory=st.sampled_from([1.0, 0.9]), ridge=st.sampled_from([None, 0.5]),
    constant=st.sampled_from([0, 20, 60]),
)  # fmt: skip
@settings(max_examples=60, deadline=None)
def test_a_batch_is_what_its_equations_say(
    seed, m, missing, center, scale, noise, memory, ridge, constant
):
    given_ = Settings(
        n_components=3, center=center, scale=scale, noise=noise, memory=memory, ridge=ridge
    )
    X = table(seed, 60, m, missing)
    head = X.copy()
    if constant:
        head[:, 0], X[:, 0] = 3.0, np.where(np.arange(60) < constant, 3.0, 3.01)
    model = start(head, given_, seed)
    model = encode.settled(learn(model, X[:16])[0])
    Y = (X[16:32] - model.center) / model.noise
    expected = reference.learn_batch(model, Y)
    learned = learn(replace(model, batch_left=17, period_left=99), X[16:32])[0]
    for name, value in expected.items():
        got = np.asarray(getattr(learned, name), float)
        if name == "errors" and noise == "shared" and missing == 0.0:
            continue  # nobody needs them there
        scale_ = np.abs(value).max(initial=1e-300) if np.ndim(value) else abs(value)
        np.testing.assert_allclose(got, value, rtol=1e-7, atol=1e-7 * scale_, err_msg=name)


@given(
    seed=st.integers(0, 99),
    missing=st.sampled_from([0.0, 0.2, 0.6]),
    cuts=st.lists(st.integers(0, 150), max_size=6),
    batch_size=st.sampled_from([None, 5]),
    constant=st.integers(0, 150),
)
@settings(max_examples=40, deadline=None)
def test_how_a_stream_is_cut_does_not_matter(seed, missing, cuts, batch_size, constant):
    X = table(seed, 150, 9, missing)
    X[:constant, 4] = 2.0
    model = start(X[:30], Settings(n_components=3, batch_size=batch_size), 0)
    at_once = learn(model, X)[0]
    by_parts = model
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), len(X)], strict=True):
        by_parts = learn(by_parts, X[first:last], reuse=by_parts is not model)[0]
    same(encode.settled(at_once), encode.settled(by_parts), 1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_hidden_entries_do_not_depend_on_the_cut_either(missing):
    X = table(1, 150, 9, missing)
    model = start(X, Settings(n_components=3), 0)
    at_once = learn(model, X)[0]
    assert at_once.checked > 5
    by_parts = model
    for t in range(len(X)):
        by_parts = learn(by_parts, X[t : t + 1], reuse=t > 0)[0]
    same(encode.settled(at_once), encode.settled(by_parts), 1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_batches_may_be_as_long_as_is_asked_for(missing):
    X = table(4, 3000, 6, missing)
    model = start(X, Settings(n_components=2, batch_size=2500), 0)
    learned = learn(model, X)[0]
    assert np.isfinite(learned.C).all()
    by_parts = learn(learn(model, X[:2200])[0], X[2200:])[0]
    same(encode.settled(learned), encode.settled(by_parts), 1e-6)


def test_hidden_entries_teach_nothing(rng):
    """The model is the same whatever the values are that checked rows hide."""
    X = table(2, 200, 10, 0.2)
    model = start(X, Settings(n_components=3), 0)
    other = X.copy()
    for t, draw in enumerate(hide.draws(X).tolist()):
        if draw % hide.ONE_IN == 0:
            hidden = ~model.masks[draw // hide.ONE_IN % len(model.masks)] & ~np.isnan(X[t])
            if hidden.all() or not hidden.any() or (hidden | np.isnan(X[t])).all():
                continue
            other[t, hidden] += 1e3 * X[t, hidden]
    draws = hide.draws(X)
    original = hide.draws
    try:
        hide.draws = lambda rows: draws[: rows.shape[0]]
        one, two = (
            learn(
                replace(start(rows, Settings(n_components=3), 0), batch_left=999, period_left=999),
                rows,
            )[0]
            for rows in (X, other)
        )
    finally:
        hide.draws = original
    assert not np.array_equal(X, other, equal_nan=True)
    assert np.array_equal(one.C, two.C)
    assert not np.array_equal(one.histogram, two.histogram)


def test_the_given_model_is_not_changed(rng):
    X = table(3, 120, 8, 0.2)
    model = start(X, Settings(n_components=3), 0)
    before = {
        f.name: np.copy(getattr(model, f.name)) for f in fields(model) if f.name != "settings"
    }
    learn(model, X)
    for name, value in before.items():
        assert np.array_equal(value, np.copy(getattr(model, name))), name


def test_sparse_rows_are_rows_with_missing_entries():
    X = table(4, 130, 10, 0.5)
    sparse = scipy.sparse.csr_array(np.nan_to_num(X))
    model = start(X, Settings(n_components=3), 0)
    from_sparse = start(sparse, Settings(n_components=3), 0)
    same(model, from_sparse)
    dense, few = learn(model, X), learn(from_sparse, sparse)
    np.testing.assert_allclose(dense[0].C, few[0].C, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(dense[1], few[1], rtol=1e-8, atol=1e-10)


def test_a_revision_changes_how_rows_are_written_not_what_they_are(rng):
    """Turning, shifting and rescaling leave C x̃ what it was, but for the prior's pull."""
    X = table(5, 400, 12, 0.1)
    model = start(X, Settings(n_components=4, shrink=1e-9), 0)
    model = learn(replace(model, batch_left=401, period_left=401), X)[0]
    free = replace(model, unsure=0.0 * model.unsure)
    after = revised(free)
    np.testing.assert_allclose(
        np.linalg.svd(after.C * after.noise[:, None], compute_uv=False).shape, (5,)
    )
    before = (model.C * model.noise[:, None])[:, :4]
    spanned = (after.C * after.noise[:, None])[:, :4]
    basis = np.linalg.qr(spanned)[0]
    np.testing.assert_allclose(basis @ (basis.T @ before), before, atol=1e-6 * np.abs(before).max())


def test_after_a_revision_codes_have_mean_zero_and_unit_covariance(rng):
    X = 5 + rng.standard_normal((3000, 3)) @ rng.standard_normal((3, 20))
    X += 0.3 * rng.standard_normal(X.shape)
    model = learn(start(X, Settings(n_components=5, noise="shared", scale=False), 0), X)[0]
    codes = encode.encode(model, X)
    used = model.used
    assert used.tolist() == [True, True, True, False, False]
    np.testing.assert_allclose(codes[:, used].mean(axis=0), 0, atol=0.1)
    np.testing.assert_allclose(np.cov(codes[:, used].T), np.eye(3), atol=0.15)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_predictions_are_what_their_equations_say(missing):
    X = table(7, 200, 9, missing)
    model = encode.settled(learn(start(X, Settings(n_components=3), 0), X)[0])
    row = X[:1].copy()
    row[0, [1, 4]] = np.nan
    shares = 1.0 / model.rarity
    y = (row[0] - model.center) / model.noise
    mean, variance = reference.predictive(model.C, model.Sigma, shares, 1.0, 1.0, y)
    filled = encode.fill(model, row, deviations=True)
    gone = np.isnan(row[0])
    np.testing.assert_allclose(filled.rows[0, gone], (mean * model.noise + model.center)[gone])
    np.testing.assert_allclose(
        filled.deviations[0, gone], (np.sqrt(variance) * model.noise)[gone], rtol=1e-7
    )
    assert (filled.deviations[0, ~gone] == 0).all()
    exact = reference.log_likelihood(model.C, 1.0, y) - np.log(model.noise[~gone]).sum()
    assert encode.log_likelihood(model, row)[0] == pytest.approx(exact, rel=1e-8)


def test_draws_spread_as_the_model_says(rng):
    X = table(8, 300, 6, 0.1)
    model = learn(start(X, Settings(n_components=2), 0), X)[0]
    row = X[:1].copy()
    row[0, :3] = np.nan
    filled = encode.fill(model, row, deviations=True)
    draws = np.array(list(encode.draw(model, row, 4000, rng)))[:, 0, :3]
    np.testing.assert_allclose(draws.mean(axis=0), filled.rows[0, :3], rtol=0.02, atol=0.05)
    np.testing.assert_allclose(draws.std(axis=0), filled.deviations[0, :3], rtol=0.15)


@pytest.mark.parametrize("missing", [0.15, 0.7])
@pytest.mark.parametrize("sparse", [False, True])
def test_polishing_solves_each_feature_from_the_rows_that_observe_it(missing, sparse):
    X = table(9, 300, 8, missing)
    rows = scipy.sparse.csr_array(np.nan_to_num(X)) if sparse else X
    model = encode.settled(learn(start(rows, Settings(n_components=3), 0), rows)[0])
    shares = 1.0 / model.rarity
    C, Y = model.C, (X - model.center) / model.noise
    for _ in range(polish.ROUNDS):
        S, right = np.zeros((8, 4, 4)), np.zeros((8, 4))
        for y in Y:
            x, covariance, _, _ = reference.code(C, model.Sigma, shares, 1.0, 1.0, y)
            for i in np.flatnonzero(~np.isnan(y)):
                S[i] += np.outer(x, x)
                S[i, :3, :3] += covariance
                right[i] += y[i] * x
        C = np.array([np.linalg.solve(S[i] + np.diag(1 / model.v), right[i]) for i in range(8)])
    np.testing.assert_allclose(polish.polished(model, rows).C, C, rtol=1e-6, atol=1e-8)


def test_rows_that_come_again_are_no_new_evidence():
    X = table(10, 200, 8, 0.1)
    model = learn(start(X, Settings(n_components=2), 0), X)[0]
    model = replace(model, pass_rows=200)
    for _ in range(30):
        model = learn(model, X)[0]
    assert model.n_rows < 200


@pytest.mark.parametrize("sparse", [False, True])
def test_features_are_constant_until_they_vary(sparse, rng):
    X = rng.normal(size=(600, 6)) + 3.0
    X[:, 1], X[:, 4] = 2.0, 5.0
    X[500:, 4] = 5.5
    X[rng.random(X.shape) < 0.1] = np.nan
    rows = sparse_with_holes(X) if sparse else X
    model = start(rows[:400], Settings(), 0)
    assert np.flatnonzero(model.constant).tolist() == [1, 4]
    model = learn(model, rows[:500])[0]
    assert np.flatnonzero(model.constant).tolist() == [1, 4]
    model = next_batch(learn(model, rows[500:])[0])
    assert np.flatnonzero(model.constant).tolist() == [1]
    nothing_varies = np.full((20, 3), 7.0)
    nothing_varies[:, 1] = np.nan
    for rows in (nothing_varies, X[:8]):  # or too few rows tell
        assert not start(rows, Settings(), 0).constant.any()
