"""Tables of few distinct values, of equal rows and in any unit are filled as well as others."""

import numpy as np
import pytest

from omfb import OMFBImputer, OnlineFactorAnalysis


def low_rank(rng, n, m, rank, noise):
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m)) + noise * rng.normal(size=(n, m))


TABLES = {
    "binary, three columns": lambda rng: 1.0 * (low_rank(rng, 400, 3, 1, 0.7) > 0.0),
    "binary": lambda rng: 1.0 * (low_rank(rng, 400, 8, 2, 0.7) > 0.0),
    "answers from 1 to 5": lambda rng: np.clip(np.round(3 + low_rank(rng, 500, 10, 3, 0.3)), 1, 5),
    "forty times the same rows": lambda rng: np.tile(low_rank(rng, 12, 6, 2, 0.0), (40, 1)),
    "tiny": lambda rng: 1e-30 * low_rank(rng, 300, 5, 2, 0.2),
    "huge": lambda rng: 1e30 * low_rank(rng, 300, 5, 2, 0.2),
    "counts": lambda rng: rng.poisson(np.exp(low_rank(rng, 400, 8, 2, 0.2))).astype(float),
    "mostly zero": lambda rng: np.maximum(low_rank(rng, 400, 8, 2, 0.3) - 1.0, 0.0),
    "two rows": lambda rng: np.repeat(low_rank(rng, 2, 6, 1, 0.0), 150, axis=0),
    "columns twice": lambda rng: np.repeat(low_rank(rng, 300, 4, 2, 0.3), 2, axis=1),
    "one column constant": lambda rng: np.hstack(
        [low_rank(rng, 300, 5, 2, 0.2), np.full((300, 1), 7.0)]
    ),
}


@pytest.mark.parametrize("seed", [31, 32, 33])
@pytest.mark.parametrize("kind", TABLES)
def test_a_fit_is_no_worse_than_with_jitter_or_one_by_one_or_the_mean(kind, seed):
    rng = np.random.default_rng(seed)
    Y = TABLES[kind](rng)
    varies = Y.std(axis=0) > 0.0
    X = np.where((rng.random(Y.shape) < 0.15) & varies, np.nan, Y)
    hidden, scale = np.isnan(X), np.where(varies, Y.std(axis=0), 1.0)

    def error(filled):
        return np.sqrt(np.mean(((filled - Y) / scale)[hidden] ** 2))

    found = error(OMFBImputer(random_state=0).fit_transform(X))
    jittered = X * (1.0 + 1e-7 * rng.normal(size=X.shape))
    stream = OMFBImputer(random_state=0)
    for start in range(0, len(X), 50):
        stream.partial_fit(X[start : start + 50])
    others = (
        OMFBImputer(random_state=0).fit_transform(jittered),
        stream.transform(X),
        np.where(hidden, np.nanmean(X, axis=0), X),
    )
    assert found <= 1.05 * min(map(error, others)) + 0.01


def test_errors_and_intervals_do_not_depend_on_the_unit():
    rng = np.random.default_rng(32)
    Y = low_rank(rng, 300, 8, 2, 0.3)
    X = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    model = OMFBImputer(random_state=0).fit(X)
    filled, (low, high) = model.transform(X), model.interval(X, 0.9)
    for unit in (1e-30, 1e-20, 1e20, 1e30):
        other = OMFBImputer(random_state=0).fit(unit * X)
        spread = np.abs(filled).max()
        np.testing.assert_allclose(other.transform(unit * X) / unit, filled, atol=0.02 * spread)
        below, above = other.interval(unit * X, 0.9)
        np.testing.assert_allclose((above - below) / unit, high - low, atol=0.03 * spread)


def test_rows_that_are_equal_may_change_places():
    """Which rows hold something out does not depend on their values, but on their place."""
    rng = np.random.default_rng(33)
    X = np.repeat(low_rank(rng, 40, 6, 2, 0.1), 10, axis=0)
    X[:, 0] = np.repeat(np.where(rng.random(40) < 0.3, np.nan, X[::10, 0]), 10)
    order = np.arange(400).reshape(40, 10)
    order = rng.permuted(order, axis=1).ravel()
    one, other = (OMFBImputer(random_state=0).fit(Y) for Y in (X, X[order]))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("unit", [1e-30, 1e-20, 2.0**-40, 1e20, 1e30])
def test_scores_of_a_stream_do_not_depend_on_the_unit(missing, unit):
    rng = np.random.default_rng(34)
    Y = low_rank(rng, 600, 8, 2, 0.3)
    Y[rng.random(Y.shape) < missing] = np.nan
    one, other = (OnlineFactorAnalysis(2, random_state=0).partial_fit(X) for X in (Y, unit * Y))
    assert one.learner_.state.holdout.n_scored == other.learner_.state.holdout.n_scored > 30
    assert other.prequential_error_ == pytest.approx(one.prequential_error_, rel=1e-6)
    assert other.recent_error_ == pytest.approx(one.recent_error_, rel=1e-6)
