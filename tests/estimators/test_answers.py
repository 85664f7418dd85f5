"""Answers never change a model, and columns are what they were in `fit`."""

from contextlib import suppress
from copy import copy

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.ensemble import RandomForestRegressor
from sklearn.pipeline import make_pipeline

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.learner.records import parts_of

from ..making import rows

CACHES = ("_learner", "_configs", "_name_index")
NAMES = [f"f{i}" for i in range(5)]
LIBRARIES = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


def table(seed=0, n=60, word=True):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rows(rng, n, 5, holes=0.2), columns=NAMES)
    return frame.assign(word="x") if word else frame


def attributes(model):
    """Everything that a fitted model holds or shows, to compare bit by bit."""
    model = copy(model)
    shown = {name: getattr(model, name, None) for name in dir(type(model)) if name.endswith("_")}
    arrays = {name: np.array(value) for name, value in shown.items() if not name.startswith("_")}
    del arrays["learner_"]
    parts = parts_of(model.learner_.snapshot())
    names = model.get_feature_names_out().tolist()
    held = {k: v for k, v in model.__dict__.items() if k not in CACHES}
    return {**arrays, **parts.tensors}, {**parts.header, "out": names, **held}


def unchanged(before, after):
    tensors, header = before
    others, other_header = after
    assert header == other_header
    assert tensors.keys() == others.keys()
    for name, values in tensors.items():
        equal = values.dtype == others[name].dtype and values.tobytes() == others[name].tobytes()
        assert equal or values.dtype == object, name


def answers(X):
    """Calls of a model that must not change it, whether they succeed or not."""
    more = X.assign(extra=1.0) if isinstance(X, pd.DataFrame) else np.c_[X, X[:, :1]]
    fewer = X.iloc[:, 1:] if isinstance(X, pd.DataFrame) else X[:, 1:]
    other = X.iloc[:, ::-1] if isinstance(X, pd.DataFrame) else X[::-1]
    named = X.assign(town="y") if isinstance(X, pd.DataFrame) else X
    forms = [X, more, fewer, other, named, X[:1], X[3:7]]
    if isinstance(X, pd.DataFrame):
        forms += [pl.from_pandas(X), X.drop(columns="word", errors="ignore")]
    calls = []
    for each in forms:
        calls += [
            lambda m, each=each: m.transform(each),
            lambda m, each=each: m.complete(each),
            lambda m, each=each: m.interval(each),
            lambda m, each=each: m.complete(each, return_std=True),
            lambda m, each=each: m.sample(each, 2, random_state=0),
            lambda m, each=each: m.score(each),
            lambda m, each=each: m.score_samples(each),
            lambda m, each=each: m.get_feature_names_out(list(getattr(each, "columns", NAMES))),
        ]
    return [
        *calls,
        lambda m: m.forecast(2, level=0.9),
        lambda m: m.get_feature_names_out(),
        lambda m: m.n_components_,
        lambda m: m.residuals_,
        lambda m: clone(m),
        lambda m: copy(m).partial_fit(X),
    ]


def models(kind, temporal, X):
    """A model that was fitted, loaded, or has learned from few or many rows."""
    estimator, source = kind
    options = {} if estimator is OMFB else {"temporal": temporal}
    model = estimator(2, random_state=0, **options)
    if source == "fit":
        return model.fit(X)
    if source == "first rows":
        return model.partial_fit(X[:3])
    return model.partial_fit(X).partial_fit(X[:1])


KINDS = [
    (estimator, source)
    for estimator in (OMFBImputer, OnlineFactorAnalysis, OMFB)
    for source in ("fit", "first rows", "rows")
]


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    kind=st.sampled_from(KINDS), frame=st.booleans(), temporal=st.booleans(),
    loaded=st.booleans(), output=st.sampled_from([None, "pandas"]), data=st.data(),
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_answers_never_change_a_model(tmp_path, kind, frame, temporal, loaded, output, data):
    X = table(word=kind[0] is OMFBImputer)
    X = X if frame else X[NAMES].to_numpy()
    model = models(kind, temporal, X)
    if loaded:
        model.save(tmp_path / "m.omfb")
        model = type(model).load(tmp_path / "m.omfb")
    model.set_output(transform=output)
    before = attributes(model)
    calls = answers(X)
    chosen = data.draw(st.lists(st.integers(0, len(calls) - 1), min_size=1, max_size=8))
    for at in chosen:
        with suppress(ValueError, TypeError, AttributeError):
            calls[at](model)
    unchanged(before, attributes(model))


@LIBRARIES
def test_one_more_column_is_refused_and_forgotten(library):
    X = table() if library is pd else pl.from_pandas(table())
    model = OMFBImputer(2, random_state=0).set_output(transform="pandas").fit(X)
    names = list(model.get_feature_names_out())
    more = X.assign(extra=1.0) if library is pd else X.with_columns(extra=pl.lit(1.0))
    for answer in (model.transform, model.complete, model.interval, model.score, model.partial_fit):
        with pytest.raises(ValueError, match="unseen at fit time:\n- extra"):
            answer(more)
    town = X.assign(town="y") if library is pd else X.with_columns(town=pl.lit("y"))
    for answer in (model.transform, model.complete, model.interval):
        with pytest.raises(ValueError, match=r"not there when .* 'town' \(text"):
            answer(town)
    assert list(model.get_feature_names_out()) == names == [*NAMES, "word"]
    assert list(model.transform(X).columns) == names


@LIBRARIES
def test_dropped_columns_let_a_pipeline_go_on(library):
    X = table() if library is pd else pl.from_pandas(table())
    model = OMFBImputer(2, remainder="drop", random_state=0).fit(X)
    filled = model.transform(X)
    assert type(filled) is np.ndarray
    assert filled.shape == (60, 5)
    assert list(model.get_feature_names_out()) == NAMES
    assert list(model.complete(X).columns) == NAMES
    town = X.assign(town="y") if library is pd else X.with_columns(town=pl.lit("y"))
    for other in (town, X[NAMES]):
        assert np.array_equal(model.transform(other), filled)
    pipeline = make_pipeline(clone(model), RandomForestRegressor(2, random_state=0))
    assert np.isfinite(pipeline.fit(X, np.arange(60.0)).predict(X)).all()


def test_a_column_that_was_passed_through_must_be_there_for_transform(tmp_path):
    X = table()
    model = OMFBImputer(2, random_state=0).fit(X)
    model.save(tmp_path / "m.omfb")
    for each in (model, OMFBImputer.load(tmp_path / "m.omfb")):
        with pytest.raises(ValueError, match=r"X lacks columns .*: 'word'"):
            each.transform(X[NAMES])
        assert list(each.complete(X[NAMES]).columns) == NAMES


@LIBRARIES
def test_transformed_columns_have_their_own_names_in_any_order(library):
    X = table() if library is pd else pl.from_pandas(table())
    model = OMFBImputer(2, random_state=0).set_output(transform="pandas").fit(X)
    expected = model.transform(X)
    shuffled = model.transform(X[["word", *NAMES[::-1]]])
    assert list(shuffled.columns) == list(X.columns)
    assert [list(shuffled[n]) for n in NAMES] == [list(expected[n]) for n in NAMES]


def test_a_model_of_a_file_passes_its_text_columns_through(tmp_path):
    X = table()
    X.to_csv(tmp_path / "x.csv", index=False)
    model = OMFBImputer(2, random_state=0).fit(tmp_path / "x.csv")
    assert list(model.set_output(transform="pandas").transform(X).columns) == list(X.columns)
    with pytest.raises(ValueError, match="'town'"):
        model.transform(X.assign(town="y"))
