"""The paper's competitors against their formulas, scikit-learn, and what they promise."""

import numpy as np
import pytest
import sklearn.decomposition
from sklearn.utils.estimator_checks import parametrize_with_checks

from omfb.paper.baselines import NMF, SGMF, DivergedError
from omfb.paper.baselines.nmf import updated_codes


@parametrize_with_checks([NMF(max_iter=20), SGMF()])
def test_is_a_scikit_learn_estimator(estimator, check):
    check(estimator)


def with_holes(X, rng, share=0.2):
    X = X.copy()
    X[rng.random(X.shape) < share] = np.nan
    return X


def low_rank(rng, n=60, m=25, r=3):
    return rng.random((n, r)) @ rng.random((r, m))


def objective(model, X):
    return np.nansum((X - model.codes_ @ model.components_) ** 2)


# -- NMF ----------------------------------------------------------------------------------------


def start(rng, X, r):
    return rng.random((len(X), r)) + 0.1, rng.random((r, X.shape[1])) + 0.1


def test_nmf_is_scikit_learns_where_nothing_is_missing(rng):
    X = rng.random((30, 12))
    W, H = start(rng, X, 4)
    theirs = sklearn.decomposition.NMF(4, solver="mu", init="custom", max_iter=50, tol=0.0)
    their_codes = theirs.fit_transform(X, W=W.copy(), H=H.copy())
    ours = NMF(4, max_iter=50, init=(W, H)).fit(X)
    # Same formula, other order of the sums: rounding, grown over 50 iterations.
    np.testing.assert_allclose(ours.components_, theirs.components_, rtol=1e-9)
    np.testing.assert_allclose(ours.codes_, their_codes, rtol=1e-9)
    fresh = rng.random((5, 12))
    np.testing.assert_allclose(ours.transform(fresh), theirs.transform(fresh), rtol=1e-9)


def test_nmf_is_its_formula_entry_by_entry(rng):
    X = with_holes(rng.random((6, 5)), rng)
    W, H = start(rng, X, 2)
    expected_W, expected_H = W.copy(), H.copy()
    for i in range(6):
        seen = np.flatnonzero(~np.isnan(X[i]))
        for k in range(2):
            above = sum(X[i, j] * H[k, j] for j in seen)
            below = sum((W[i] @ H[:, j]) * H[k, j] for j in seen)
            expected_W[i, k] *= above / below
    for j in range(5):
        seen = np.flatnonzero(~np.isnan(X[:, j]))
        for k in range(2):
            above = sum(X[i, j] * expected_W[i, k] for i in seen)
            below = sum((expected_W[i] @ H[:, j]) * expected_W[i, k] for i in seen)
            expected_H[k, j] *= above / below
    model = NMF(2, max_iter=1, init=(W, H)).fit(X)
    np.testing.assert_allclose(model.codes_, expected_W, rtol=1e-12)
    np.testing.assert_allclose(model.components_, expected_H, rtol=1e-12)


def test_nmf_with_a_mask_of_ones_is_nmf_without(rng):
    X = rng.random((8, 6))
    W, H = start(rng, X, 3)
    masked = updated_codes(X, np.ones_like(X), W, H)
    np.testing.assert_allclose(masked, updated_codes(X, None, W, H), rtol=1e-12)


def test_nmf_objective_never_rises(rng):
    X = with_holes(rng.random((40, 15)), rng)
    model = NMF(4, max_iter=1, warm_start=True, random_state=0)
    errors = [objective(model.fit(X), X) for _ in range(100)]
    assert (np.diff(errors) <= 1e-12 * errors[0]).all()
    assert errors[-1] < 0.5 * errors[0]


def test_nmf_fills_holes(rng):
    truth = low_rank(rng)
    X = with_holes(truth, rng)
    filled = NMF(3, max_iter=3000, random_state=0).fit(X).complete(X)
    np.testing.assert_array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.abs(filled - truth).max() < 0.05


def test_nmf_refuses_negative_numbers_and_unknown_starts():
    with pytest.raises(ValueError, match="Negative values"):
        NMF(1).fit([[1.0, -1.0]])
    with pytest.raises(ValueError, match="init"):
        NMF(1, init="nndsvd").fit([[1.0, 1.0]])


# -- SGMF ---------------------------------------------------------------------------------------


def sgmf_by_the_formula(X, W, passes, batch, step, decay, code_step, code_decay):
    """Row by row and gradient by gradient, in the order that random_state=0 draws."""
    n = len(X)
    rng = np.random.RandomState(0)
    H, visits, t = np.zeros((n, len(W))), np.zeros(n), 0
    largest = np.linalg.eigvalsh(W @ W.T)[-1]
    energy = np.nansum(X**2) / n
    for _ in range(passes):
        order = rng.permutation(n)
        for at in range(0, n, batch):
            rows, t = order[at : at + batch], t + 1
            gradient = np.zeros_like(W)
            for k in rows:
                residual = np.nan_to_num(X[k] - H[k] @ W)
                gradient += -2 * np.outer(H[k], residual)
            W = W - step * largest / (batch * energy) / t**decay * gradient
            for k in rows:
                visits[k] += 1
                gradient = -2 * np.nan_to_num(X[k] - H[k] @ W) @ W.T
                H[k] = H[k] - code_step / largest / visits[k] ** code_decay * gradient
    return W, H


@pytest.mark.parametrize("batch", [1, 3, 12])
@pytest.mark.parametrize("share", [0.0, 0.3])
def test_sgmf_is_its_formula(rng, batch, share):
    X = with_holes(rng.standard_normal((12, 7)), rng, share)
    W = rng.standard_normal((3, 7))
    steps = {"step": 0.8, "decay": 0.6, "code_step": 0.3, "code_decay": 0.7}
    expected_W, expected_H = sgmf_by_the_formula(X, W, 4, batch, **steps)
    model = SGMF(3, init=W, batch_size=batch, max_iter=4, random_state=0, **steps).fit(X)
    np.testing.assert_allclose(model.components_, expected_W, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.codes_, expected_H, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("batch", [1, 10])
def test_sgmf_objective_falls_from_pass_to_pass(rng, batch):
    X = with_holes(low_rank(rng), rng)
    model = SGMF(3, batch_size=batch, max_iter=1, warm_start=True, random_state=0)
    errors = [objective(model.fit(X), X) for _ in range(30)]
    assert (np.diff(errors) < 0).all()
    assert errors[-1] < 0.2 * errors[0]


def test_sgmf_does_not_depend_on_the_unit_of_the_data(rng):
    X = low_rank(rng)
    small, large = (SGMF(3, random_state=0, max_iter=5).fit(unit * X) for unit in (1.0, 1024.0))
    np.testing.assert_allclose(large.codes_, 1024.0 * small.codes_, rtol=1e-9)


def test_sgmf_codes_new_rows_by_least_squares(rng):
    model = SGMF(3, random_state=0).fit(low_rank(rng))
    rows = rng.random((4, 25))
    expected = np.linalg.lstsq(model.components_.T, rows.T, rcond=None)[0].T
    np.testing.assert_allclose(model.transform(rows), expected, rtol=1e-9)


def test_sgmf_says_that_it_diverged(rng):
    with pytest.raises(DivergedError, match="smaller step"):
        SGMF(3, step=1e6, max_iter=50, random_state=0).fit(low_rank(rng))


@pytest.mark.parametrize("init", ["data", "random"])
def test_sgmf_starts_as_told(rng, init):
    X = low_rank(rng)
    model = SGMF(3, init=init, max_iter=1, batch_size=60, random_state=0).fit(X)
    W = model.components_  # codes start from zero, so the first pass leaves the dictionary alone
    if init == "random":
        assert 0.0 <= W.min() < 0.1 < 0.9 < W.max() < 1.0
    else:
        np.testing.assert_allclose(W @ W.T, np.eye(3), atol=1e-12)
        rank = np.linalg.matrix_rank(np.concatenate([W, X]), tol=1e-9)
        assert rank == 3  # in the span of the rows


def test_sgmf_refuses_an_unknown_start():
    with pytest.raises(ValueError, match="init"):
        SGMF(1, init="svd").fit([[1.0, 2.0]])


# -- both ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [NMF, SGMF])
def test_warm_start_goes_on_where_it_ended(rng, kind):
    X = with_holes(low_rank(rng), rng)
    whole = kind(3, max_iter=6, random_state=0).fit(X)
    parts = kind(3, max_iter=2, random_state=0, warm_start=True)
    for _ in range(3):
        parts.fit(X)
    np.testing.assert_array_equal(parts.components_, whole.components_)
    np.testing.assert_array_equal(parts.codes_, whole.codes_)
    assert parts.n_iter_ == whole.n_iter_ == 6
    with pytest.raises(ValueError, match="same rows"):
        parts.fit(X[:5])


@pytest.mark.parametrize("kind", [NMF, SGMF])
def test_input_stays_as_it_is_and_float32_stays_float32(rng, kind):
    X = with_holes(low_rank(rng), rng).astype(np.float32)
    before = X.copy()
    model = kind(3, max_iter=3, random_state=0).fit(X)
    np.testing.assert_array_equal(X, before)
    assert model.components_.dtype == model.codes_.dtype == model.complete(X).dtype == np.float32
