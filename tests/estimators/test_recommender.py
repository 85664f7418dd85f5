"""`OMFBRecommender`: what goes in, what comes out, and what is refused."""

import datetime
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

from omfb import OMFBImputer, OMFBRecommender
from omfb.persistence import ModelFileError

from ..making import generated_ratings

IDS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.text(min_size=1, max_size=3))
TRIPLETS = st.lists(st.tuples(IDS, IDS, st.floats(-10, 10)), min_size=1, max_size=40)


def frame(seed=0, n_users=60, n_items=40, n=1200):
    user, item, rating = generated_ratings(seed, n_users, n_items, n)
    return pd.DataFrame({"user": user, "item": item, "rating": rating})


def fitted(**parameters):
    return OMFBRecommender(3, random_state=0, **parameters).fit(frame())


def answers(model):
    users, items = np.meshgrid(model.users_, model.items_)
    return np.array(model.predict(users, items, return_std=True, interval=0.8))


# -- what goes in ----------------------------------------------------------------------------


def test_every_form_of_the_same_ratings_gives_the_same_model(tmp_path):
    data = frame()
    path = tmp_path / "ratings.csv"
    data.to_csv(path, index=False)
    data.to_csv(tmp_path / "ratings.tsv.gz", index=False, sep="\t", header=False)
    expected = answers(fitted())
    wide = data.assign(other="x")[["other", "rating", "item", "user"]]
    forms = [
        pl.from_pandas(data), data.to_numpy(), data.to_numpy().tolist(),
        map(tuple, data.to_numpy().tolist()), str(path), path, tmp_path / "ratings.tsv.gz",
    ]  # fmt: skip
    for form in forms:
        np.testing.assert_array_equal(
            answers(OMFBRecommender(3, random_state=0).fit(form)), expected
        )
    for form in (wide, pl.from_pandas(wide)):
        model = OMFBRecommender(3, random_state=0).fit(form, columns=["user", "item", "rating"])
        np.testing.assert_array_equal(answers(model), expected)


@settings(max_examples=25)
@given(triplets=TRIPLETS, seed=st.integers(0, 9))
def test_order_does_not_matter_and_ids_are_of_any_kind(triplets, seed):
    unique = list({(user, item): (user, item, rating) for user, item, rating in triplets}.values())
    shuffled = [unique[t] for t in np.random.default_rng(seed).permutation(len(unique))]
    one, other = (OMFBRecommender(2, random_state=0).fit(rows) for rows in (unique, shuffled))
    assert one.users_.tolist() == other.users_.tolist()
    assert set(one.users_.tolist()) == {user for user, _, _ in unique}
    np.testing.assert_array_equal(answers(one), answers(other))
    assert np.isfinite(answers(one)).all()
    for user, item, _ in unique[:3]:
        assert item not in one.recommend(user, 99)[0].tolist()


def test_text_and_numbers_are_different_ids():
    model = OMFBRecommender().fit([("1", "a", 5.0), (1, "a", 1.0), ("01", "a", 3.0)])
    assert model.users_.tolist() == [1, "01", "1"]


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_the_last_rating_of_a_pair_counts(method):
    def learned(rows):
        return answers(getattr(OMFBRecommender(2, random_state=0), method)(rows))

    rows = [("a", "x", 1), ("b", "x", 2), ("a", "y", 3), ("a", "x", 5)]
    expected = learned([("a", "x", 5), ("b", "x", 2), ("a", "y", 3)])
    np.testing.assert_array_equal(learned(rows), expected)
    days = [datetime.date(2026, 1, day) for day in (1, 2, 3, 4)]
    for times in (range(4), days, [str(day) for day in days], pd.to_datetime(days)):
        timed = [(*row, time) for row, time in zip(rows, times, strict=True)]
        np.testing.assert_array_equal(learned(timed[3:] + timed[:3]), expected)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("a", "x", 1.0), ("b", "x", float("nan"))], "rating of row 1 is missing"),
        ([("a", "x", 1.0), ("b", "x", None)], "rating of row 1 is missing"),
        ([("a", "x", float("inf"))], "rating of row 0 is inf, too large"),
        ([("a", "x", "five")], "rating of row 0 is 'five'"),
        ([("a", "x", True)], "rating of row 0 is True"),
        ([(None, "x", 1.0)], "user of row 0 is missing"),
        ([("a", float("nan"), 1.0)], "item of row 0 is missing"),
        ([("a", 1.5, 1.0)], "item of row 0 is 1.5"),
        ([("a", "", 1.0)], "item of row 0 is ''"),
        ([("a", 2**63, 1.0)], "item of row 0 is 9223372036854775808"),
        ([(True, "x", 1.0)], "user of row 0 is True"),
        ([(("a",), "x", 1.0)], "user of row 0"),
        ([("a", "x")], "Rows of X have 2 entries"),
        ([("a", "x", 1.0), ("b", "x", 1.0, 3)], "Rows of X have 3, 4 entries"),
        (["a x 1"], "Row 0 of X is 'a x 1'"),
        ([("a", "x", 1.0, "soon")], "time of row 0 is 'soon'"),
        ([("a", "x", 1.0, None)], "time of row 0 is missing"),
        ([], "X has no ratings"),
        (3, "X is int"),
        ({"user": ["a"]}, "X is dict"),
        (np.zeros((3, 2)), r"shape \(3, 2\)"),
        (pd.DataFrame({"a": [1], "b": [1]}), "X has 2 columns"),
    ],
)
def test_what_is_no_rating_is_refused_and_changes_nothing(rows, message):
    model = fitted()
    before = pickle.dumps(model)
    for method in (model.fit, model.partial_fit, model.score):
        with pytest.raises((TypeError, ValueError), match=message):
            method(rows)
    assert pickle.dumps(model) == before
    new = OMFBRecommender()
    with pytest.raises((TypeError, ValueError), match=message):
        new.partial_fit(rows)
    assert not hasattr(new, "users_")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["user", "item"], "columns must be the names"),
        ("user,item,rating", "columns must be the names"),
        (["user", "item", "user"], "names a column twice"),
        (["user", "item", "stars"], "no column 'stars'"),
    ],
)
def test_columns_are_checked(columns, message):
    with pytest.raises(ValueError, match=message):
        OMFBRecommender().fit(frame(), columns=columns)


def test_columns_of_an_array_are_refused():
    with pytest.raises(TypeError, match="columns are for frames and files"):
        OMFBRecommender().fit(frame().to_numpy(), columns=["user", "item", "rating"])


# -- what comes out --------------------------------------------------------------------------


def test_new_users_and_items_are_known_at_once():
    model = fitted()
    liked, disliked = model.items_[np.argsort(model.item_offsets_)[[-1, 0]]]
    for user, sign in (("glad", 1), ("sad", -1)):
        known = model.items_
        before = model.predict(user, known)
        ratings = [(user, item, 3 + 2 * sign) for item in known[5:15]]
        model.partial_fit([*ratings, (user, f"{user}'s own", 3 + 2 * sign)])
        after = model.predict(user, known)
        assert sign * (after - before).mean() > 0.5
        assert f"{user}'s own" in model.items_
        items, scores = model.recommend(user, 5)
        assert len(items) == len(scores) == 5
        assert not set(items.tolist()) & {each[1] for each in ratings}
        assert (np.diff(scores) <= 0).all()
    assert model.predict("nobody", liked) > model.predict("nobody", disliked)


def test_a_user_without_ratings_gets_means_of_items():
    data = frame()
    model = fitted()
    means = data.groupby("item").rating.mean()
    predicted = model.predict("nobody", means.index.to_numpy())
    assert np.corrcoef(predicted, means)[0, 1] > 0.95
    assert predicted.mean() == pytest.approx(means.mean(), abs=0.1)
    items, _ = model.recommend("nobody", 3)
    assert set(items) <= set(means.sort_values().index[-12:])


def test_constant_ratings_predict_themselves():
    rows = [(user, item, 4.0) for user in range(30) for item in range(10) if (user + item) % 3]
    model = OMFBRecommender(random_state=0).fit(rows)
    low, high = model.predict(0, "new", interval=0.9)[1:]
    assert model.predict(7, 3) == low == high == 4.0
    assert model.partial_fit([(99, 3, 4.0)]).predict(99, 3) == 4.0


@pytest.mark.parametrize("unit", [1e-90, 1e-3, 1e90])
def test_units_of_ratings_do_not_matter(unit):
    data = frame()
    usual = OMFBRecommender(3, random_state=0).fit(data)
    scaled = OMFBRecommender(3, random_state=0).fit(data.assign(rating=unit * data.rating))
    np.testing.assert_allclose(answers(scaled), unit * answers(usual), rtol=1e-6)


def test_one_rating_is_enough():
    model = OMFBRecommender().partial_fit([("a", "x", 3.0)])
    assert model.predict("a", "x") == 3.0
    assert model.predict("a", "x", return_std=True)[1] > 0.1
    assert len(model.recommend("a")[0]) == 0
    assert model.recommend("a", exclude_seen=False)[0].tolist() == ["x"]


def test_predictions_have_the_shape_of_the_pairs():
    model = fitted()
    assert np.ndim(model.predict(3, 5)) == 0
    assert model.predict([3, 4], 5).shape == (2,)
    assert model.predict(3, pd.Series([5, 6, 7])).shape == (3,)
    assert model.predict(3, pl.Series([5, 6, 7])).shape == (3,)
    assert model.predict(np.array([[3], [4]]), np.array([[5, 6]])).shape == (2, 2)
    assert model.predict([], []).shape == (0,)
    with pytest.raises(ValueError, match="shapes"):
        model.predict([1, 2], [1, 2, 3])


def test_answers_are_within_bounds_and_bounds_can_be_given():
    model = fitted()
    low, high = model.predict(model.users_, model.items_[0], interval=0.999)[1:]
    assert low.min() >= 1.0
    assert high.max() <= 5.0
    model.set_params(min_value=2.5, max_value=3.0)
    assert answers(model)[0].min() == 2.5
    assert model.recommend(0)[1].max() <= 3.0
    model.set_params(min_value=4.0)
    with pytest.raises(ValueError, match="min_value must not be above max_value"):
        model.predict(0, 0)


def test_answers_do_not_change_the_model():
    model = fitted()
    before = pickle.dumps(model)
    answers(model)
    model.predict("nobody", "nothing", return_std=True)
    model.recommend("nobody")
    model.recommend(3, 5, exclude_seen=False)
    model.score(frame())
    assert pickle.dumps(model) == before


def test_intervals_of_a_stream_hold_what_they_say():
    data = frame(3, 200, 150, 12_000).sample(frac=1.0, random_state=0)
    model = OMFBRecommender(4, random_state=0).partial_fit(data[:9000])
    rest = data[9000:]
    low, high = model.predict(rest.user, rest.item, interval=0.9)[1:]
    assert 0.87 <= np.mean((low <= rest.rating) & (rest.rating <= high)) <= 0.93
    assert model.prequential_rmse_ > 0
    assert model.holdout_rmse_ is None


# -- parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 1), ("implicit", False), ("max_iter", 1), ("validation_fraction", 0.3),
        ("min_value", 2.5), ("max_value", 3.5), ("random_state", 1),
    ],
)  # fmt: skip
def test_every_parameter_has_an_effect(name, value):
    assert name in OMFBRecommender().get_params()
    usual, changed = (
        OMFBRecommender(**{"n_components": 3, "random_state": 0, **more}).fit(frame())
        for more in ({}, {name: value})
    )
    assert not np.array_equal(answers(usual), answers(changed))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_components", 0), ("n_components", 2.5), ("implicit", 1), ("max_iter", 0),
        ("validation_fraction", 0.9), ("validation_fraction", "a"), ("min_value", float("nan")),
        ("max_value", "high"), ("random_state", -1),
    ],
)  # fmt: skip
def test_wrong_parameters_are_refused_by_name(name, value):
    model = OMFBRecommender(**{name: value})
    for method in (model.fit, model.partial_fit):
        with pytest.raises((TypeError, ValueError), match=f"{name}|{value}"):
            method(frame())
    assert not hasattr(model, "users_")


def test_a_fitted_model_keeps_its_components():
    model = fitted().set_params(n_components=4)
    with pytest.raises(ValueError, match="set them back, or call fit"):
        model.partial_fit([(0, 0, 3.0)])


@pytest.mark.parametrize(
    "ask",
    [
        lambda model: model.predict("a", "x"), lambda model: model.recommend("a"),
        lambda model: model.score([("a", "x", 1.0)]), lambda model: model.save("nowhere"),
    ],
)  # fmt: skip
def test_nothing_is_answered_before_a_fit(ask):
    with pytest.raises(NotFittedError):
        ask(OMFBRecommender())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be 1 or more"),
        ({"n": "many"}, "n must be a whole number"),
        ({"exclude_seen": "no"}, "exclude_seen must be True or False"),
        ({"user": [1, 2]}, "user must be one identifier"),
        ({"user": None}, "user of row 0 is missing"),
    ],
)
def test_wrong_questions_are_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=message):
        fitted().recommend(**{"user": 0, **arguments})


def test_scikit_learn_can_clone_and_search():
    model = OMFBRecommender(7, implicit=False, min_value=1.0)
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(OMFBRecommender(random_state=0), {"n_components": [1, 3]}, cv=3)
    search.fit(frame(n=1400).sample(frac=1.0, random_state=0).to_numpy())
    assert search.best_params_ == {"n_components": 3}
    assert -1.0 < search.best_score_ < 0.0


# -- files -----------------------------------------------------------------------------------


@settings(max_examples=15)
@given(triplets=TRIPLETS)
def test_a_model_from_a_file_continues_bit_by_bit(triplets, tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.omfb"
    model = OMFBRecommender(2, random_state=0).partial_fit(triplets)
    model.save(path)
    loaded = OMFBRecommender.load(path)
    np.testing.assert_array_equal(answers(model), answers(loaded))
    more = [("new", item, 1.0) for item in model.items_[:3].tolist()]
    for each in (model, loaded):
        each.partial_fit(more)
    np.testing.assert_array_equal(answers(model), answers(loaded))
    assert loaded.users_.tolist() == model.users_.tolist()
    assert loaded.get_params() == model.get_params()
    model.save(path)
    first = path.read_bytes()
    loaded.save(path)
    assert path.read_bytes() == first


def test_a_long_stream_continues_bit_by_bit(tmp_path):
    data = frame(3, 200, 150, 6000).sample(frac=1.0, random_state=0)
    model = OMFBRecommender(3, random_state=0).fit(data[:3000]).partial_fit(data[3000:4500])
    model.save(tmp_path / "model.omfb")
    loaded = OMFBRecommender.load(tmp_path / "model.omfb")
    for each in (model, loaded):
        each.partial_fit(data[4500:])
    np.testing.assert_array_equal(answers(model), answers(loaded))
    assert loaded.n_iter_ == model.n_iter_ > 0
    assert loaded.holdout_rmse_ == model.holdout_rmse_ > 0
    assert loaded.prequential_rmse_ == model.prequential_rmse_


def test_a_file_that_cannot_be_written_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "model.omfb"
    fitted().save(path)
    before = path.read_bytes()

    def fails(*args, **kwargs):
        raise OSError("No space left on device")

    monkeypatch.setattr("safetensors.numpy.save_file", fails)
    with pytest.raises(OSError, match="No space"):
        fitted(implicit=False).save(path)
    assert path.read_bytes() == before
    assert [each.name for each in tmp_path.iterdir()] == ["model.omfb"]


SAVE_FOR_EVER = """
import itertools, sys
from omfb import OMFBRecommender
model = OMFBRecommender.load(sys.argv[1])
for count in itertools.count():
    model.partial_fit([(count % 60, "item of a killed process", 3.0)])
    model.save(sys.argv[1])
    print(count, flush=True)
"""


def test_a_process_that_is_killed_while_it_saves_leaves_a_whole_model(tmp_path):
    path = tmp_path / "model.omfb"
    fitted().save(path)
    process = subprocess.Popen(
        [sys.executable, "-c", SAVE_FOR_EVER, str(path)], stdout=subprocess.PIPE
    )
    for _ in range(5):
        assert process.stdout.readline()
    process.kill()
    process.wait()
    process.stdout.close()
    loaded = OMFBRecommender.load(path)
    assert loaded.n_ratings_ >= 1200 + 4
    assert np.isfinite(answers(loaded)).all()


def test_files_of_other_models_and_damaged_ones_are_refused(tmp_path):
    path = tmp_path / "model.omfb"
    OMFBImputer().fit(np.random.default_rng(0).normal(size=(30, 3))).save(path)
    with pytest.raises(ModelFileError, match="a model of OMFBImputer"):
        OMFBRecommender.load(path)
    fitted().save(path)
    with pytest.raises(ModelFileError, match="OMFBRecommender"):
        OMFBImputer.load(path)
    content = bytearray(path.read_bytes())
    content[-100] ^= 1
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match="damaged"):
        OMFBRecommender.load(path)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("ratings.user", lambda x: x + 1000), ("ratings.z", lambda x: x[:-1]),
        ("users.weight", lambda x: -x), ("items.variance", lambda x: 0 * x),
        ("users.mean", lambda x: x[:, :-1]), ("users.numbers", lambda x: 0 * x),
        ("place", lambda x: x + 7), ("noise", lambda x: 0 * x), ("items.is_text", lambda x: ~x),
        ("histogram", lambda x: x[:3]),
    ],
)  # fmt: skip
def test_files_that_no_model_can_have_written_are_refused(tmp_path, name, change):
    from omfb.persistence import read_model, write_model

    path = tmp_path / "model.omfb"
    fitted().save(path)
    header, tensors = read_model(path)
    tensors[name] = change(tensors[name])
    write_model(path, header, tensors)
    with pytest.raises(ModelFileError, match=r"model\.omfb"):
        OMFBRecommender.load(path)


def test_a_random_state_that_is_an_object_can_be_saved(tmp_path):
    model = OMFBRecommender(random_state=np.random.RandomState(0)).fit(frame())
    model.save(tmp_path / "model.omfb")
    assert OMFBRecommender.load(tmp_path / "model.omfb").random_state is None
