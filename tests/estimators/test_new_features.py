"""Features that a stream brings later: added by name, learned as if they had always been known."""

import copy
import warnings

import numpy as np
import pandas as pd
import pytest

from omfb import OMFBImputer, OnlineFactorAnalysis, merge
from omfb.core.factor.check import check_state
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.grow import add_features
from omfb.core.factor.init import init
from omfb.core.factor.restrict import by_feature_of
from omfb.core.factor.step import step
from omfb.core.linalg import capacity

from ..making import PREDICTIVE, snapshot

NAMES = [f"n{i}" for i in range(12)]


def stream(n=1500, seed=0):
    """Rows by name; after 500 rows two more features in every hundred."""
    rng = np.random.default_rng(seed)
    Y = rng.normal(size=(n, 2)) @ rng.normal(size=(2, 12)) + 0.3 * rng.normal(size=(n, 12))
    rows = []
    for t, y in enumerate(Y.tolist()):
        known = 4 if t < 500 else min(12, 6 + 2 * ((t - 500) // 100))
        seen = rng.random(known) < 0.8
        rows.append({NAMES[i]: y[i] for i in range(known) if seen[i] or t == 0})
    return rows, Y


def error(model, Y):
    rng = np.random.default_rng(9)
    hidden = rng.random(Y.shape) < 0.3
    rows = [{name: value for name, value, gone in zip(NAMES, y, hide, strict=True) if not gone}
            for y, hide in zip(Y.tolist(), hidden, strict=True)]  # fmt: skip
    filled = np.array([[row[name] for name in NAMES] for row in model.complete(rows)])
    return np.sqrt(np.mean((filled - Y)[hidden] ** 2))


@PREDICTIVE
def test_names_that_appear_are_learned_as_if_they_had_been_known(estimator):
    rows, Y = stream()
    new = estimator(4, random_state=0, new_features="add")
    known = estimator(4, random_state=0)
    nothing = dict.fromkeys(NAMES)
    for row in rows:
        new.partial_fit(row)
        known.partial_fit({**nothing, **row})
    assert new.feature_names_in_.tolist() == NAMES
    check_state(new.learner_.state)
    assert error(new, Y[-300:]) < 1.03 * error(known, Y[-300:]) < 0.5


def test_the_first_rows_may_bring_names_too():
    model = OMFBImputer(random_state=0, new_features="add")
    rows, _ = stream(40)
    for row in rows:
        model.partial_fit(row)
    model.partial_fit({"n11": 1.0, "n0": 0.5})
    assert model.feature_names_in_.tolist() == [*NAMES[:4], "n11"]
    assert set(model.complete({"n0": 1.0})) == {*NAMES[:4], "n11"}


@PREDICTIVE
def test_the_default_adds_with_one_warning(estimator):
    model = estimator(2, random_state=0).partial_fit({"a": 1.0})
    with pytest.warns(UserWarning, match="New feature 'b' was added"):
        model.partial_fit({"a": 2.0, "b": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit({"c": 1.0})
    assert model.n_features_in_ == 3


@PREDICTIVE
def test_an_error_after_a_feature_was_added_leaves_the_model_as_it_was(estimator):
    rows, _ = stream(600)
    model = estimator(2, random_state=0, new_features="add")
    for row in rows[:450]:
        model.partial_fit(row)
    before = snapshot(model)
    with pytest.raises(ValueError, match="X"):
        model.partial_fit({"n0": np.inf, "other": 1.0})
    with pytest.raises(TypeError, match="'n0' is 'x'"):
        model.partial_fit({"other": 1.0, "n0": "x"})
    assert snapshot(model) == before
    if estimator is OnlineFactorAnalysis:
        with pytest.raises(TypeError, match="'text' is 'x'"):
            model.partial_fit({"n0": 1.0, "text": "x"})
    model.complete({"n0": 1.0, "unknown": 2.0})  # an answer adds nothing
    assert snapshot(model) == before


def test_a_saved_model_goes_on_with_features_added_in_between(tmp_path):
    rows, Y = stream(1200)
    one = OMFBImputer(random_state=0, new_features="add")
    for row in rows:
        one.partial_fit(row)
    other = OMFBImputer(random_state=0, new_features="add")
    for at, row in enumerate(rows):
        other.partial_fit(row)
        if at in (10, 505, 700, 1000):
            other.save(tmp_path / "m.omfb")
            other = OMFBImputer.load(tmp_path / "m.omfb")
    assert np.array_equal(one.components_, other.components_)
    assert error(one, Y[-50:]) == error(other, Y[-50:])


@pytest.mark.parametrize("noise", ["isotropic", "diagonal"])
def test_old_features_do_not_notice_a_new_one_that_is_not_observed(noise):
    X = np.random.default_rng(0).normal(size=(450, 6)) @ np.diag([3.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    X[::7, 2] = np.nan
    state = step(init(X, FactorConfig(n_components=3, noise=noise)), X)[0]
    wider = add_features(state, 2)
    check_state(wider)
    assert wider.n_components == state.n_components
    assert np.array_equal(wider.params.C[:6], state.params.C)
    assert not wider.features.known[6:].any()
    after = step(wider, np.hstack([X[:5], np.full((5, 2), np.nan)]))[0]
    expected = step(state, X[:5])[0]
    np.testing.assert_allclose(after.params.C[:6], expected.params.C, rtol=0.1, atol=0.05)


def test_more_features_may_have_more_components():
    X = np.random.default_rng(0).normal(size=(450, 4))
    state = step(init(X, FactorConfig()), X)[0]
    wider = add_features(state, 30)
    check_state(wider)
    assert wider.n_components == FactorConfig().components_for(34) > state.n_components
    rng = np.random.default_rng(1)
    Y = rng.normal(size=(3000, 8)) @ rng.normal(size=(8, 34)) + 0.3 * rng.normal(size=(3000, 34))
    wider = step(wider, Y)[0]
    check_state(wider)
    residual = wider.holdout.sse[1]
    assert np.sqrt(residual[0] / residual[1]) < 0.5


def many_names(n, keys=8, seed=0):
    """Rows of a few of ever more features."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(n, 2))
    for t in range(n):
        which = rng.choice(20 + 3 * t // 4, keys, replace=False)
        values = loadings[which] @ rng.normal(size=2) + 0.2 * rng.normal(size=keys)
        yield {f"n{i}": value for i, value in zip(which.tolist(), values.tolist(), strict=True)}


def test_ever_more_names_copy_each_array_a_few_times(monkeypatch):
    copied = []
    with_room = capacity._with_room

    def counted(array, needed, axis):
        copied.append(array.nbytes)
        return with_room(array, needed, axis)

    model = OnlineFactorAnalysis(2, random_state=0, new_features="add")
    rows = list(many_names(2000))
    for row in rows[:1000]:
        model.partial_fit(row)
    monkeypatch.setattr(capacity, "_with_room", counted)
    before = model.n_features_in_
    for row in rows[1000:]:
        model.partial_fit(row)
    state = model.learner_.learned.state
    check_state(state)
    added = model.n_features_in_ - before
    assert added > 500
    # Batches and M-steps make arrays without room: that is once in many rows.
    arrays = sum(np.array(array).nbytes for array in by_feature_of(state).values())
    assert sum(copied) < 0.1 * added * arrays


def test_rows_of_few_entries_do_not_depend_on_how_models_are_read_and_saved(tmp_path):
    one = OMFBImputer(2, random_state=0, new_features="add")
    other = OMFBImputer(2, random_state=0, new_features="add")
    for at, row in enumerate(many_names(900)):
        one.partial_fit(row)
        other.partial_fit(row)
        if at % 97 == 0:
            other.complete(row)
            other.score_samples(row)
        if at in (150, 480, 500, 777):
            other.save(tmp_path / "m.omfb")
            other = OMFBImputer.load(tmp_path / "m.omfb")
    assert one.n_features_in_ == other.n_features_in_ > 600
    assert np.array_equal(one.components_, other.components_)
    assert one.complete({"n1": 1.0}) == other.complete({"n1": 1.0})


def test_a_copy_goes_on_by_itself():
    rows = list(many_names(800))
    model = OnlineFactorAnalysis(2, random_state=0, new_features="add")
    for row in rows[:700]:
        model.partial_fit(row)
    held = copy.copy(model)
    expected = [held.components_, held.feature_names_in_]
    alone = copy.deepcopy(held)
    for row in rows[700:]:
        model.partial_fit(row)
        model.partial_fit({"other": 1.0, **row})
    np.testing.assert_array_equal(held.components_, expected[0])
    np.testing.assert_array_equal(held.feature_names_in_, expected[1])
    for row in rows[700:]:
        held.partial_fit(row)
        alone.partial_fit(row)
    np.testing.assert_array_equal(held.components_, alone.components_)
    np.testing.assert_array_equal(held.feature_names_in_, alone.feature_names_in_)


# -- frames -------------------------------------------------------------------------------------


def frames(seed=0):
    """Frames whose columns come, go and change places; and the same rows as dicts."""
    rows, _ = stream(900, seed)
    rng = np.random.default_rng(seed)
    found, at = [], 0
    while at < len(rows):
        some = rows[at : at + int(rng.integers(1, 40))]
        columns = sorted({name for row in some for name in row}, key=lambda _: rng.random())
        found.append((pd.DataFrame(some, columns=columns, dtype=float), some))
        at += len(some)
    return found


@PREDICTIVE
def test_frames_with_other_columns_are_learned_by_name(estimator):
    by_frame = estimator(3, random_state=0, new_features="add")
    by_row = estimator(3, random_state=0, new_features="add")
    for frame, rows in frames():
        before = frame.copy()
        by_frame.partial_fit(frame)
        pd.testing.assert_frame_equal(frame, before)
        by_row.partial_fit([{name: row.get(name) for name in frame.columns} for row in rows])
    assert by_frame.feature_names_in_.tolist() == by_row.feature_names_in_.tolist()
    assert set(by_frame.feature_names_in_) == set(NAMES)
    np.testing.assert_allclose(by_frame.components_, by_row.components_, rtol=1e-6, atol=1e-9)


@PREDICTIVE
def test_frames_are_refused_or_cut_to_known_columns_if_nothing_is_to_be_added(estimator):
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(450, 3)), columns=list("abc"))
    other = X[["c", "a"]].assign(d=1.0)
    for new_features in ("error", None):
        model = estimator(2, random_state=0, new_features=new_features).partial_fit(X)
        before = snapshot(model)
        with pytest.raises(ValueError, match="name"):
            model.partial_fit(other)
        assert snapshot(model) == before
    model = estimator(2, random_state=0, new_features="ignore").partial_fit(X)
    expected = estimator(2, random_state=0).partial_fit(X)
    model.partial_fit(other)
    expected.partial_fit(X.assign(b=np.nan))
    assert model.feature_names_in_.tolist() == list("abc")
    np.testing.assert_array_equal(model.components_, expected.components_)


def test_new_columns_of_text_are_refused_before_anything_is_learned():
    X = pd.DataFrame(np.random.default_rng(0).normal(size=(450, 3)), columns=list("abc"))
    for estimator in (OMFBImputer, OnlineFactorAnalysis):
        model = estimator(2, random_state=0, new_features="add").partial_fit(X)
        before = snapshot(model)
        with pytest.raises((TypeError, ValueError), match="t"):
            model.partial_fit(X[["a"]].assign(t="x", u=1.0))
        with pytest.raises(ValueError, match="infinity"):
            model.partial_fit(X[["a"]].assign(u=np.inf))
        assert snapshot(model) == before


# -- features that fall silent ------------------------------------------------------------------


def passing(n=1500, width=6, seed=0):
    """Rows of a window of names that moves on; n0 and n1 are always there."""
    rng = np.random.default_rng(seed)
    loadings = rng.normal(size=(n, 2))
    for t in range(n):
        which = [0, 1, *range(2 + t // 100, 2 + t // 100 + width)]
        values = loadings[which] @ rng.normal(size=2) + 0.2 * rng.normal(size=len(which))
        row = dict(zip([f"n{i}" for i in which], values.tolist(), strict=True))
        yield {name: value for name, value in row.items() if rng.random() < 0.8} or row


@PREDICTIVE
def test_silent_features_are_dropped_and_new_when_they_come_again(estimator):
    model = estimator(2, random_state=0, new_features="add", drop_after=200)
    for row in passing():
        model.partial_fit(row)
    names = model.feature_names_in_.tolist()
    assert set(names[:2]) == {"n0", "n1"}
    assert len(names) <= 2 + 6 + 3
    assert "n5" not in names
    assert "n21" in names
    check_state(model.learner_.state)
    n = len(names)
    assert model.n_features_in_ == n == model.components_.shape[1] == len(model.mean_)
    assert set(model.complete({"n0": 1.0})) == set(names)
    assert model.complete({"n5": 3.0, "n0": 1.0})["n5"] == 3.0  # known no more: as it is
    model.partial_fit({"n5": 1.0, "n0": 0.5})
    assert model.feature_names_in_.tolist() == [*names, "n5"]


@PREDICTIVE
def test_what_is_left_is_predicted_as_well_as_if_nothing_was_dropped(estimator):
    rows = list(passing(2500))
    kept = estimator(2, random_state=0, new_features="add")
    model = estimator(2, random_state=0, new_features="add", drop_after=150)
    for row in rows:
        kept.partial_fit(row)
        model.partial_fit(row)
    truth = [row.pop("n1") for row in (dict(row) for row in rows[-300:]) if "n1" in row]
    shown = [{name: v for name, v in row.items() if name != "n1"} for row in rows[-300:]
             if "n1" in row]  # fmt: skip

    def error(one):
        return np.sqrt(np.mean([(one.complete(row)["n1"] - y) ** 2
                                for row, y in zip(shown, truth, strict=True)]))  # fmt: skip

    assert error(model) < 1.05 * error(kept)


@PREDICTIVE
def test_what_is_dropped_does_not_depend_on_how_the_stream_is_cut(estimator, tmp_path):
    rows = list(passing(1300))
    one = estimator(2, random_state=0, new_features="add", drop_after=120)
    some = estimator(2, random_state=0, new_features="add", drop_after=120)
    for at, row in enumerate(rows):
        one.partial_fit(row)
        if at in (90, 455, 456, 900):
            one.save(tmp_path / "m.omfb")
            one = estimator.load(tmp_path / "m.omfb")
    for start in range(0, len(rows), 130):
        some.partial_fit(rows[start : start + 130])
    assert one.drop_after == 120
    assert one.feature_names_in_.tolist() == some.feature_names_in_.tolist()
    np.testing.assert_allclose(one.components_, some.components_, rtol=1e-6, atol=1e-8)


def test_names_that_pass_by_the_thousand_leave_a_small_model():
    model = OnlineFactorAnalysis(2, random_state=0, new_features="add", drop_after=100)
    rng = np.random.default_rng(0)
    for t in range(1500):
        names = [f"n{i}" for i in rng.integers(2 * t, 2 * t + 300, 8).tolist()]
        model.partial_fit(dict(zip(names, rng.normal(size=8).tolist(), strict=True)))
    assert model.n_features_in_ < 700
    check_state(model.learner_.state)


def test_an_error_leaves_features_as_they_were():
    rows = list(passing(900))
    model = OMFBImputer(2, random_state=0, new_features="add", drop_after=100)
    for row in rows[:600]:
        model.partial_fit(row)
    before = snapshot(model)
    with pytest.raises(ValueError, match="X"):
        model.partial_fit([*rows[600:800], {"n0": np.inf}])
    assert snapshot(model) == before


@pytest.mark.parametrize("value", [0, -1, 1.5, "x", True])
def test_drop_after_is_a_number_of_rows(value):
    with pytest.raises((TypeError, ValueError), match="drop_after"):
        OMFBImputer(drop_after=value).fit(np.eye(5))


def test_models_of_other_names_are_not_merged():
    rows = list(passing(700))
    start = OnlineFactorAnalysis(2, random_state=0, new_features="add", drop_after=100)
    start.partial_fit(rows[:500])
    parts = [copy.deepcopy(start).partial_fit(rows[500:600]) for _ in range(2)]
    parts[1].partial_fit({"other": 1.0})
    with pytest.raises(ValueError, match="other features"):
        merge(parts, start)
