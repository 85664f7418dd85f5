"""Any table is filled with finite values, and no worse than by its column means."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omfb import OMFBImputer, OnlineFactorAnalysis

from ..making import PREDICTIVE


@st.composite
def tables(draw):
    """A table without missing entries, and which of them to hide."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, m = draw(st.sampled_from([1, 2, 5, 20, 60, 300])), draw(st.sampled_from([1, 2, 3, 8, 25]))
    rank = draw(st.integers(0, 3))
    Y = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m))
    Y += draw(st.sampled_from([0.0, 0.1, 1.0])) * rng.normal(size=(n, m))
    Y += draw(st.sampled_from([0.0, 1.0, 1e4])) * rng.normal(size=m)
    if draw(st.booleans()):
        Y[n // 2 :] += draw(st.sampled_from([1.0, 30.0]))  # a change of level
    if draw(st.booleans()):
        Y *= 10.0 ** rng.uniform(-12, 12, m)
    if draw(st.booleans()):
        Y[:, rng.integers(m)] = draw(st.sampled_from([0.0, 5.0, 1e12]))
    if draw(st.booleans()):  # a column that is hardly ever something else than 0
        rare = rng.random(n) < 0.03
        Y[:, rng.integers(m)] = np.where(rare, np.exp(rng.normal(0.0, 3.0, n)), 0.0)
    if draw(st.booleans()):
        Y = np.repeat(Y[: max(1, n // 3)], 3, axis=0)[:n]
    if draw(st.booleans()):
        Y = np.round(Y)
    Y = Y.astype(draw(st.sampled_from([np.float64, np.float32])))
    hidden = rng.random(Y.shape) < draw(st.sampled_from([0.0, 0.1, 0.5]))
    if draw(st.booleans()):
        hidden[rng.integers(len(Y))] = True
    if draw(st.booleans()) and m > 1:
        hidden[:, rng.integers(m)] = True
    return Y, hidden, draw(st.sampled_from([None, 1, 30]))


def means_of(X):
    seen = ~np.isnan(X)
    return np.where(seen, X, 0.0).sum(axis=0) / np.maximum(seen.sum(axis=0), 1)


@PREDICTIVE
@settings(
    max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(table=tables())
def test_any_table_is_filled_no_worse_than_by_its_means(estimator, table):
    Y, hidden, n_components = table
    X = np.where(hidden, np.asarray(np.nan, Y.dtype), Y)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Never observed|Numbers that look", UserWarning)
        model = estimator(n_components, random_state=0).fit(X)
    filled, std = model.complete(X, return_std=True)
    low, high = model.interval(X)
    for result in (filled, model.components_, model.mean_, model.sample(X)):
        assert np.isfinite(result).all()
    observed = ~hidden.all(axis=0)
    for result in (std, low, high):
        assert np.isfinite(result[:, observed]).all()
        assert not np.isnan(result).any()
    assert filled.dtype == X.dtype
    assert np.array_equal(filled[~hidden], Y[~hidden])
    assert (low <= high).all()
    exact = Y.astype(np.float64)
    varies = exact.std(axis=0) > 1e-6 * np.abs(exact).max(axis=0)
    judged = hidden & (~hidden).any(axis=0) & varies
    if len(Y) < 50 or judged.sum() < 50:
        return
    means, size = means_of(X.astype(np.float64)), np.where(varies, exact.std(axis=0), np.inf)
    if estimator is OnlineFactorAnalysis:  # unscaled: large columns count
        if size[varies].max() > 1e3 * size[varies].min():
            return
        size = np.full_like(size, np.sqrt(np.mean(size[varies] ** 2)))
    errors = ((filled - exact) / size)[judged]
    plain = ((means - exact) / size)[judged]
    rounding = 1e-3 if Y.dtype == np.float32 else 1e-6
    largest = np.abs(exact / size)[:, varies].max()
    slack = 1.0 + 3.0 / np.sqrt(judged.sum())
    assert (
        np.sqrt(np.mean(errors**2))
        <= 1.15 * slack * np.sqrt(np.mean(plain**2)) + rounding * largest
    )


@PREDICTIVE
def test_a_row_with_nothing_observed_gets_the_means_and_is_unsure(estimator):
    rng = np.random.default_rng(0)
    Y = (
        rng.normal(size=(2000, 2)) @ rng.normal(size=(2, 9))
        + 0.1 * rng.normal(size=(2000, 9))
        + 5.0
    )
    model = estimator(random_state=0).fit(np.where(rng.random(Y.shape) < 0.1, np.nan, Y))
    nothing = np.full((2, 9), np.nan)
    filled, std = model.complete(nothing, return_std=True)
    assert np.allclose(filled, model.mean_, rtol=1e-9)
    assert np.allclose(model.complete(nothing), model.mean_, rtol=1e-9)
    assert np.allclose(filled, Y.mean(axis=0), atol=0.15 * Y.std(axis=0).max())
    assert np.allclose(std, Y.std(axis=0), rtol=0.25)
    low, high = model.interval(np.full((1, 9), np.nan))
    assert (np.mean((low <= Y) & (high >= Y), axis=0) > 0.75).all()


def test_a_column_that_begins_late_is_learned():
    rng = np.random.default_rng(0)
    Y = rng.normal(size=(20_000, 3)) @ rng.normal(size=(3, 12)) + 0.1 * rng.normal(
        size=(20_000, 12)
    )
    Y[:, 4] = 1000.0 * Y[:, 4] + 5000.0
    X = np.where(rng.random(Y.shape) < 0.1, np.nan, Y)
    X[:10_000, 4] = np.nan
    model = OMFBImputer(shuffle=False, random_state=0).fit(X)
    hidden = np.isnan(X[:, 4])
    hidden[:10_000] = False
    error = np.sqrt(np.mean((model.complete(X)[:, 4] - Y[:, 4])[hidden] ** 2))
    assert error < 0.3 * Y[:, 4].std()


@PREDICTIVE
@pytest.mark.parametrize("temporal", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 20])
def test_tables_of_a_few_rows(estimator, n, temporal):
    rng = np.random.default_rng(n)
    Y = 3.0 + rng.normal(size=(n, 4))
    X = np.where(rng.random(Y.shape) < 0.2, np.nan, Y)
    X[0] = Y[0]
    model = estimator(temporal=temporal, random_state=0).fit(X)
    filled, std = model.complete(X, return_std=True)
    assert np.isfinite(filled).all()
    assert np.isfinite(std).all()
    assert (np.abs(filled - 3.0) < 6.0).all()
    if temporal:
        assert np.isfinite(np.array(model.forecast(3, level=0.9))).all()
