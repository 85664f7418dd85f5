"""Names of features, and frames: in, out, and kept as they were."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.pipeline import make_pipeline

from omfb import OMFBImputer, OnlineFactorAnalysis

from ..making import ALL, rows, same, sparse


def test_features_never_observed_are_named(rng):
    X = rows(rng)
    X[:, [2, 5]] = np.nan
    stored = sparse(rows(rng))
    stored.data[stored.indices == 2] = np.nan
    with pytest.warns(UserWarning, match=r"Never observed: feature 2, 5\."):
        OnlineFactorAnalysis(3, random_state=0).fit(X)
    with pytest.warns(UserWarning, match=r"Never observed: feature 2, 5\."):
        OnlineFactorAnalysis(3, random_state=0).fit(sparse(X))
    with pytest.warns(UserWarning, match=r"Never observed: feature 2\."):
        OnlineFactorAnalysis(3, random_state=0).fit(stored)
    frame = pd.DataFrame(X, columns=[f"f{i}" for i in range(10)])
    with pytest.warns(UserWarning, match=r"Never observed: feature 'f2', 'f5'\."):
        OMFBImputer(3, random_state=0).fit(frame)


FRAMES = pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])


def frame_of(library, X, prefix="f"):
    return library.DataFrame({f"{prefix}{i}": X[:, i] for i in range(X.shape[1])})


@FRAMES
def test_frames_equal_arrays_and_names_are_checked(rng, library):
    X = rows(rng, holes=0.1)
    frame = frame_of(library, X)
    model = OnlineFactorAnalysis(3, random_state=0).fit(frame)
    assert list(model.feature_names_in_) == list(frame.columns)
    assert same(model.components_, OnlineFactorAnalysis(3, random_state=0).fit(X).components_)
    assert same(model.transform(frame), OnlineFactorAnalysis(3, random_state=0).fit(X).transform(X))
    other = frame_of(library, X, prefix="g")
    for method in (model.transform, model.complete, model.score, model.partial_fit):
        with pytest.raises(ValueError, match="feature names"):
            method(other)
        with pytest.warns(UserWarning, match="valid feature names"):
            method(X)


@ALL
@FRAMES
@pytest.mark.parametrize("output", ["pandas", "polars", "default"])
def test_set_output_and_names_out(rng, library, output, estimator):
    frame = frame_of(library, rows(rng, holes=0.1))
    model = estimator(3, random_state=0).set_output(transform=output).fit(frame)
    result = model.transform(frame)
    names = list(frame.columns)
    if estimator is not OMFBImputer:
        names = [f"{estimator.__name__.lower()}{i}" for i in range(3)]
    assert list(model.get_feature_names_out()) == names
    if output == "default":
        assert type(result) is np.ndarray
    else:
        assert type(result) is {"pandas": pd.DataFrame, "polars": pl.DataFrame}[output]
        assert list(result.columns) == names


def test_complete_keeps_a_pandas_frame_as_it_was(rng):
    X = rows(rng)
    frame = pd.DataFrame(
        {
            "whole": X[:, 0],
            "holes": np.where(np.arange(50) % 7, X[:, 1], np.nan),
            "short": np.where(np.arange(50) % 6, X[:, 2], np.nan).astype(np.float32),
            "count": np.arange(50),
            "flag": np.arange(50) % 3 == 0,
            "nullable": pd.array(X[:, 4], dtype="Float64"),
            "int": pd.array(np.arange(50), dtype="Int64"),
        },
        index=pd.date_range("2026-01-01", periods=50),
    )
    frame.loc[frame.index[3], ["nullable", "int"]] = pd.NA
    before = frame.copy()
    model = OMFBImputer(3, random_state=0).fit(frame)
    filled = model.complete(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert type(filled) is pd.DataFrame
    assert filled.index.equals(frame.index)
    assert not filled.isna().any().any()
    for name in frame.columns:
        seen = ~frame[name].isna()
        assert (filled[name][seen] == frame[name][seen]).all()
        if name != "int":  # a fraction does not fit there
            assert filled[name].dtype == frame[name].dtype
    assert np.allclose(model.transform(frame), filled.to_numpy(dtype=float), rtol=1e-6)
    words = frame.assign(word="x")
    pd.testing.assert_frame_equal(
        OMFBImputer(3, random_state=0).fit_transform(words), filled.assign(word="x")
    )


def test_complete_keeps_a_polars_frame_as_it_was(rng):
    X = rows(rng)
    frame = pl.DataFrame(
        {
            "whole": X[:, 0],
            "nan": np.where(np.arange(50) % 7, X[:, 1], np.nan),
            "null": pl.Series([None, *X[1:, 2]]),
            "short": pl.Series([None, *X[1:, 3]], dtype=pl.Float32),
            "count": np.arange(50),
            "self": pl.Series([None, *range(49)]),
        }
    )
    before = frame.clone()
    filled = OnlineFactorAnalysis(3, random_state=0).fit(frame).complete(frame)
    assert frame.equals(before)
    assert type(filled) is pl.DataFrame
    assert filled.columns == frame.columns
    assert filled.null_count().sum_horizontal().item() == 0
    for name in frame.columns:
        seen = ~np.isnan(frame[name].to_numpy().astype(float))
        assert seen.all() == (name in ("whole", "count"))
        assert (filled[name].to_numpy()[seen] == frame[name].to_numpy()[seen]).all()
        if name != "self":  # a fraction does not fit among whole numbers
            assert filled[name].dtype == frame[name].dtype


def test_the_imputer_fills_holes_in_a_pipeline(rng):
    X = rows(rng, holes=0.2)
    pipeline = make_pipeline(
        OMFBImputer(3, random_state=0), OnlineFactorAnalysis(2, random_state=0)
    )
    assert np.isfinite(pipeline.fit_transform(X)).all()
    filled = pipeline[0].transform(X)
    assert np.array_equal(filled[~np.isnan(X)], X[~np.isnan(X)])
    assert np.array_equal(filled, pipeline[0].complete(X))


@FRAMES
@pytest.mark.parametrize("text", [False, True])
def test_columns_are_filled_by_their_names_whatever_their_order(rng, library, text):
    X = rows(rng, 200, 3, holes=0.1) * [1.0, 10.0, 100.0] + [0.0, 1e3, 1e6]
    frame = library.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    if text:
        word = {"word": ["x"] * 200}
        frame = frame.assign(**word) if library is pd else frame.with_columns(word=pl.lit("x"))
    model = OMFBImputer(2, random_state=0).fit(frame)
    order = ["c", "a", "b"]
    other = frame[["c", "word", "a", "b"] if text else order]
    whole, low, high = model.complete(frame), *model.interval(frame)
    for given, answer in zip(
        (whole, low, high), (model.complete(other), *model.interval(other)), strict=True
    ):
        assert list(answer.columns) == list(other.columns)
        assert np.array_equal(answer[order].to_numpy(), given[order].to_numpy())


def test_output_frames_hold_what_is_passed_through(rng, tmp_path):
    X = pd.DataFrame(rows(rng, 60, 3, holes=0.2), columns=list("abc"))
    X.insert(1, "town", ["x", "y"] * 30)
    model = OMFBImputer(2, random_state=0).set_output(transform="pandas").fit(X)
    assert list(model.get_feature_names_out()) == list(X.columns)
    assert list(model.get_feature_names_out(X.columns)) == list(X.columns)
    assert list(model.feature_names_in_) == list("abc")
    model.save(tmp_path / "m.omfb")
    loaded = OMFBImputer.load(tmp_path / "m.omfb").set_output(transform="pandas")
    for each in (model, loaded):
        filled = each.transform(X)
        assert list(filled.columns) == list(X.columns)
        assert not filled.isna().any(axis=None)
    columns = ColumnTransformer([("i", clone(model), list(X.columns))]).set_output(
        transform="pandas"
    )
    assert list(columns.fit_transform(X).columns) == [f"i__{name}" for name in X.columns]
    assert list(model.fit(X[["a", "b"]]).get_feature_names_out()) == ["a", "b"]
