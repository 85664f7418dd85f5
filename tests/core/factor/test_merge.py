"""States that went on from one start, merged."""

from functools import reduce
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb.core.evidence import Evidence, MergeError
from omfb.core.factor import merge as merging
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.init import init
from omfb.core.factor.merge import gather, merge, merged
from omfb.core.factor.predict import predict
from omfb.core.factor.state import Drift, evolve
from omfb.core.factor.step import next_batch, step

from .making import assert_identical, assert_same, config, learned, table, whiten


def mean_weight(w, n, f):
    """The average of ((w + t) / (w + n))ᶠ over t from 0 to n."""
    return ((w + n) ** (f + 1) - w ** (f + 1)) / ((f + 1) * n * (w + n) ** f)


def explained(state):
    C = state.params.C[:, :-1] * state.params.noise_std[:, None]
    return C @ C.T


def mean(state):
    return state.params.center + state.params.noise_std * state.params.C[:, -1]


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max())


@given(
    seed=st.integers(0, 99),
    parts=st.integers(1, 4),
    noise=st.sampled_from(["isotropic", "diagonal"]),
)
@settings(max_examples=15, deadline=None)
def test_rows_of_parts_fade_alike(seed, parts, noise):
    """Rows of all parts have the average weight that rows have in one stream of as many."""
    X = table(seed, 800, 8)
    start = learned(X[:500], config(noise=noise))
    start = evolve(next_batch(evolve(start, update_left=0)), batch_left=999, update_left=999)
    rows = [X[500 + 50 * at : 520 + 60 * at] for at in range(parts)]
    steps = [step(start, each) for each in rows]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "next_batch", lambda state, shrink: state)  # before the M-step
        together = merge(start, [part for part, _, _ in steps])
    w, f = start.n_seen + start.schedule.head_start, start.schedule.fade
    n = sum(map(len, rows))
    left = np.prod(start.keep(n))
    S, CS = left * start.stats.S, left * start.params.C @ start.stats.S
    n_rows = left * start.stats.n_rows
    for each, (_, codes, _) in zip(rows, steps, strict=True):
        after = np.append(np.cumprod(start.keep(len(each))[:0:-1])[::-1], 1.0)
        after *= mean_weight(w, n, f) / mean_weight(w, len(each), f)
        codes = np.hstack([codes, np.ones((len(each), 1))])
        S, CS = S + (codes.T * after) @ codes, CS + (whiten(start, each).T * after) @ codes
        n_rows += after.sum()
    # The exponent is read off what was kept, which differs from (w / (w + n))ᶠ by O(1 / w). The
    # noise, which is that of the start here, is the unit of C.
    close(together.stats.S, S, 1e-3)
    close(together.params.C @ together.stats.S, CS, 1e-3)
    assert together.stats.n_rows == pytest.approx(n_rows, rel=1e-3)
    assert together.n_seen == start.n_seen + n


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_one_part_is_merged_to_itself(missing):
    X = table(0, 3000, 12, missing)
    start = learned(X[:600], FactorConfig(n_components=4))
    part = step(start, X[600:])[0]
    assert not np.array_equal(part.params.basis_change, start.params.basis_change)
    found, expected = merge(start, [part]), next_batch(evolve(part, update_left=0))
    # The basis of the codes depends on the noise, which differs a little; C xᵀ hardly does.
    close(explained(found), explained(expected), 1e-4)
    assert np.abs((mean(found) - mean(expected)) / start.params.scale).max() < 2e-4
    # The share of a residual that codes absorb is estimated under the prior of the start.
    np.testing.assert_allclose(found.params.noise_std, expected.params.noise_std, rtol=1e-2)
    assert found.holdout.n_scored == expected.holdout.n_scored > 0
    assert found.schedule.n_entries == expected.schedule.n_entries
    for name in ("n_rows", "start_weight", "counts"):
        one, other = getattr(found.stats, name), getattr(expected.stats, name)
        np.testing.assert_allclose(one, other, rtol=1e-9, err_msg=name)
    np.testing.assert_allclose(found.holdout.sse[0], expected.holdout.sse[0], rtol=1e-9)


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_merged_parts_are_better_than_each_and_near_to_one_stream(missing):
    X, truth = (table(2, 6000, 30, share, rank=5) for share in (missing, 0.0))
    start = learned(X[:1000], FactorConfig(n_components=5))
    parts = [step(start, X[at : at + 1250])[0] for at in range(1000, 6000, 1250)]
    size = truth.std(axis=0)

    def error(state):
        basis = np.linalg.qr(state.params.C[:, :-1] * (state.params.noise_std / size)[:, None])[0]
        away = (truth - mean(state)) / size
        return np.linalg.norm(away - away @ basis @ basis.T)

    together, stream = error(merge(start, parts)), error(step(start, X[1000:])[0])
    assert together < min(map(error, parts))
    assert together < 1.001 * stream


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
    parts = [step(start, X[a:b])[0] for a, b in pairwise(bounds)]
    together = step(start, X[100:])[0]
    together = next_batch(evolve(together, update_left=0))
    found = merge(start, parts)
    if noise == "isotropic":  # nothing uses the residuals of single features there
        found, together = (evolve(each, residual_sums=np.zeros(1)) for each in (found, together))
    # The last rows of parts are not those of the stream.
    found, together = (
        evolve(each, sse=each.holdout.sse[0], drift=Drift()) for each in (found, together)
    )
    assert_same(found, together, 1e-6)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_parts_that_had_m_steps_of_their_own_predict_like_all_rows(missing):
    X = table(3, 2400, 10, missing)
    start = learned(X[:400], config())
    bounds = range(400, 2401, 500)
    parts = [step(start, X[a : a + 500])[0] for a in bounds[:-1]]
    assert not np.array_equal(parts[0].params.basis_change, start.params.basis_change)
    found, together = merge(start, parts), step(start, X[400:])[0]
    assert found.n_seen == together.n_seen == 2400
    rows = table(3, 2400, 10)[-300:]
    shown = np.where(np.arange(10) % 3 == 0, np.nan, rows)
    size = rows.std(axis=0)
    errors = [
        np.sqrt(np.mean(((predict(state, shown).mean - rows) / size) ** 2))
        for state in (found, together)
    ]
    assert errors[0] < 1.02 * errors[1]


def test_neither_order_nor_the_shape_of_the_tree_matters_beyond_rounding():
    X = table(1, 2000, 10, 0.2)
    start = learned(X[:800], FactorConfig(n_components=3))
    a, b, c, d = (gather(start, step(start, X[at : at + 300])[0]) for at in range(800, 2000, 300))

    def numbers(evidence):
        return np.concatenate([np.ravel(evidence.weighted[k]) for k in sorted(evidence.weighted)])

    line, tree = a.plus(b).plus(c).plus(d), a.plus(b).plus(c.plus(d))
    close(numbers(line), numbers(tree), 1e-13)
    close(numbers(reduce(Evidence.plus, [d, b, a, c])), numbers(tree), 1e-13)
    assert_identical(merged(start, tree), merged(start, tree))


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
    found = merge(start, parts)
    assert found.features.known[4]
    assert found.params.center[4] == pytest.approx(X[200:, 4].mean(), rel=1e-10)
    assert found.params.scale[4] == pytest.approx(X[200:, 4].std(ddof=1), rel=1e-10)


def test_features_that_parts_gave_a_unit_get_one_for_all(rng):
    X = rng.normal(size=(1000, 5))
    X[:200, 4] = np.nan
    X[200:, 4] = 50.0 + 10.0 * X[200:, 4]
    start = learned(X[:200], config(2))
    parts = [step(start, X[a : a + 400])[0] for a in (200, 600)]
    units = [part.params.scale[4] for part in parts]
    assert all(part.features.known[4] for part in parts)
    assert units[0] != units[1]
    found = merge(start, parts)
    assert found.features.known[4]
    assert min(units) < found.params.scale[4] < max(units)
    assert found.params.center[4] == pytest.approx(50.0, abs=3.0)


def test_facts_of_single_features_are_those_of_any_part(rng):
    X = rng.integers(0, 5, size=(400, 6)).astype(float)
    X[:, 5] = 7.0
    start = learned(X[:200], config(2))
    assert start.features.integer.all()
    assert start.features.constant.tolist() == [False] * 5 + [True]
    X[250, 0], X[350, 5] = 0.5, 8.0
    found = merge(start, [step(start, X[a : a + 100])[0] for a in (200, 300)])
    assert found.features.integer.tolist() == [False] + [True] * 5
    assert not found.features.constant.any()


def test_states_without_a_common_start_are_refused():
    X = table(3, 1000, 6)
    start = learned(X, config(2))
    part = step(start, X)[0]
    other = step(learned(X[500:], config(2)), X)[0]
    older = evolve(part, n_seen=7)
    for wrong in (other, evolve(part, seed=5), older, evolve(part, config=config(1))):
        with pytest.raises(MergeError, match="no common start"):
            merge(start, [wrong])
    with pytest.raises(MergeError, match="nothing to merge"):
        merge(start, [])
    forgets = config(2, forget_factor=0.99)
    with pytest.raises(MergeError, match=r"forget_factor=0\.99"):
        merge(evolve(start, config=forgets), [evolve(part, config=forgets)])
    assert merge(start, [part]).n_seen == 2000


def test_merged_states_learn_on():
    X = table(7, 600, 6, 0.2)
    start = init(X[:200], config())
    found = merge(start, [step(start, X[:200])[0], step(start, X[200:400])[0]])
    after = step(found, X[400:])[0]
    assert after.n_seen == 600
    assert np.isfinite(after.params.C).all()
