"""What parts of a start have learned adds up as the mathematics says: the factor model."""

from dataclasses import fields, replace
from functools import reduce

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from omfb.core.factor.winsorize import believed

from omfb.core.evidence import Evidence, MergeError
from omfb.core.factor import holdout as hide
from omfb.core.factor import merge as of_model
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.init import start as first_model
from omfb.core.factor.step import learn, next_batch


def table(seed, n, m, missing=0.0, rank=3):
    rng = np.random.default_rng(seed)
    X = 2 + rng.standard_normal((n, rank)) @ rng.standard_normal((rank, m))
    X += 0.3 * rng.standard_normal((n, m))
    X[rng.random((n, m)) < missing] = np.nan
    return X


def mean_weight(w, n, f):
    """The average of ((w + t) / (w + n))ᶠ over t from 0 to n."""
    return ((w + n) ** (f + 1) - w ** (f + 1)) / ((f + 1) * n * (w + n) ** f)


def explained(model):
    C = model.C[:, :-1] * model.noise[:, None]
    return C @ C.T


def mean(model):
    return model.center + model.noise * model.C[:, -1]


def close(a, b, tolerance=1e-9):
    np.testing.assert_allclose(a, b, rtol=0, atol=tolerance * np.abs(b).max())


@given(
    seed=st.integers(0, 99),
    parts=st.integers(1, 4),
    noise=st.sampled_from(["isotropic", "diagonal"]),
)
@settings(max_examples=15, deadline=None)
def test_models_add_up(seed, parts, noise):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hide, "ONE_IN", 2**63)
        patch.setattr(of_model, "next_batch", lambda model: model)  # before it is revised
        X = table(seed, 500, 8)
        given_ = FactorConfig(n_components=3, noise=noise)
        start = next_batch(replace(learn(first_model(X, given_, 0), X)[0], period_left=0))
        lanes = [table(seed + at + 1, 20 + 10 * at, 8) for at in range(parts)]
        steps = [learn(start, rows) for rows in lanes]
        merged = of_model.merge(start, [part for part, _, _ in steps])
    w, f = start.n_seen + start.head_start, start.fade
    n = sum(len(rows) for rows in lanes)
    left = np.prod(start.keep(n))
    S, CS = left * start.S, left * start.C @ start.S
    n_rows = left * start.n_rows
    for rows, (_, X, _) in zip(lanes, steps, strict=True):
        after = np.append(np.cumprod(start.keep(len(rows))[:0:-1])[::-1], 1.0)
        after *= mean_weight(w, n, f) / mean_weight(w, len(rows), f)
        X = np.hstack([X, np.ones((len(rows), 1))])
        Y = believed(start, rows).values  # rows of another table: some are held back
        S, CS = S + (X.T * after) @ X, CS + (Y.T * after) @ X
        n_rows += after.sum()
    # The exponent is read off what was kept, which differs from ((w / (w + n)) ** f by O(1 / w).
    close(merged.S, S, 1e-3)
    close(merged.C @ merged.S, CS, 1e-3)
    assert merged.n_rows == pytest.approx(n_rows, rel=1e-3)
    assert merged.n_seen == start.n_seen + n


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_one_part_is_merged_to_itself(missing):
    X = table(0, 3000, 12, missing)
    start = learn(first_model(X, FactorConfig(n_components=4), 0), X[:600])[0]
    part = learn(start, X[600:])[0]
    assert not np.array_equal(part.turn, start.turn)  # which was revised on its way
    merged = of_model.merge(start, [part])
    expected = next_batch(replace(part, period_left=0))
    # The basis of codes is found in units of the noise, which differ; what C explains hardly does.
    close(explained(merged), explained(expected), 1e-4)
    close(mean(merged), mean(expected), 1e-5)
    # What codes take of a residual is judged by a C under the start's prior, not the part's.
    close(merged.noise, expected.noise, 1e-2)
    for name in ("n_rows", "kept", "n_seen", "n_entries", "checked"):
        assert getattr(merged, name) == pytest.approx(getattr(expected, name), rel=1e-9), name
    np.testing.assert_allclose(merged.counts, expected.counts, rtol=1e-9)
    np.testing.assert_allclose(merged.judged, expected.judged, rtol=1e-9)


def evidence(a):
    return np.concatenate([np.ravel(a.weighted[name]) for name in sorted(a.weighted)])


def test_neither_order_nor_the_shape_of_the_tree_matters_beyond_rounding():
    X = table(1, 2000, 10, 0.2)
    start = learn(first_model(X, FactorConfig(n_components=3), 0), X[:800])[0]
    parts = [learn(start, X[at : at + 300])[0] for at in range(800, 2000, 300)]
    a, b, c, d = (of_model.gather(start, part) for part in parts)
    line, tree = a.plus(b).plus(c).plus(d), a.plus(b).plus(c.plus(d))
    close(evidence(line), evidence(tree), 1e-13)
    close(evidence(reduce(Evidence.plus, [d, b, a, c])), evidence(tree), 1e-13)
    once, again = (of_model.merged(start, tree) for _ in range(2))
    for field in fields(once):
        one, other = getattr(once, field.name), getattr(again, field.name)
        assert np.array_equal(one, other), field.name


@pytest.mark.parametrize("missing", [0.0, 0.5])
def test_merged_parts_are_better_than_each_and_near_to_one_stream(missing):
    X = table(2, 6000, 30, missing, rank=5)
    truth = table(2, 6000, 30, 0.0, rank=5)
    given_ = FactorConfig(n_components=5)
    start = learn(first_model(X, given_, 0), X[:1000])[0]
    parts = [learn(start, X[at : at + 1250])[0] for at in range(1000, 6000, 1250)]

    def error(model):
        basis = np.linalg.qr(model.C[:, :-1] * model.noise[:, None])[0]
        away = truth - mean(model)
        return np.linalg.norm(away - away @ basis @ basis.T)

    merged, stream = error(of_model.merge(start, parts)), error(learn(start, X[1000:])[0])
    assert merged < min(error(part) for part in parts)
    assert merged < 1.001 * stream


def test_a_feature_that_varied_in_one_part_varies():
    X = table(0, 900, 6)
    X[:, [1, 3]] = 4.0
    X[700, 3] = 5.0
    start = learn(first_model(X[:400], FactorConfig(), 0), X[:400])[0]
    parts = [learn(start, X[at : at + 250])[0] for at in (400, 650)]
    assert np.flatnonzero(start.constant).tolist() == [1, 3]
    assert np.flatnonzero(of_model.merge(start, parts).constant).tolist() == [1]


def test_what_shares_no_start_is_refused():
    X = table(3, 1000, 6)
    start = learn(first_model(X, FactorConfig(n_components=2), 0), X)[0]
    part = learn(start, X)[0]
    other = learn(learn(first_model(X[500:], FactorConfig(n_components=2), 0), X)[0], X)[0]
    for wrong in (other, replace(part, seed=5), replace(part, n_seen=7)):
        with pytest.raises(MergeError, match="no common start"):
            of_model.merge(start, [wrong])
    with pytest.raises(MergeError, match="nothing to merge"):
        of_model.merge(start, [])
    forgets = FactorConfig(n_components=2, forget_factor=0.99)
    with pytest.raises(MergeError, match=r"forget_factor=0\.99"):
        of_model.merge(replace(start, settings=forgets), [replace(part, settings=forgets)])
    with pytest.raises(MergeError, match="feature 3 was first observed after the start"):
        of_model.merge(replace(start, known=np.arange(6) != 3), [part])
