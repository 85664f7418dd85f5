"""Features with few entries: no surer than these entries let anybody be."""

import numpy as np
import pytest

from omfb import OMFBImputer, OnlineFactorAnalysis
from omfb.core.factor.small_sample import ENOUGH, doubted, unproven


def table(rng, n, k):
    """Three columns that explain each other, and one of noise that was observed k times."""
    z = rng.standard_normal(n)
    noise = rng.standard_normal((n, 2)) * [1e3, 0.01]
    X = np.c_[40 + 10 * z, 1e5 + 3e4 * z + noise[:, 0], 1 + 0.3 * z + noise[:, 1]]
    truth = 50 + 20 * rng.standard_normal(n)
    rare = np.full(n, np.nan)
    seen = rng.permutation(n)[:k]
    rare[seen] = truth[seen]
    return np.c_[X, rare], truth


@pytest.mark.parametrize("n", [60, 200])
@pytest.mark.parametrize("k", [1, 3, 5, 10])
def test_intervals_of_a_rare_column_hold(n, k):
    held = []
    for seed in range(8):
        X, truth = table(np.random.default_rng([seed, n, k]), n, k)
        low, high = (b[:, 3] for b in OMFBImputer(random_state=0).fit(X).interval(X, level=0.9))
        hidden = np.isnan(X[:, 3])
        held.append(np.mean((low[hidden] <= truth[hidden]) & (truth[hidden] <= high[hidden])))
    assert np.mean(held) >= 0.75  # 0.06 to 0.74 without it


def test_samples_of_a_rare_column_vary_as_its_entries_do(rng):
    X, _ = table(rng, 200, 5)
    drawn = np.array(list(OMFBImputer(random_state=0).fit(X).sample(X[:20], 50)))
    missing = np.isnan(X[:20, 3])
    assert drawn[:, missing, 3].std() > 0.5 * np.nanstd(X[:, 3])


def test_columns_with_enough_entries_or_as_many_as_others_are_left_alone(rng):
    X, truth = table(rng, 400, 3)
    X[:, 3] = truth
    X[rng.random(X.shape) < 0.2] = np.nan
    state = OMFBImputer(random_state=0).fit(X).learner_.state

    def extra(*n):
        return unproven(state, np.array(n))

    assert not extra(400, 320, 320, ENOUGH).any()
    assert not extra(20, 20, 20, 16).any()
    few = extra(400, 320, 320, ENOUGH - 20)
    assert 0.0 < few[3] < extra(400, 320, 320, 3)[3]
    assert not few[:3].any()
    # With one noise for all, intervals are calibrated by entries of rare columns as well.
    shared = OnlineFactorAnalysis(random_state=0).fit(X).learner_.state
    assert not unproven(shared, np.array([400, 320, 320, 3])).any()


def test_doubt_changes_no_filled_value_but_how_sure_it_is(rng):
    X, _ = table(rng, 200, 5)
    state = OMFBImputer(random_state=0).fit(X).learner_.state
    more = doubted(state, X)
    assert more.params.noise_std[3] > state.params.noise_std[3]
    assert np.array_equal(more.params.noise_std[:3], state.params.noise_std[:3])
    np.testing.assert_allclose(more.C * more.params.noise_std[:, None], state.C * state.params.noise_std[:, None])
    np.testing.assert_allclose(more.batch.G, more.C.T @ more.C)
    assert doubted(state, np.nan_to_num(X)) is state


def test_a_column_that_fell_silent_in_a_stream_keeps_its_width(rng):
    """It had many entries, though they have faded: its intervals are not those of a rare one."""
    T = rng.standard_normal((4000, 3)) @ rng.standard_normal((3, 8))
    T += 0.2 * rng.standard_normal(T.shape)
    X = T.copy()
    X[500:, 0] = np.nan
    for forget_factor in (1.0, 0.999):
        model = OMFBImputer(forget_factor=forget_factor, random_state=0)
        for start in range(0, 4000, 500):
            model.partial_fit(X[start : start + 500])
        low, high = (bound[:, 0] for bound in model.interval(X[-100:], level=0.9))
        assert np.median(high - low) < 2.0 * T[:, 0].std()


@pytest.mark.parametrize("row", [3, 40])
def test_a_column_seen_once_has_its_own_level_though_others_share_theirs(rng, row):
    z = rng.standard_normal(60)
    like = [1e5 + 3e4 * z + 1e3 * rng.standard_normal(60) for _ in range(3)]
    X = np.c_[(40 + 10 * z).round(), 1e-6 * (1 + 0.3 * z), *like, np.full(60, np.nan)]
    X[row, 5] = 5.0
    filled = OMFBImputer(random_state=0).fit(X).complete(X)[:, 5]
    assert np.abs(filled - 5.0).max() < 5.0
