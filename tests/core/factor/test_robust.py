"""Outliers: entries are clipped, and dropped where that predicts held-out entries better."""

import numpy as np
import pytest

from omfb.core.blocks import sparse_with_holes
from omfb.core.conformal import binned
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.e_step import encode_rows
from omfb.core.factor.init import init
from omfb.core.factor.robust import (
    clip_entries,
    clip_limits,
    clip_rows,
    outlier_limit,
    update_outlier_policy,
    without_outliers,
)
from omfb.core.factor.state import evolve
from omfb.core.factor.step import step
from omfb.core.factor.whiten import whitened

from .making import config, learned, whiten

FORMS = pytest.mark.parametrize("form", [np.asarray, sparse_with_holes], ids=["dense", "sparse"])


@pytest.fixture
def state(rng):
    """Twelve stations that report one weather, and eight features of nothing but noise."""
    weather = rng.normal(size=(600, 1))
    X = np.hstack([weather + 0.3 * rng.normal(size=(600, 12)), rng.normal(size=(600, 8))])
    X[rng.random(X.shape) < 0.05] = np.nan
    return learned(X, FactorConfig(n_components=4))


# -- clipping -----------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("feature", [0, 15])
def test_a_single_spike_is_clipped_at_the_limit(state, feature, form):
    row = np.full((1, 20), 0.1)
    row[0, feature] = -1e4
    values = clip_rows(state, form(row)).entries.values
    assert values[feature] == pytest.approx(-clip_limits(state)[feature], rel=0.05)
    others = np.arange(20) != feature
    np.testing.assert_allclose(values[others], whiten(state, row)[0, others])


@FORMS
def test_a_storm_that_all_stations_report_is_not_clipped(state, form):
    row = np.full((1, 20), 0.1)
    row[0, :12] = 40.0
    expected = whiten(state, row)[0]
    assert (expected[:12] > clip_limits(state)[:12]).all()
    np.testing.assert_allclose(clip_rows(state, form(row)).entries.values, expected)


def test_a_storm_may_be_as_far_as_the_rest_of_the_row_predicts(state):
    """One station reports ten times what the others do: it is clipped near to what they say."""
    row = np.full((1, 20), 0.1)
    row[0, :12] = 40.0
    row[0, 3] = 400.0
    values = clip_rows(state, row).entries.values
    storm, spike = whiten(state, np.full((1, 20), 40.0))[0], whiten(state, row)[0]
    assert storm[3] < values[3] < 2.5 * storm[3] < spike[3]
    np.testing.assert_allclose(np.delete(values, 3), np.delete(spike, 3))


@FORMS
def test_two_spikes_in_a_row_do_not_support_each_other_where_outliers_are_dropped(rng, form):
    """The two best stations of six report the same wrong number: the others know of no storm."""
    noise = np.array([0.3, 0.3, 0.05, 0.05, 0.3, 0.3])
    state = learned(rng.normal(size=(600, 1)) + noise * rng.normal(size=(600, 6)), config(1))
    row = np.full((1, 6), 0.1)
    row[0, 2:4] = -1e4
    believed = clip_rows(state, form(row)).entries.values
    values = clip_rows(evolve(state, drop=True), form(row)).entries.values
    limits = clip_limits(state)[2:4]
    assert (-believed[2:4] > 1.5 * limits).all()
    np.testing.assert_allclose(-values[2:4], limits)
    np.testing.assert_array_equal(np.delete(values, [2, 3]), np.delete(believed, [2, 3]))


def test_spikes_of_the_head_that_stand_alone_do_not_decide_units(rng):
    """Up to a tenth of a column; heavy tails, which have no gap, are how the column is."""
    X = rng.normal(size=(400, 12))
    coded, heavy = X.copy(), X.copy()
    coded[rng.random(X.shape) < 0.05] = -999.0
    heavy[:, :6] = rng.standard_t(2, (400, 6))
    for table, alone in ((coded, True), (heavy, False), (X, False)):
        first = init(table, config(4))
        assert first.outliers.drop == alone
        deviations = (X if alone else table).std(axis=0, ddof=1)
        np.testing.assert_allclose(first.params.scale, deviations, rtol=0.1)


def test_a_feature_whose_spikes_stand_alone_says_little_beside_others_with_heavy_tails(rng):
    """They do not decide its unit, but nothing is dropped before held-out votes."""
    X = rng.normal(size=(400, 12))
    X[:, :6] = rng.standard_t(2, (400, 6))
    X[::80, 6] = -999.0
    first = init(X, config(4))
    assert first.params.scale[6] < 1.2
    assert not first.outliers.drop


def test_entries_within_the_limit_stay_to_the_last_bit(state, rng):
    rows = rng.normal(size=(50, 20))
    assert np.abs(whiten(state, rows)).max() < state.config.hyper.clip_limit
    np.testing.assert_array_equal(clip_rows(state, rows).values, whitened(state, rows).values)
    listed = whitened(state, rows).entries
    assert clip_entries(state, listed) is listed


def test_clipping_depends_on_no_other_row(state, rng):
    rows = rng.normal(size=(30, 20))
    rows[4, 2], rows[11, 17], rows[11, 5] = 1e3, -1e5, 1e4
    rows[20] = 60.0
    together = clip_rows(state, rows).values
    alone = np.vstack([clip_rows(state, row[None]).values for row in rows])
    np.testing.assert_allclose(together, alone, rtol=1e-9)


def test_limits_are_marginal_standard_deviations_from_the_mean(state):
    C = state.coding
    covariance = C[:, :-1] @ C[:, :-1].T + np.eye(20)
    expected = np.abs(C[:, -1]) + 12.0 * np.sqrt(np.diagonal(covariance))
    np.testing.assert_allclose(clip_limits(state), expected)


def test_a_column_of_zeros_that_begins_to_vary_spoils_no_other(rng):
    """Its noise is tiny at first, grows with each clipped entry, and is its own in the end."""
    z = rng.normal(size=(3000, 2))
    X = z @ rng.normal(size=(2, 10)) + 0.2 * rng.normal(size=(3000, 10))
    X[:1000, 0] = 0.0
    X[5, 0] = 0.01
    state = init(X[:1000], config(4))
    state = step(state, X[:1000])[0]
    before = state.params.noise_std
    first = clip_rows(state, X[1000:1001]).entries.values
    assert abs(first[0]) <= 1.01 * clip_limits(state)[0]
    assert abs(whiten(state, X[1000:1001])[0, 0]) > 100 * abs(first[0])
    state = step(state, X[1000:])[0]
    assert state.params.noise_std[0] > 100 * before[0]
    assert np.abs(X[2500:, 0]).max() < state.params.noise_std[0] * clip_limits(state)[0]
    assert (state.params.noise_std[1:] < 1.3 * before[1:]).all()


# -- dropping -----------------------------------------------------------------------------------


def with_votes(state, votes, *, heavy=True, drop=False, n_scored=200, **changes):
    sizes = np.full(100, 10.0 if heavy else 1.0)
    histogram = binned(sizes, np.ones(100))
    return evolve(
        state, votes=np.array(votes), histogram=histogram, n_scored=n_scored, drop=drop, **changes
    )


def test_votes_are_taken_where_tails_are_heavy(state):
    none = (0.0, 0.0, 0.0)
    assert update_outlier_policy(with_votes(state, none)).outliers.detect
    assert not update_outlier_policy(with_votes(state, none, heavy=False)).outliers.detect
    young = with_votes(state, none, n_scored=10, detect=False)
    assert update_outlier_policy(young) is young


def test_outliers_are_dropped_once_votes_for_it_are_sure(state):
    for votes, drop in (
        ((100.0, 50.0, 30.0), True),
        ((100.0, 5.0, 30.0), False),  # below two standard errors, √30 each
        ((1000.0, 20.0, 1.0), False),  # sure, but a mean vote of 0.02
    ):
        after = update_outlier_policy(with_votes(state, votes))
        assert after.outliers.drop == drop
        assert (outlier_limit(after) is None) != drop


def test_outliers_are_dropped_until_votes_against_it_are_sure(state):
    for votes, drop in (((100.0, -5.0, 30.0), True), ((100.0, -50.0, 30.0), False)):
        assert update_outlier_policy(with_votes(state, votes, drop=True)).outliers.drop == drop


def test_nothing_is_dropped_if_the_model_is_not_robust(state):
    given = FactorConfig(n_components=4, robust=False)
    after = update_outlier_policy(with_votes(state, (100.0, 50.0, 30.0), config=given))
    assert not after.outliers.drop
    assert not after.outliers.detect


def dropped_of(state, X):
    """The state after entries of X were dropped, and which they were."""
    rows = clip_rows(state, X)
    codes = encode_rows(state, rows, limit=outlier_limit(state))
    after, rest = without_outliers(state, rows, codes)
    return after, np.isnan(X) | (rest.seen if rest.seen is not None else np.ones(X.shape, bool))


def test_dropped_entries_are_counted_and_count_as_missing(state):
    dropping = evolve(state, drop=True)
    X = np.full((3, 20), 0.1)
    X[1, 7] = 30.0
    after, kept = dropped_of(dropping, X)
    assert np.argwhere(~kept).tolist() == [[1, 7]]
    assert after.outliers.n_dropped.tolist() == [0] * 7 + [1] + [0] * 12


@pytest.mark.parametrize("cut", [1, 4, 7, 12])
def test_a_run_of_outliers_is_a_change_of_level_however_rows_are_cut(state, cut):
    """After five consecutive outliers of a feature, the next are learned from."""
    state = evolve(state, drop=True)
    X = np.full((12, 20), 0.1)
    X[2:, 13] = 30.0
    kept = []
    for start in range(0, 12, cut):
        state, part = dropped_of(state, X[start : start + cut])
        kept.append(part)
    kept = np.vstack(kept)
    assert np.flatnonzero(~kept[:, 13]).tolist() == [2, 3, 4, 5, 6]
    assert state.outliers.n_dropped[13] == 5
    assert state.outliers.run_length[13] == 10
    assert np.delete(kept, 13, axis=1).all()


def test_an_ordinary_entry_ends_a_run(state):
    X = np.full((4, 20), 0.1)
    X[:3, 13] = 30.0
    after, _ = dropped_of(evolve(state, drop=True), X)
    assert after.outliers.run_length[13] == 0
    assert after.outliers.n_dropped[13] == 3
