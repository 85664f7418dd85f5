"""Numbers that stand for missing values: those that are named, and those that look like it."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb import OMFBImputer, OnlineFactorAnalysis
from omfb.estimators.sentinels import Extremes, MissingValues

from ..making import rows


def table(seed=0, n=300):
    rng = np.random.default_rng(seed)
    Y = rows(rng, n, 5) + 20.0
    return Y, rng.random(Y.shape) < 0.1


def options(**more):
    return {"n_components": 2, "random_state": 0, **more}


FORMS = {
    "array": lambda X: X,
    "list": lambda X: X.tolist(),
    "float32": lambda X: X.astype(np.float32),
    "pandas": lambda X: pd.DataFrame(X, columns=list("abcde")),
    "polars": lambda X: pl.DataFrame(X, schema=list("abcde")),
    "sparse": scipy.sparse.csr_array,
    "iterator": lambda X: iter(X.copy()),
}


@pytest.mark.parametrize("form", FORMS)
def test_named_numbers_are_missing_in_every_form_of_the_data(form, tmp_path):
    Y, hidden = table()
    plain = FORMS[form](np.where(hidden, np.nan, Y))
    coded = FORMS[form](np.where(hidden, -999.0, Y))
    usual = OMFBImputer(**options()).fit(plain)
    model = OMFBImputer(**options(missing_values=-999)).fit(coded)
    assert np.array_equal(model.components_, usual.components_)
    model.save(tmp_path / "m.omfb")
    loaded = OMFBImputer.load(tmp_path / "m.omfb")
    again = np.where(hidden, -999.0, Y)
    if form in ("pandas", "polars"):
        again, plain = FORMS[form](again), FORMS[form](np.where(hidden, np.nan, Y))
    else:
        plain = np.where(hidden, np.nan, Y)
    for each in (model, loaded):
        for name in ("transform", "complete", "score_samples"):
            answer, expected = (getattr(m, name)(x) for m, x in ((each, again), (usual, plain)))
            assert np.array_equal(np.asarray(answer), np.asarray(expected))
    assert not (np.asarray(loaded.complete(again)) == -999.0).any()


def test_a_file_with_named_numbers(tmp_path):
    Y, hidden = table()
    frame = pd.DataFrame(np.where(hidden, -999.0, Y), columns=list("abcde"))
    frame.to_csv(tmp_path / "coded.csv", index=False)
    frame.mask(hidden).to_csv(tmp_path / "plain.csv", index=False)
    model = OMFBImputer(**options(missing_values=[-999.0])).fit(tmp_path / "coded.csv")
    usual = OMFBImputer(**options()).fit(tmp_path / "plain.csv")
    assert np.array_equal(model.components_, usual.components_)


def test_several_numbers_and_numbers_of_single_columns():
    Y, hidden = table()
    X = pd.DataFrame(np.where(hidden, np.nan, Y), columns=list("abcde"))
    usual = OMFBImputer(**options()).fit(X)
    coded = X.fillna({"a": -999.0, "b": -1.0, "c": -1.0, "d": -999.0})
    several = OMFBImputer(**options(missing_values=(-999.0, -1.0))).fit(coded)
    assert np.array_equal(several.components_, usual.components_)
    codes = {"a": -999.0, "b": [-1.0], "c": -1.0, "d": (-999.0, 5e9)}
    single = OMFBImputer(**options(missing_values=codes)).fit(coded)
    assert np.array_equal(single.complete(coded), usual.complete(X))
    array = OMFBImputer(**options(missing_values={0: -999.0, 1: -1.0, 2: -1.0, 3: -999.0}))
    assert np.array_equal(array.fit(coded.to_numpy()).components_, usual.components_)
    for column, message in (("zz", "'zz', which is not among"), (7, "counted from 0")):
        X = coded if column == "zz" else coded.to_numpy()
        with pytest.raises(ValueError, match=message):
            OMFBImputer(**options(missing_values={column: 1.0})).fit(X)


def test_integers_with_codes_keep_their_type():
    rng = np.random.default_rng(0)
    Y = np.round(20.0 + np.outer(rng.normal(size=200), [3.0, 4.0, 5.0])).astype(np.int64)
    hidden = rng.random(Y.shape) < 0.1
    X = pd.DataFrame(np.where(hidden, -999, Y), columns=list("abc"))
    model = OMFBImputer(**options(missing_values=-999, integers=True)).fit(X)
    filled = model.complete(X)
    assert (filled.dtypes == X.dtypes).all()
    assert (filled.to_numpy() >= 0).all()
    assert (filled.to_numpy() == Y)[~hidden].all()


def test_rows_of_a_stream_with_codes():
    Y, hidden = table()
    X = pd.DataFrame(np.where(hidden, -999.0, Y), columns=list("abcde"))
    model = OMFBImputer(**options(missing_values=-999))
    usual = OMFBImputer(**options())
    for coded, plain in zip(X.to_dict("records"), X.mask(hidden).to_dict("records"), strict=True):
        model.partial_fit(coded)
        usual.partial_fit(plain)
    assert np.array_equal(model.components_, usual.components_)
    row = {**X.to_dict("records")[0], "a": -999}
    assert model.complete(row) == usual.complete({**row, "a": None})
    assert model.complete(X[:3]).equals(usual.complete(X.mask(hidden)[:3]))


def test_named_numbers_never_change_what_is_given():
    Y, hidden = table()
    X = np.where(hidden, -999.0, Y)
    before = X.copy()
    OMFBImputer(**options(missing_values=-999)).fit(X).transform(X)
    assert np.array_equal(X, before)


# -- numbers that look like codes -----------------------------------------------------------------


def suspects(column):
    extremes = Extremes(1)
    extremes.add(np.asarray(column, float)[:, None])
    return [(each.value, each.n_times) for each in extremes.suspects()]


@pytest.mark.parametrize("code", [-999.0, -9999.0, 9999.0, -99999.0])
@pytest.mark.parametrize("share", [0.02, 0.1])
def test_codes_are_reported_with_their_count_and_taken_as_they_are(code, share):
    rng = np.random.default_rng(0)
    X = rows(rng, 400, 4)
    coded = rng.random(400) < share
    X[coded, 2] = code
    frame = pd.DataFrame(X, columns=["a", "b", "temperature", "d"])
    with pytest.warns(UserWarning, match="look like codes") as caught:
        OMFBImputer(**options()).fit(frame)
    (message,) = [str(each.message) for each in caught]
    assert "\n" not in message
    assert f"{code:g} in column 'temperature' ({coded.sum()} times)" in message
    assert f"missing_values={code:g}" in message
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OMFBImputer(**options(missing_values=code)).fit(frame)


def test_what_looks_like_a_code():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=100)
    assert suspects(plain) == []
    assert suspects([*plain, *[-999.0] * 3]) == [(-999.0, 3)]
    assert suspects([*plain, *[-999.0] * 3, *[9999.0] * 2]) == [(-999.0, 3), (9999.0, 2)]
    assert suspects([*np.abs(plain), -1.0, -1.0]) == [(-1.0, 2)]
    assert suspects([*(1000.0 + plain), *[0.0] * 5]) == [(0.0, 5)]
    assert suspects([*rng.integers(1, 6, 50), -1, -1, -1]) == [(-1.0, 3)]


def test_what_does_not_look_like_a_code():
    rng = np.random.default_rng(0)
    plain = rng.normal(size=100)
    for column in (
        [*plain, -999.0],  # once: an outlier
        [*plain, -1.0, -1.0],
        [-1.0] * 20 + [1.0] * 20,
        [-1.0] * 20 + [0.0] * 20 + [1.0] * 20,
        [0.0] * 95 + list(np.exp(rng.normal(size=5))),
        [7.0] * 40,
        [5.0] * 97 + [1e4] * 3,
        rng.integers(-2000, 2000, 500),
        [np.nan] * 5,
        np.exp(3.0 * rng.normal(size=500)),
    ):
        assert suspects(column) == []


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(st.integers(-3, 3), min_size=1, max_size=40),
    cut=st.integers(0, 40),
    seed=st.integers(0, 9),
)
def test_extremes_do_not_depend_on_how_rows_are_cut(values, cut, seed):
    rng = np.random.default_rng(seed)
    X = np.array(values, float)[:, None]
    X[rng.random(X.shape) < 0.2] = np.nan
    whole, pieces = Extremes(1), Extremes(1)
    whole.add(X)
    pieces.add(X[:cut])
    pieces.add(X[cut:])
    seen = X[~np.isnan(X)]
    for one, other in zip(whole._sides, pieces._sides, strict=True):
        for name in ("first", "second", "count"):
            assert np.array_equal(getattr(one, name), getattr(other, name))
    if len(seen):
        low = whole._sides[0]
        assert low.first[0] == seen.min()
        assert low.count[0] == np.sum(seen == seen.min())
        assert low.second[0] == min(seen[seen > seen.min()], default=np.inf)


def test_missing_values_as_given():
    assert not MissingValues.of(np.nan)
    assert not MissingValues.of(None)
    assert not MissingValues.of(pd.NA)
    assert MissingValues.of([np.nan, -1]).everywhere == (-1.0,)
    assert not hasattr(OnlineFactorAnalysis(), "missing_values")
