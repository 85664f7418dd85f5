"""Features unlike the others: rare or late, with spikes, of whole numbers, or hardly varying."""

import numpy as np
import pytest
import scipy.sparse

from omfb import OMFBImputer

from ...making import BOTH


def _table(rng, n=4000):
    T = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(n, 8))
    T[:, 0] += 100.0
    return T


@BOTH
def test_few_entries_far_from_all_others_are_believed(rng, estimator):
    """A column with its own level, of which the head holds fewer than ten entries."""
    T = _table(rng)
    X = T.copy()
    X[np.arange(len(X)) % 60 != 7, 0] = np.nan
    for model in (estimator(random_state=0).fit(X), estimator(random_state=0).partial_fit(X)):
        error = (model.complete(X) - T)[:, 0]
        assert abs(error.mean()) < 1.0
        assert np.sqrt(np.mean(error**2)) < 1.2 * T[:, 0].std()


@BOTH
def test_a_column_that_begins_late_is_learned_in_its_own_place(rng, estimator):
    T = _table(rng)
    X = T.copy()
    X[:2000, 0] = np.nan
    model = estimator(random_state=0)
    for start in range(0, 4000, 100):
        model.partial_fit(X[start : start + 100])
    assert abs(model.mean_[0] - 100.0) < 0.5
    hidden = T[3000:].copy()
    hidden[:, 0] = np.nan
    assert np.sqrt(np.mean((model.complete(hidden) - T[3000:])[:, 0] ** 2)) < 0.3


def test_outliers_apart_from_each_other_are_none_however_rows_come(rng):
    T = rng.normal(size=(2000, 2)) @ rng.normal(size=(2, 8)) + 0.2 * rng.normal(size=(2000, 8))
    X = T.copy()
    X[rng.random(X.shape) < 0.1] = np.nan
    X[20::120, 0] = -999.0
    whole, single = OMFBImputer(random_state=0).partial_fit(X), OMFBImputer(random_state=0)
    for row in X:
        single.partial_fit(row[None])
    assert whole.outliers_[0] > 10
    assert single.outliers_[0] == whole.outliers_[0]
    assert np.allclose(single.noise_variance_, whole.noise_variance_)


@pytest.mark.parametrize("sparse", [False, True])
def test_fractions_that_come_late_are_not_rounded(rng, sparse):
    z = rng.normal(size=(2000, 1))
    T = np.hstack([z, 2 * z, 0.3 + z / 5, np.round(5 * z)]) + 0.01 * rng.normal(size=(2000, 4))
    T[:, 3] = np.round(T[:, 3])
    X = T.copy()
    X[:1000, 2] = np.nan
    rows = X
    if sparse:
        at, which = np.nonzero(~np.isnan(X))
        rows = scipy.sparse.csr_array((X[at, which], (at, which)), shape=X.shape)
    model = OMFBImputer(random_state=0, integers=True).partial_fit(rows)
    assert model.learner_.state.whole.tolist() == [False, False, False, True]
    hidden = T[1500:1600].copy()
    hidden[:, 2:] = np.nan
    filled = model.complete(hidden)
    assert np.sqrt(np.mean((filled - T[1500:1600])[:, 2] ** 2)) < 0.1
    assert np.array_equal(filled[:, 3], np.round(filled[:, 3]))


def test_a_spread_far_below_the_mean_is_no_constant(rng):
    z = rng.normal(size=(2000, 1))
    T = np.hstack([1e9 + 0.01 * z, z, 2 * z]) + [1e-4, 0.1, 0.1] * rng.normal(size=(2000, 3))
    X = T.copy()
    X[rng.random(X.shape) < 0.1] = np.nan
    for model in (OMFBImputer(random_state=0).fit(X), OMFBImputer(random_state=0).partial_fit(X)):
        low, high = model.interval(X)
        missing = np.isnan(X[:, 0])
        assert np.abs(model.complete(X) - T)[missing, 0].max() < 0.05
        assert np.median((high - low)[missing, 0]) < 0.01
