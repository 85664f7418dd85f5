"""Rounds of updates, compared with the naive formulas, and fits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.ratings.fit import fit_ratings, run_rounds
from omfb.core.ratings.predict import UNKNOWN, interval_width, predict, scores_of
from omfb.core.ratings.state import Config, first_variances, new_state

from ...making import generated_ratings
from ...reference_ratings import Naive, Side


def some(rng, n_users, n_items, share=0.4):
    """Ratings such that every user and item has one."""
    seen = rng.random((n_users, n_items)) < share
    seen[np.arange(n_users), np.arange(n_users) % n_items] = True
    seen[np.arange(n_items) % n_users, np.arange(n_items)] = True
    user, item = np.nonzero(seen)
    return user, item, rng.integers(1, 6, len(user)).astype(float)


@settings(max_examples=30)
@given(
    seed=st.integers(0, 2**20), r=st.integers(1, 4), n_users=st.integers(1, 7),
    n_items=st.integers(1, 7), implicit=st.booleans(),
)  # fmt: skip
def test_rounds_are_the_naive_formulas(seed, r, n_users, n_items, implicit):
    rng = np.random.default_rng(seed)
    user, item, rating = some(rng, n_users, n_items)
    state = new_state(Config(r, implicit), user, item, rating, n_users, n_items, seed=seed)
    first = first_variances(r)
    users = Side(n_users, r, r + 1, first[0], state.users.mean)
    items = Side(n_items, r, r, first[1], state.items.mean)
    naive = Naive(user, item, state.entries.z, users, items)
    run_rounds(state, 3)
    for _ in range(3):
        naive.round(implicit)
    rows, columns = np.tril_indices(r + 2)
    for fast, slow in ((state.users, users), (state.items, items)):
        np.testing.assert_allclose(fast.mean, slow.mean, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(
            fast.moments, slow.second[:, rows, columns], rtol=1e-8, atol=1e-10
        )
        np.testing.assert_allclose(fast.weight, slow.weight, rtol=1e-8)
        np.testing.assert_allclose(fast.base, slow.base, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(fast.variance, slow.v, rtol=1e-8)
        if implicit:
            np.testing.assert_allclose(fast.implicit, slow.w, rtol=1e-8, atol=1e-10)
            np.testing.assert_allclose(fast.implicit_prior, slow.w_prior, rtol=1e-8)
    assert state.noise == pytest.approx(naive.noise, rel=1e-8)


def test_predicted_variance_is_that_of_the_product_of_two_posteriors():
    rng = np.random.default_rng(0)
    user, item, rating = some(rng, 6, 5)
    state = new_state(Config(2, True), user, item, rating, 6, 5, seed=0)
    run_rounds(state, 4)
    rows, columns = np.tril_indices(4)

    def draws(side, e, fixed):
        second = np.zeros((4, 4))
        second[rows, columns] = second[columns, rows] = side.moments[e]
        covariance = second - np.outer(side.mean[e], side.mean[e])
        assert not covariance[fixed].any()
        return rng.multivariate_normal(side.mean[e], covariance, 400_000)

    products = (draws(state.users, 2, 3) * draws(state.items, 1, 2)).sum(1)
    noise = state.noise / (state.users.weight[2] * state.items.weight[1])
    mean, std = predict(state, np.array([2]), np.array([1]), -99.0, 99.0)
    assert mean[0] == pytest.approx(state.center + state.unit * products.mean(), abs=0.01)
    assert std[0] == pytest.approx(state.unit * np.sqrt(products.var() + noise), rel=0.01)


def test_unknown_users_and_items_have_the_prior():
    user, item, rating = generated_ratings(0, 60, 40, 1200)
    state = fit_ratings(
        Config(3, True), user, item, rating, 60, 40, max_iter=20, holdout=0.05, seed=0
    ).state
    both = np.array([UNKNOWN, 3, UNKNOWN, 3])
    mean, std = predict(state, both, np.array([5, UNKNOWN, UNKNOWN, 5]))
    assert np.isfinite(mean).all()
    assert std[2] > std[0] > 0
    assert mean[2] == pytest.approx(rating.mean(), abs=0.4)
    assert scores_of(state, 3)[5] == pytest.approx(mean[3])
    assert scores_of(state, UNKNOWN)[5] == pytest.approx(mean[0])


def test_fits_find_the_components_and_calibrate():
    user, item, rating = generated_ratings(1, 300, 200, 16_000)
    held = np.random.default_rng(0).random(len(user)) < 0.2
    fit = fit_ratings(
        Config(6, True), user[~held], item[~held], rating[~held], 300, 200, max_iter=50,
        holdout=0.1, seed=0,
    )  # fmt: skip
    mean, std = predict(fit.state, user[held], item[held])
    rmse = np.sqrt(np.mean((mean - rating[held]) ** 2))
    offsets = fit_ratings(
        Config(1, False), user[~held], item[~held], rating[~held], 300, 200, max_iter=50,
        holdout=0.1, seed=0,
    )  # fmt: skip
    only, _ = predict(offsets.state, user[held], item[held])
    assert rmse < 0.97 * np.sqrt(np.mean((only - rating[held]) ** 2))
    assert fit.holdout_rmse == pytest.approx(rmse, rel=0.06)
    held_by = np.abs(mean - rating[held]) <= interval_width(fit.state, 0.9) * std
    assert 0.87 <= held_by.mean() <= 0.93


def test_the_choice_of_items_helps_where_it_depends_on_taste():
    user, item, rating = generated_ratings(2, 400, 300, 16_000, selected=1.5)
    held = np.random.default_rng(0).random(len(user)) < 0.2
    errors = []
    for implicit in (True, False):
        state = fit_ratings(
            Config(5, implicit), user[~held], item[~held], rating[~held], 400, 300, max_iter=50,
            holdout=0.05, seed=0,
        ).state  # fmt: skip
        mean, _ = predict(state, user[held], item[held])
        errors.append(np.sqrt(np.mean((mean - rating[held]) ** 2)))
    assert errors[0] < 0.99 * errors[1]
