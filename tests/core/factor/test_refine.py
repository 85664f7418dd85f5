"""Variational rounds equal their equations, never lower the bound, and learn what is seen late."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer

from omfb import OMFBImputer
from omfb.core.factor import refine
from omfb.core.factor.hyper import Hyper
from omfb.core.factor.refine import Posterior, packed, unpacked
from omfb.core.factor.table import Table
from omfb.core.factor.whiten import pattern_of
from omfb.core.linalg.rows import Rows


def rows_of(X):
    seen = ~np.isnan(X)
    return Rows(*pattern_of(seen), X[seen])


def made(seed, n=70, m=6, k=2, missing=0.2):
    """A table of low rank with NaN, and a posterior to start from."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, k)) @ rng.standard_normal((k, m)) + 1.0
    X += 0.3 * rng.standard_normal((n, m))
    X[rng.random((n, m)) < missing] = np.nan
    R = k + 1
    roots = 0.2 * rng.standard_normal((m, R, R))
    start = Posterior(
        rng.standard_normal((m, R)), packed(roots @ roots.transpose(0, 2, 1)),
        0.1 + rng.random(m), 0.5 + rng.random(R), 0.5 + rng.random(m), np.zeros(m, bool),
        np.eye(R),
    )  # fmt: skip
    return X, start


def naive(X, start, one):
    """Codes, their covariances, loadings and theirs, by the formulas."""
    (n, m), R = X.shape, start.C.shape[1]
    r, Sigma = R - 1, unpacked(start.covariances, R)
    codes, covariances = np.empty((n, R)), np.zeros((n, R, R))
    for t in range(n):
        A, b = np.zeros((R, R)), np.zeros(R)
        for i in np.flatnonzero(~np.isnan(X[t])):
            A += (np.outer(start.C[i], start.C[i]) + Sigma[i]) / start.noise[i]
            b += X[t, i] * start.C[i] / start.noise[i]
        covariances[t, :r, :r] = np.linalg.inv(A[:r, :r] + np.eye(r))
        codes[t] = np.append(covariances[t, :r, :r] @ (b[:r] - one * A[:r, r]), one)
    C, own = np.empty((m, R)), np.empty((m, R, R))
    for i in range(m):
        S, h = np.zeros((R, R)), np.zeros(R)
        for t in np.flatnonzero(~np.isnan(X[:, i])):
            S += np.outer(codes[t], codes[t]) + covariances[t]
            h += X[t, i] * codes[t]
        own[i] = np.linalg.inv(S / start.noise[i] + np.diag(1 / (start.v * start.sizes[i])))
        C[i] = own[i] @ h / start.noise[i]
    return codes, covariances, C, own


@pytest.mark.parametrize("missing", [0.2, 0.7])
@pytest.mark.parametrize("one", [0.0, 1.0])
@pytest.mark.parametrize("n", [1, 70, 300])
def test_a_round_equals_its_equations(n, missing, one):
    X, start = made(1, n, missing=missing)
    codes, covariances, C, own = naive(X, start, one)
    table = Table(rows_of(X), X.shape[1])
    coded = refine.code(table, start, one)
    np.testing.assert_allclose(coded.X, codes, rtol=1e-9, atol=1e-11)
    found, packed_own, spread, left = refine.solve(table, coded, start)
    np.testing.assert_allclose(found, C, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(unpacked(packed_own, C.shape[1]), own, rtol=1e-8, atol=1e-10)
    residuals = X - codes @ C.T
    np.testing.assert_allclose(left, np.nansum(residuals**2, axis=0), rtol=1e-8, atol=1e-10)
    second = np.einsum("ti,tj->tij", codes, codes) + covariances
    squares = np.einsum("tij,mij->tm", second, own + np.einsum("mi,mj->mij", C, C))
    expected = np.sum(squares - (codes @ C.T) ** 2, axis=0, where=~np.isnan(X))
    np.testing.assert_allclose(spread, expected, rtol=1e-7, atol=1e-8)


def bound(X, start, codes, covariances, C, own):
    """The evidence lower bound of codes and loadings, but for constants."""
    r = codes.shape[1] - 1
    second = np.einsum("ti,tj->tij", codes, codes) + covariances
    squares = np.einsum("tij,mij->tm", second, own + np.einsum("mi,mj->mij", C, C))
    errors = X**2 - 2.0 * X * (codes @ C.T) + squares
    total = -0.5 * np.nansum(errors / start.noise)
    total -= 0.5 * np.sum(codes[:, :r] ** 2) + 0.5 * np.trace(covariances.sum(axis=0))
    total += 0.5 * np.sum(np.linalg.slogdet(covariances[:, :r, :r])[1])
    prior = start.v * start.sizes[:, None]
    total -= 0.5 * np.sum((C**2 + np.einsum("mii->mi", own)) / prior)
    return total + 0.5 * np.sum(np.linalg.slogdet(own)[1])


def test_rounds_do_not_lower_the_bound():
    """With noise, basis and variances as they are: each half of a round maximises it."""
    X, start = made(2)
    values = []
    for _ in range(8):
        codes, covariances, C, own = naive(X, start, 1.0)
        values.append(bound(X, start, codes, covariances, C, own))
        start = replace(start, C=C, covariances=packed(own))
    assert np.all(np.diff(values) > -1e-9 * np.abs(values[0]))


def test_a_change_of_basis_changes_no_prediction():
    X, start = made(3)
    table, wanted = Table(rows_of(X), X.shape[1]), rows_of(np.nan_to_num(X))
    coded = refine.code(table, start, 1.0)
    C, own, _, _ = refine.solve(table, coded, start)
    T = refine._basis(coded.total, len(X), C, own, start, 1.0)
    codes = coded.X @ np.linalg.inv(T).T
    np.testing.assert_allclose(codes @ (C @ T).T, coded.X @ C.T, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(codes[:, :-1].mean(axis=0), 0.0, atol=1e-10)
    assert len(wanted) == len(X)


def test_noise_is_found_and_idle_components_go():
    rng = np.random.default_rng(0)
    noise = np.repeat([0.1, 0.5], 5)
    X = rng.standard_normal((1000, 2)) @ rng.standard_normal((2, 10))
    X += noise * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < 0.2] = np.nan
    R = 7
    start = Posterior(
        rng.standard_normal((10, R)), np.tile(packed(0.1 * np.eye(R)[None]), (10, 1)), np.ones(10),
        np.ones(R), np.nanvar(X, axis=0), np.zeros(10, bool), np.eye(R),
    )  # fmt: skip
    table = Table(rows_of(X), 10)
    found = refine.refine(
        table, start, 1.0, False, Hyper(refine_rounds=(4, 200), refine_tolerance=1e-5)
    )
    np.testing.assert_allclose(np.sqrt(found.noise), noise, rtol=0.15)
    assert found.C.shape[1] - 1 == 2
    shared = refine.refine(table, start, 1.0, True, Hyper())
    assert np.ptp(shared.noise) == 0.0
    assert found.basis_change.shape == (R, 3)


def late_sensor(seed, n, drift):
    """Low rank and noise; the last column nearly equals another, but is seen in the last fifth."""
    rng = np.random.default_rng(seed)
    codes = rng.standard_normal((n, 3))
    codes = np.cumsum(codes, axis=0) / np.sqrt(n) * 2 if drift else codes
    Y = codes @ rng.standard_normal((3, 8))
    Y += 0.6 * Y.std(axis=0) * rng.standard_normal(Y.shape)
    Y = np.c_[Y, Y[:, -1] + 0.06 * Y[:, -1].std() * rng.standard_normal(n)]
    X = Y.copy()
    X[: round(0.8 * n), -1] = np.nan
    return X, Y


@pytest.mark.parametrize("drift", [False, True])
def test_a_sensor_that_was_installed_late_is_learned_as_well_as_by_regression(drift):
    shares, ratios = [], []
    for seed in range(3):
        X, Y = late_sensor(seed, 600, drift)
        gone = np.isnan(X[:, -1])
        model = OMFBImputer(random_state=0).fit(X)
        errors = [
            np.sqrt(np.mean((filled[gone, -1] - Y[gone, -1]) ** 2))
            for filled in (model.transform(X), IterativeImputer(max_iter=30).fit_transform(X))
        ]
        ratios.append(errors[0] / errors[1])
        low, high = model.interval(X, 0.9)
        shares.append(np.mean(((low <= Y) & (high >= Y))[gone, -1]))
        assert np.mean((high - low)[gone, -1]) < 8.0 * errors[0]
    assert np.mean(ratios) < 1.2
    assert 0.8 < np.mean(shares) < 0.98


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", ["constant", "all missing", "one row", "two rows", "duplicate"])
def test_degenerate_tables_have_finite_answers(kind):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1 if kind == "one row" else 2 if kind == "two rows" else 80, 4))
    X[0, 1] = np.nan
    if kind == "constant":
        X[:, 2] = 3.0
        X[5:20, 2] = np.nan
    if kind == "all missing":
        X[:, 2] = np.nan
    if kind == "duplicate":
        X[:, 2] = X[:, 3]
        X[5:60, 2] = np.nan
    model = OMFBImputer(random_state=0).fit(X)
    filled, deviations = model.complete(X, return_std=True)
    low, high = model.interval(X, 0.9)
    assert np.isfinite(filled).all()
    # Of a column without entries nothing is known.
    unknown = np.isnan(X) & (np.isnan(X).all(axis=0))
    for side in (deviations, -low, high):
        assert np.isfinite(side[~unknown]).all()
        assert (side[unknown] == np.inf).all()
    if kind == "constant":
        np.testing.assert_allclose(filled[:, 2], 3.0, atol=1e-6)
    if kind == "duplicate":
        np.testing.assert_allclose(filled[:, 2], X[:, 3], atol=0.02)


def test_a_refined_model_goes_on_learning():
    X, _ = made(4, 300, 8, 3)
    rng = np.random.default_rng(1)
    model = OMFBImputer(random_state=0).fit(X)
    assert model.learner_.state.posterior is not None
    before = model.transform(X)
    model.partial_fit(X[rng.permutation(len(X))])
    assert model.learner_.state.posterior is None
    gone = np.isnan(X)
    change = np.std((model.transform(X) - before)[gone]) / np.std(before[gone])
    assert change < 0.2
