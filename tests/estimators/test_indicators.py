"""`add_indicator` and `keep_empty_features` as scikit-learn's imputers have them; 0/1 columns."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from sklearn.impute import KNNImputer, SimpleImputer

from omfb import OMFBImputer, OnlineFactorAnalysis

from ..making import PREDICTIVE, rows


def table(seed=0):
    rng = np.random.default_rng(seed)
    X = rows(rng, 80, 5)
    X[:, [1, 3]] = np.where(rng.random((80, 2)) < 0.2, np.nan, X[:, [1, 3]])
    return X


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, scipy.sparse.csr_array])
def test_the_indicator_is_scikit_learns(form):
    X = table()
    other = np.where(np.random.default_rng(1).random(X.shape) < 0.3, np.nan, X)
    model = OMFBImputer(2, add_indicator=True, random_state=0).fit(form(X))
    simple = SimpleImputer(add_indicator=True).fit(X)
    plain = OMFBImputer(2, random_state=0).fit(form(X))
    for each in (X, other):
        given = model.transform(form(each))
        assert np.array_equal(given[:, :5], plain.transform(form(each)))
        assert np.array_equal(given[:, 5:], simple.transform(each)[:, 5:])
    assert list(model.get_feature_names_out()) == list(simple.get_feature_names_out())


@pytest.mark.parametrize("library", [pd, pl])
@pytest.mark.parametrize("text", [False, True])
def test_the_indicator_of_frames_has_names(library, text, tmp_path):
    X = pd.DataFrame(table(), columns=list("abcde"))
    X = X.assign(word="x") if text else X
    X = X if library is pd else pl.from_pandas(X, nan_to_null=True)
    model = OMFBImputer(2, add_indicator=True, random_state=0).fit(X)
    model.save(tmp_path / "m.omfb")
    names = [*X.columns, "missingindicator_b", "missingindicator_d"]
    for each in (model, OMFBImputer.load(tmp_path / "m.omfb")):
        each.set_output(transform="pandas")
        assert list(each.get_feature_names_out()) == names
        filled = each.transform(X)
        assert list(filled.columns) == names
        given = filled[names[-2:]].to_numpy()
        assert np.array_equal(given, np.isnan(table())[:, [1, 3]])
        assert list(each.complete(X).columns) == list(X.columns)


@pytest.mark.parametrize("keep", [False, True])
def test_features_that_were_never_observed(keep):
    X = np.array([[np.nan, 1.0], [np.nan, 2.0], [np.nan, 3.0]])
    model = OMFBImputer(keep_empty_features=keep, random_state=0)
    knn = KNNImputer(keep_empty_features=keep)
    with pytest.warns(UserWarning, match="Never observed: feature 0"):
        first = model.fit_transform(X)
    expected = knn.fit_transform(X)
    assert np.array_equal(first, expected)
    assert np.array_equal(model.transform(X), expected)
    assert list(model.get_feature_names_out()) == (["x0", "x1"] if keep else ["x1"])


def test_a_frame_without_features_that_were_never_observed():
    X = pd.DataFrame(table(), columns=list("abcde")).assign(empty=np.nan, word="x")
    model = OMFBImputer(2, keep_empty_features=False, add_indicator=True, random_state=0)
    with pytest.warns(UserWarning, match="Never observed: feature 'empty'"):
        model.fit(X)
    names = [*"abcde", "word", *(f"missingindicator_{name}" for name in ("b", "d", "empty"))]
    assert list(model.transform(X).columns) == names == list(model.get_feature_names_out())
    assert list(model.complete(X).columns) == list(X.columns)


@PREDICTIVE
def test_nothing_is_known_of_a_feature_that_was_never_observed(estimator):
    rng = np.random.default_rng(0)
    X = rows(rng, 200, 4, holes=0.1) + 1000.0
    X[:, 2] = np.nan
    model = estimator(2, random_state=0)
    with pytest.warns(UserWarning, match="infinite"):
        model.fit(X)
    std = model.complete(X, return_std=True)[1]
    low, high = model.interval(X)
    assert np.isposinf(std[:, 2]).all()
    assert np.isneginf(low[:, 2]).all()
    assert np.isposinf(high[:, 2]).all()
    others = [0, 1, 3]
    assert np.isfinite(np.array([std, low, high])[:, :, others]).all()
    assert np.isfinite(model.complete(X)).all()


def test_bounds_hold_for_features_that_were_never_observed():
    X = np.c_[table(), np.full(80, np.nan)]
    model = OMFBImputer(2, min_value=-50.0, max_value=100.0, random_state=0)
    with pytest.warns(UserWarning, match="Never observed"):
        model.fit(X)
    low, high = model.interval(X)
    assert (low[:, 5] == -50.0).all()
    assert (high[:, 5] == 100.0).all()


def binary(seed=0):
    rng = np.random.default_rng(seed)
    level = rng.normal(size=(400, 1))
    Y = (level + 0.7 * rng.normal(size=(400, 6)) > 0.0).astype(float)
    return np.where(rng.random(Y.shape) < 0.2, np.nan, Y)


@pytest.mark.parametrize("stream", [False, True])
def test_columns_of_0_and_1_are_filled_with_0_and_1(stream, tmp_path):
    X = binary()
    model = OMFBImputer(integers=True, random_state=0)
    if stream:
        for start in range(0, 400, 50):
            model.partial_fit(X[start : start + 50])
    else:
        model.fit(X)
    model.save(tmp_path / "m.omfb")
    for each in (model, OMFBImputer.load(tmp_path / "m.omfb")):
        filled = each.transform(X)
        assert set(np.unique(filled)) == {0.0, 1.0}
        assert not np.signbit(filled).any()
        for bound in each.interval(X):
            assert set(np.unique(bound)) <= {0.0, 1.0}
            assert not np.signbit(bound).any()


def test_a_third_number_ends_the_limits_of_0_and_1():
    X = binary()
    model = OMFBImputer(random_state=0).fit(X)
    more = np.where(np.arange(400) % 2 == 0, 9.0, 0.0)[:, None] * np.ones(6)
    model.partial_fit(more).set_params(integers=True)
    row = np.where(np.arange(6) == 3, np.nan, 9.0)[None]
    assert model.transform(row)[0, 3] > 1.0


def test_dask_collections_refuse_what_they_cannot_have():
    array = pytest.importorskip("dask.array")
    X = array.from_array(table(), chunks=(40, 5))
    for options in ({"missing_values": -1.0}, {"add_indicator": True}):
        with pytest.raises(ValueError, match="Dask"):
            OMFBImputer(**options).fit(X)
    assert not hasattr(OnlineFactorAnalysis(), "add_indicator")


def test_limits_grow_with_the_features_of_a_stream(tmp_path):
    rng = np.random.default_rng(0)
    model = OMFBImputer(2, integers=True, new_features="add", random_state=0)
    for count in (2, 4):
        for row in rng.integers(0, 2, (60, count)):
            model.partial_fit({f"f{i}": float(value) for i, value in enumerate(row)})
    model.save(tmp_path / "m.omfb")
    loaded = OMFBImputer.load(tmp_path / "m.omfb")
    for each in (model, loaded):
        low, high = each.interval({"f0": 1.0})
        assert set(low.values()) | set(high.values()) <= {0.0, 1.0}
