"""SGMF against its formula, gradient by gradient."""

import numpy as np
import pytest

from omfb.paper.competitors import SGMF, DivergedError

from .making import low_rank, objective, with_missing


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
    X = with_missing(rng.standard_normal((12, 7)), rng, share)
    W = rng.standard_normal((3, 7))
    steps = {"step": 0.8, "decay": 0.6, "code_step": 0.3, "code_decay": 0.7}
    expected_W, expected_H = sgmf_by_the_formula(X, W, 4, batch, **steps)
    model = SGMF(3, init=W, batch_size=batch, max_iter=4, random_state=0, **steps).fit(X)
    np.testing.assert_allclose(model.components_, expected_W, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(model.codes_, expected_H, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("batch", [1, 10])
def test_sgmf_objective_falls_from_pass_to_pass(rng, batch):
    X = with_missing(low_rank(rng), rng)
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
