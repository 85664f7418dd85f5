"""Answers about Dask collections are Dask collections, equal to those about their chunks."""

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from omfb import OMFBImputer, OnlineFactorAnalysis

from ...making import ALL, rows


@pytest.fixture
def nothing_computes():
    """A scheduler that refuses to compute."""

    def refuse(*_, **__):
        raise AssertionError("computed")

    with dask.config.set(scheduler=refuse):
        yield


def computed(*collections):
    return dask.compute(*collections, scheduler="synchronous")


@pytest.fixture
def gappy(rng):
    return rows(rng, 300, 8, holes=0.2)


@ALL
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_arrays(estimator, dtype, gappy, nothing_computes):
    X = gappy.astype(dtype)
    model = estimator(3, random_state=0).fit(X)
    lazy = da.from_array(X, chunks=(70, 3))
    answers = {"transform": model.transform(lazy), "complete": model.complete(lazy)}
    score = model.score(lazy)
    for name, answer in answers.items():
        expected = getattr(model, name)(X)
        assert isinstance(answer, da.Array)
        assert answer.chunks == ((70, 70, 70, 70, 20), (expected.shape[1],))
        assert answer.dtype == expected.dtype == dtype
        np.testing.assert_allclose(
            computed(answer)[0], expected, rtol=1e-4 if dtype == np.float32 else 1e-9
        )
    total = model.score_held_out(X[:70])
    for at in range(70, 300, 70):
        total = total.plus(model.score_held_out(X[at : at + 70]))
    assert computed(score)[0] == 1.0 - total.error**2
    with dask.config.set(scheduler="synchronous"):
        assert float(score) == 1.0 - total.error**2


def test_codes_there_and_back(gappy, nothing_computes):
    X = gappy
    model = OnlineFactorAnalysis(3, random_state=0).fit(X)
    back = model.inverse_transform(model.transform(da.from_array(X, chunks=(100, 8))))
    assert back.shape == X.shape
    np.testing.assert_allclose(computed(back)[0], model.inverse_transform(model.transform(X)))


def test_how_sure_it_is(gappy, nothing_computes):
    X = gappy
    model = OMFBImputer(3, random_state=0).fit(X)
    lazy = da.from_array(X, chunks=(100, 8))
    pairs = [
        (model.complete(lazy, return_std=True), model.complete(X, return_std=True)),
        (model.interval(lazy, level=0.5), model.interval(X, level=0.5)),
    ]
    for found, expected in pairs:
        for one, other in zip(computed(*found), expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9)
    each = model.score_samples(lazy)
    assert each.shape == (300,)
    np.testing.assert_allclose(computed(each)[0], model.score_samples(X))


def test_an_answer_is_that_of_the_model_when_it_was_asked(gappy):
    X = gappy
    model = OMFBImputer(3, random_state=0).fit(X)
    expected = model.complete(X)
    answer = model.complete(da.from_array(X, chunks=(300, 8)))
    model.partial_fit(X[:100] * 2)
    assert np.array_equal(computed(answer)[0], expected)


@pytest.fixture
def frame(gappy):
    table = pd.DataFrame(gappy, columns=list("abcdefgh"), index=np.arange(1000, 1300))
    table["b"] = table["b"].astype(np.float32)
    table["whole"] = pd.array(np.arange(300) % 7, dtype="Int64")
    table.loc[1007, "whole"] = pd.NA
    table.insert(2, "town", np.where(np.arange(300) % 2, "Oslo", "Bergen"))
    return table


def test_frames_keep_index_columns_and_types(frame, nothing_computes):
    model = OMFBImputer(3, random_state=0).fit(frame)
    lazy = dd.from_pandas(frame, npartitions=3)
    for answer in (model.transform(lazy), model.complete(lazy)):
        assert isinstance(answer, dd.DataFrame)
        assert answer.divisions == lazy.divisions
        (found,) = computed(answer)
        assert found.index.equals(frame.index)
        assert list(found.columns) == list(answer.columns) == list(frame.columns)
        assert found.dtypes.equals(answer.dtypes)
        kinds = lazy.dtypes.to_dict() | {"whole": pd.Float64Dtype()}
        assert found.dtypes.to_dict() == kinds
        assert not found.isna().any().any()
        assert (found["town"] == frame["town"]).all()
    filled, std = model.complete(lazy, return_std=True)
    filled, std = computed(filled, std)
    assert list(std.columns) == [name for name in frame.columns if name != "town"]
    assert ((std > 0) == frame[std.columns].isna()).all().all()


def test_a_dask_frame_is_learned_from_by_name(frame):
    lazy = dd.from_pandas(frame, npartitions=3)
    model = OMFBImputer(3, random_state=0).fit(lazy)
    assert list(model.feature_names_in_) == [name for name in frame.columns if name != "town"]
    (found,) = computed(model.complete(lazy[list(frame.columns[::-1])]))
    pd.testing.assert_frame_equal(found[frame.columns], model.complete(lazy).compute())
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.complete(lazy.assign(more=1.0)).compute()


def test_codes_of_a_frame_keep_its_index(frame, nothing_computes):
    numbers = frame.drop(columns=["town", "whole"])
    model = OnlineFactorAnalysis(3, random_state=0).fit(numbers)
    codes = model.transform(dd.from_pandas(numbers, npartitions=3))
    assert list(codes.columns) == [f"onlinefactoranalysis{i}" for i in range(3)]
    (found,) = computed(codes)
    assert found.index.equals(numbers.index)
    np.testing.assert_allclose(found, model.transform(numbers), rtol=1e-9)
    each = model.score_samples(dd.from_pandas(numbers, npartitions=3))
    assert computed(each)[0].index.equals(numbers.index)


def test_empty_partitions_stay_empty(frame):
    model = OMFBImputer(3, random_state=0).fit(frame)
    lazy = dd.from_pandas(frame, npartitions=3)
    some = lazy.map_partitions(lambda part: part[part.index > 1250])
    (found,) = computed(model.complete(some))
    assert len(found) == 49
    assert not found.isna().any().any()
