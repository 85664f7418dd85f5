"""Streams of ratings: however they are cut, the model is the same, and it is as good as a fit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.ratings import learn as learning
from omfb.core.ratings.fit import fit_ratings
from omfb.core.ratings.learn import learn
from omfb.core.ratings.predict import predict, seen_items
from omfb.core.ratings.state import Config

from ...making import generated_ratings

CONFIG = Config(3, True)


def numbered(ids):
    """Numbers from 0 in the order in which identifiers come."""
    numbers = {}
    return np.array([numbers.setdefault(each, len(numbers)) for each in ids.tolist()])


def stream(seed, n_users=80, n_items=60, n=2500):
    user, item, rating = generated_ratings(seed, n_users, n_items, n)
    order = np.random.default_rng(seed).permutation(len(user))
    return numbered(user[order]), numbered(item[order]), rating[order]


def same_state(one, other):
    for name in ("users", "items"):
        n = getattr(one, f"n_{name}")
        a, b = getattr(one, name), getattr(other, name)
        for part in ("mean", "moments", "weight", "shift", "implicit", "heads", "counts"):
            np.testing.assert_array_equal(getattr(a, part)[:n], getattr(b, part)[:n])
        for part in ("base", "variance", "implicit_prior", "sums"):
            np.testing.assert_array_equal(getattr(a, part), getattr(b, part))
    np.testing.assert_array_equal(one.known, other.known)
    np.testing.assert_array_equal(one.scores.histogram, other.scores.histogram)
    np.testing.assert_array_equal(one.scores.stream, other.scores.stream)
    assert (one.low, one.high, one.noise) == (other.low, other.high, other.noise)


@settings(max_examples=10)
@given(seed=st.integers(0, 99), cuts=st.lists(st.integers(1, 2499), max_size=6))
def test_however_a_stream_is_cut_the_state_is_the_same(seed, cuts):
    user, item, rating = stream(seed)
    user, item = np.append(user, user[:40]), np.append(item, item[:40])  # some pairs twice
    rating = np.append(rating, 6.0 - rating[:40])
    whole = learn(None, CONFIG, user, item, rating, seed=0)
    state = None
    for part in np.split(np.arange(len(user)), sorted(set(cuts))):
        state = learn(state, CONFIG, user[part], item[part], rating[part], seed=0)
    same_state(whole, state)


def test_a_state_that_grows_leaves_the_one_before_as_it_was():
    user, item, rating = stream(0)
    before = learn(None, CONFIG, user[:150], item[:150], rating[:150], seed=0)
    pairs = user[:150], item[:150]
    expected = predict(before, *pairs)
    after = learn(before, CONFIG, user[150:], item[150:], rating[150:], seed=0)
    assert after.n_ratings > before.n_ratings == 150
    np.testing.assert_array_equal(predict(before, *pairs), expected)


def test_a_stream_ends_near_a_fit():
    user, item, rating = stream(3, 200, 150, 12_000)
    n = 9000
    state = learn(None, CONFIG, user[:n], item[:n], rating[:n], seed=0)
    fit = fit_ratings(
        CONFIG, user[:n], item[:n], rating[:n], 200, 150, max_iter=50, holdout=0.05, seed=0
    )
    errors = [
        np.sqrt(np.mean((predict(each, user[n:], item[n:])[0] - rating[n:]) ** 2))
        for each in (state, fit.state)
    ]
    assert errors[0] < 1.01 * errors[1]


def test_a_rating_that_changes_counts_once():
    user, item, rating = stream(4)
    state = learn(None, CONFIG, user, item, rating, seed=0)
    n = state.n_ratings
    u, i = user[7:8], item[7:8]
    before = predict(state, u, i)[0][0]
    for _ in range(3):
        state = learn(state, CONFIG, u, i, np.array([6.0 - rating[7]]), seed=0)
    assert state.n_ratings == n
    assert sorted(seen_items(state, int(u[0]))) == sorted(set(item[user == u[0]]))
    moved = predict(state, u, i)[0][0] - before
    assert np.sign(moved) == np.sign(3.0 - rating[7]) or rating[7] == 3.0


def test_more_ratings_than_are_updated_exactly_are_learned_too():
    """A user with 1000 ratings follows all of them, although each is only added."""
    rng = np.random.default_rng(0)
    user, item, rating = stream(5, 100, 1000, 8000)
    state = learn(None, CONFIG, user, item, rating, seed=0)
    n_items = int(item.max()) + 1
    many = np.arange(n_items)
    new = np.full(n_items, int(user.max()) + 1)
    values = np.clip(np.rint(2.0 + rng.normal(size=n_items)), 1, 5)
    state = learn(state, CONFIG, new, many, values, seed=0)
    assert state.users.counts[new[0]] == n_items
    assert predict(state, new, many)[0].mean() == pytest.approx(values.mean(), abs=0.1)


def test_models_are_not_fitted_anew_beyond_a_number_of_ratings(monkeypatch):
    monkeypatch.setattr(learning, "MOST_RESTARTED", 300)
    made = []
    monkeypatch.setattr(learning, "restarted", lambda state: made.append(state.n_ratings) or state)
    user, item, rating = stream(6)
    learn(None, CONFIG, user, item, rating, seed=0)
    assert made == [150, 225]
