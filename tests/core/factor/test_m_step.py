"""What is found from the data at the end of a period and of a fit."""

import numpy as np
import pytest

from omfb import OMFBImputer, OnlineFactorAnalysis


def low_rank(m, missing, n=6000):
    rng = np.random.default_rng(m)
    Y = rng.normal(size=(n, 5)) @ rng.normal(size=(5, m)) + 0.3 * rng.normal(size=(n, m))
    Y[rng.random(Y.shape) < missing] = np.nan
    return Y


@pytest.mark.parametrize(("m", "missing"), [(60, 0.1), (60, 0.5), (60, 0.8), (100, 0.9), (12, 0.3)])
def test_the_noise_is_found_however_much_is_missing(m, missing):
    """Also where rows have 10 entries and 5 components: codes take most of the residuals then."""
    model = OMFBImputer(random_state=0, max_iter=1).fit(low_rank(m, missing))
    assert 0.27 < np.sqrt(np.median(model.noise_variance_)) < 0.36


def test_components_that_follow_the_noise_are_spared():
    model = OMFBImputer(random_state=0).fit(low_rank(200, 0.1, 2000))
    assert model.n_components_ == 5
    assert np.count_nonzero(np.any(np.abs(model.components_) > 1e-9, axis=1)) == 5


@pytest.mark.parametrize("estimator", [OnlineFactorAnalysis, OMFBImputer])
def test_intervals_are_as_wide_beside_many_constant_columns(estimator):
    rng = np.random.default_rng(5)
    Y = rng.normal(size=(1500, 2)) @ rng.normal(size=(2, 20)) + 0.5 * rng.normal(size=(1500, 20))
    Y = np.hstack([Y, np.full((1500, 40), 7.0)])
    hidden = (rng.random(Y.shape) < 0.15) & (np.arange(60) < 20)
    X = np.where(hidden, np.nan, Y)
    low, high = estimator(random_state=0).fit(X).interval(X)
    assert 0.84 < ((low <= Y) & (high >= Y))[hidden].mean() < 0.95


@pytest.mark.parametrize("estimator", [OnlineFactorAnalysis, OMFBImputer])
@pytest.mark.parametrize("seed", [13, 21, 34])
def test_constant_columns_do_not_make_the_noise_of_others_seem_small(estimator, seed):
    """As many components as columns that vary would explain all of them."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 10)) + 0.3 * rng.normal(size=(300, 10))
    hidden = rng.random(Y.shape) < 0.15
    Y[:, 3], Y[:, 5] = 7.0, 0.0
    hidden[:, [3, 5]] = False
    X, varying = np.where(hidden, np.nan, Y), np.delete(np.arange(10), [3, 5])

    def judged(X, Y, hidden):
        model = estimator(random_state=0).fit(X)
        low, high = model.interval(X)
        held = ((low <= Y) & (high >= Y))[hidden].mean()
        error = np.sqrt(np.mean((model.complete(X) - Y)[hidden] ** 2))
        return error, held, (high - low)[hidden].mean()

    error, held, width = judged(X, Y, hidden)
    others = judged(X[:, varying], Y[:, varying], hidden[:, varying])
    assert error < 1.05 * others[0]
    assert 0.82 < held < 0.98
    assert width < 1.25 * others[2]
