"""States that went on from one start, merged."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.evidence import MergeError
from omfb.core.factor.init import init
from omfb.core.factor.merge import merge
from omfb.core.factor.predict import predict
from omfb.core.factor.state import evolve
from omfb.core.factor.step import next_batch, step

from .making import assert_same, config, learned, table


@given(
    seed=st.integers(0, 99), cuts=st.sets(st.integers(1, 119), min_size=1, max_size=4),
    noise=st.sampled_from(["isotropic", "diagonal"]),
)  # fmt: skip
@settings(max_examples=25, deadline=None)
def test_parts_of_complete_rows_merge_into_what_all_rows_teach(seed, cuts, noise):
    """Within one batch, where nothing fades, statistics add up exactly."""
    X = table(seed, 220, 7)
    start = learned(X[:100], config(noise=noise))
    start = next_batch(evolve(start, update_left=0))
    start = evolve(start, batch_left=999, update_left=999, fade=0.0)
    bounds = [100, *(100 + cut for cut in sorted(cuts)), 220]
    parts = [step(start, X[a:b])[0] for a, b in zip(bounds[:-1], bounds[1:], strict=True)]
    together = step(start, X[100:])[0]
    together = next_batch(evolve(together, update_left=0))
    merged = merge(start, parts)
    if noise == "isotropic":  # nothing uses the residuals of single features there
        merged, together = (evolve(each, residual_sums=np.zeros(1)) for each in (merged, together))
    assert_same(merged, together, 1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_parts_that_had_m_steps_of_their_own_predict_like_all_rows(missing):
    X = table(3, 2400, 10, missing)
    start = learned(X[:400], config())
    bounds = range(400, 2401, 500)
    parts = [step(start, X[a : a + 500])[0] for a in bounds[:-1]]
    assert not np.array_equal(parts[0].params.basis_change, start.params.basis_change)
    merged, together = merge(start, parts), step(start, X[400:])[0]
    assert merged.n_seen == together.n_seen == 2400
    rows = table(3, 2400, 10)[-300:]
    shown = np.where(np.arange(10) % 3 == 0, np.nan, rows)
    size = rows.std(axis=0)
    errors = [
        np.sqrt(np.mean(((predict(state, shown).mean - rows) / size) ** 2))
        for state in (merged, together, start)
    ]
    assert errors[0] < 1.02 * errors[1]


def test_the_order_of_the_parts_does_not_matter():
    X = table(4, 900, 8, 0.2)
    start = learned(X[:300], config())
    parts = [step(start, X[a : a + 200])[0] for a in (300, 500, 700)]
    assert_same(merge(start, parts), merge(start, parts[::-1]), 1e-8)


def test_a_start_without_parts_is_the_start():
    start = learned(table(5, 200, 6), config())
    assert merge(start, [start, start]) is start


def test_new_features_get_their_unit_from_the_rows_of_all_parts(rng):
    X = rng.normal(size=(400, 5))
    X[:200, 4] = np.nan
    X[200:, 4] = 50.0 + 10.0 * X[200:, 4]
    start = evolve(learned(X[:200], config(2)), batch_left=999, update_left=999)
    assert not start.features.known[4]
    parts = [step(start, X[a : a + 100])[0] for a in (200, 300)]
    merged = merge(start, parts)
    assert merged.features.known[4]
    assert merged.params.center[4] == pytest.approx(X[200:, 4].mean(), rel=1e-10)
    assert merged.params.scale[4] == pytest.approx(X[200:, 4].std(ddof=1), rel=1e-10)


def test_features_that_parts_gave_a_unit_get_one_for_all(rng):
    X = rng.normal(size=(1000, 5))
    X[:200, 4] = np.nan
    X[200:, 4] = 50.0 + 10.0 * X[200:, 4]
    start = learned(X[:200], config(2))
    parts = [step(start, X[a : a + 400])[0] for a in (200, 600)]
    units = [part.params.scale[4] for part in parts]
    assert all(part.features.known[4] for part in parts)
    assert units[0] != units[1]
    merged = merge(start, parts)
    assert merged.features.known[4]
    assert min(units) < merged.params.scale[4] < max(units)
    assert merged.params.center[4] == pytest.approx(50.0, abs=3.0)


def test_facts_of_single_features_are_those_of_any_part(rng):
    X = rng.integers(0, 5, size=(400, 6)).astype(float)
    X[:, 5] = 7.0
    start = learned(X[:200], config(2))
    assert start.features.integer.all()
    assert start.features.constant.tolist() == [False] * 5 + [True]
    X[250, 0], X[350, 5] = 0.5, 8.0
    merged = merge(start, [step(start, X[a : a + 100])[0] for a in (200, 300)])
    assert merged.features.integer.tolist() == [False] + [True] * 5
    assert not merged.features.constant.any()


def test_states_that_do_not_fit_are_refused():
    X = table(6, 300, 6)
    forgetful = learned(X[:100], config(forget_factor=0.99))
    with pytest.raises(MergeError, match="forget_factor=0.99"):
        merge(forgetful, [step(forgetful, X[100:])[0]])
    start = learned(X[:100], config())
    with pytest.raises(MergeError):
        merge(start, [learned(X[100:], config())])  # from a start of its own
    with pytest.raises(MergeError):
        merge(step(start, X[100:200])[0], [start])  # older than the start
    assert merge(start, [step(start, X[100:])[0]]).n_seen == 300


def test_merged_states_learn_on():
    X = table(7, 600, 6, 0.2)
    start = init(X[:200], config())
    merged = merge(start, [step(start, X[:200])[0], step(start, X[200:400])[0]])
    after = step(merged, X[400:])[0]
    assert after.n_seen == 600
    assert np.isfinite(after.params.C).all()
