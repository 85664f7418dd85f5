"""Features with few entries: no surer than these entries let anybody be."""

import numpy as np
import pytest

from omfb import OMFB, OMFBImputer
from omfb.core.model.rare import ENOUGH, unproven


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
    assert not unproven(OMFBImputer(random_state=0).fit(X).learner_.state).any()
    assert not unproven(OMFBImputer(random_state=0).fit(X[:20]).learner_.state).any()
    X[int(3 * ENOUGH) :, 3] = np.nan  # entries fade as rows come
    assert not unproven(OMFBImputer(random_state=0).fit(X).learner_.state).any()
    X[10:, 3] = np.nan
    assert unproven(OMFBImputer(random_state=0).fit(X).learner_.state)[3] > 0.0
    # With one noise for all, intervals are calibrated by entries of rare columns as well.
    assert not unproven(OMFB(random_state=0).fit(X).learner_.state).any()


@pytest.mark.parametrize("row", [3, 40])
def test_a_column_seen_once_has_its_own_level_though_others_share_theirs(rng, row):
    z = rng.standard_normal(60)
    like = [1e5 + 3e4 * z + 1e3 * rng.standard_normal(60) for _ in range(3)]
    X = np.c_[(40 + 10 * z).round(), 1e-6 * (1 + 0.3 * z), *like, np.full(60, np.nan)]
    X[row, 5] = 5.0
    filled = OMFBImputer(random_state=0).fit(X).complete(X)[:, 5]
    assert np.abs(filled - 5.0).max() < 5.0
