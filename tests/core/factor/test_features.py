"""Features unlike the others: new, constant, of integers, with few entries or hardly varying."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb import OMFBImputer, OnlineFactorAnalysis
from omfb.core.blocks import sparse_with_holes
from omfb.core.factor.check import check_state
from omfb.core.factor.features import admit_features, revert_features, set_aside
from omfb.core.factor.init import init
from omfb.core.factor.state import evolve
from omfb.core.factor.step import next_batch, step

from .making import assert_same, config, learned

BOTH = pytest.mark.parametrize("estimator", [OnlineFactorAnalysis, OMFBImputer])
FORMS = pytest.mark.parametrize("form", [np.asarray, sparse_with_holes], ids=["dense", "sparse"])


def _table(rng, n=4000):
    T = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 8)) + 0.1 * rng.normal(size=(n, 8))
    T[:, 0] += 100.0
    return T


@BOTH
def test_few_entries_far_from_all_others_keep_their_level(rng, estimator):
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


def test_isolated_outliers_are_dropped_however_rows_come(rng):
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


@FORMS
def test_fractions_that_come_late_are_not_rounded(rng, form):
    z = rng.normal(size=(2000, 1))
    T = np.hstack([z, 2 * z, 0.3 + z / 5, np.round(5 * z)]) + 0.01 * rng.normal(size=(2000, 4))
    T[:, 3] = np.round(T[:, 3])
    X = T.copy()
    X[:1000, 2] = np.nan
    model = OMFBImputer(random_state=0, integers=True).partial_fit(form(X))
    assert model.learner_.state.features.integer.tolist() == [False, False, False, True]
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


# -- new features -------------------------------------------------------------------------------


@pytest.fixture
def state(rng):
    """A state that has never seen the last of five features, in the middle of a batch."""
    X = rng.normal(size=(200, 5))
    X[:, 4] = np.nan
    return evolve(learned(X, config(2)), batch_left=999, update_left=999)


@FORMS
def test_a_new_feature_counts_as_missing_until_it_has_a_unit(state, rng, form):
    rows = rng.normal(size=(20, 5))
    without = rows.copy()
    without[:, 4] = np.nan
    with_it, codes, _ = step(state, form(rows))
    other, same, _ = step(state, form(without))
    np.testing.assert_allclose(codes, same, rtol=1e-10)
    assert_same(with_it.stats, other.stats)
    assert not with_it.features.known[4]
    count, mean, squares = with_it.features.pending_moments[:, 4]
    assert count == 20
    assert mean == pytest.approx(rows[:, 4].mean())
    assert squares == pytest.approx(20 * rows[:, 4].var())
    assert not with_it.features.pending_moments[:, :4].any()


@given(st.lists(st.integers(0, 40), max_size=4), st.integers(0, 99))
@settings(max_examples=25, deadline=None)
def test_moments_of_a_new_feature_do_not_depend_on_the_cut(cuts, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    X[:, 2] = np.nan
    state = init(X, config(1))
    rows = 1e3 + rng.normal(size=(40, 3))
    rows[rng.random(rows.shape) < 0.4] = np.nan
    at_once = set_aside(state, rows)[0].features.pending_moments
    for first, last in zip([0, *sorted(cuts)], [*sorted(cuts), 40], strict=True):
        state = set_aside(state, rows[first:last])[0]
    np.testing.assert_allclose(state.features.pending_moments, at_once, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("n", [4, 5])
def test_five_entries_give_a_new_feature_its_mean_and_unit(state, rng, n):
    values = 100.0 + 7.0 * rng.normal(size=n)
    rows = np.full((n, 5), np.nan)
    rows[:, 4] = values
    after = admit_features(set_aside(state, rows)[0])
    assert after.features.known[4] == (n >= 5)
    if n < 5:
        assert after.params.center[4] == state.params.center[4]
        return
    assert after.params.center[4] == pytest.approx(values.mean())
    assert after.params.scale[4] == pytest.approx(values.std(ddof=1))
    assert after.params.noise_std[4] == after.params.scale[4]
    assert not after.params.C[4].any()
    assert after.stats.counts[4] == 0.0
    np.testing.assert_array_equal(after.params.C[:4], state.params.C[:4])


def test_a_new_feature_that_does_not_vary_has_its_size_for_a_unit(state):
    rows = np.full((6, 5), np.nan)
    rows[:, 4] = 30.0
    after = admit_features(set_aside(state, rows)[0])
    assert after.params.scale[4] == 30.0
    assert after.params.center[4] == 30.0


def test_without_a_center_and_scale_features_have_the_units_of_the_data(rng):
    X = rng.normal(size=(200, 4))
    X[:, 3] = np.nan
    state = init(X, config(2, center=False, scale=False))
    assert state.features.known.all()
    assert np.ptp(state.params.scale) == 0.0


def test_a_part_without_its_new_features_has_the_start_in_their_place(state, rng):
    rows = rng.normal(size=(300, 5))
    part = step(evolve(state, batch_left=64, update_left=64), rows)[0]
    assert part.features.known[4]
    before = revert_features(part, state)
    assert not before.features.known[4]
    for name in ("center", "scale", "noise_std"):
        found, mine, start = (getattr(each.params, name) for each in (before, part, state))
        assert found[4] == start[4]
        np.testing.assert_array_equal(found[:4], mine[:4])
    left = part.stats.start_weight / state.stats.start_weight
    assert before.stats.counts[4] == pytest.approx(left * state.stats.counts[4])
    assert revert_features(part, part) is part


# -- constant features --------------------------------------------------------------------------


@FORMS
def test_features_are_constant_until_they_vary(form, rng):
    X = rng.normal(size=(600, 6)) + 3.0
    X[:, 1], X[:, 4] = 2.0, 5.0
    X[500:, 4] = 5.5
    X[rng.random(X.shape) < 0.1] = np.nan
    rows = form(X)
    state = init(rows[:400], config(None))
    assert np.flatnonzero(state.features.constant).tolist() == [1, 4]
    assert state.features.constant_value[[1, 4]].tolist() == [2.0, 5.0]
    state = step(state, rows[:500])[0]
    assert np.flatnonzero(state.features.constant).tolist() == [1, 4]
    state = next_batch(step(state, rows[500:])[0])
    assert np.flatnonzero(state.features.constant).tolist() == [1]


def test_no_feature_is_constant_where_none_varies_or_few_rows_are_known(rng):
    nothing_varies = np.full((20, 3), 7.0)
    nothing_varies[:, 1] = np.nan
    few = rng.normal(size=(8, 3))
    few[:, 1] = 2.0
    for rows in (nothing_varies, few):
        assert not init(rows, config(1)).features.constant.any()


def test_constant_features_do_not_change_the_noise_of_the_others(rng):
    """Counted among the degrees of freedom, they would halve it."""
    X = rng.normal(size=(1000, 2)) @ rng.normal(size=(2, 8)) + 0.5 * rng.normal(size=(1000, 8))
    beside = np.hstack([X, np.full((1000, 8), 7.0)])
    alone, together = (learned(rows, config(2, noise="isotropic")).params for rows in (X, beside))
    np.testing.assert_allclose(together.noise_std[:8], alone.noise_std, rtol=0.1)


# -- integer features ---------------------------------------------------------------------------


@FORMS
def test_features_hold_integers_until_one_fraction_comes(form, rng):
    X = rng.integers(0, 9, size=(300, 4)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    X[20, 1] = 0.5  # not among the first eight rows
    state = init(form(X), config(2))
    assert state.features.integer.tolist() == [True, False, True, True]
    X[100, 3] = 2.25
    X[200, 1] = 3.0
    state = step(state, form(X))[0]
    assert state.features.integer.tolist() == [True, False, True, False]


@pytest.mark.parametrize("value", [1e-9, 1e-200, 5e-324])
def test_one_entry_near_zero_does_not_decide_the_first_dictionary(value):
    rng = np.random.default_rng(0)
    X = 3.0 + rng.normal(size=(250, 300))
    X[rng.random(X.shape) < 0.98] = np.nan
    X[:, 3] = np.nan
    X[10, 3] = value
    state = init(X, config(2))
    check_state(state)
    assert np.abs(state.params.C).max() < 100.0
