"""Columns of a frame come back in the type that they had."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from omfb import OMFBImputer

INTEGERS = ["Int64", "Int8", "UInt16", "int64[pyarrow]", "int32[pyarrow]"]
POLARS_INTEGERS = [pl.Int64, pl.Int32, pl.UInt8]


def counts(seed=0, n=200):
    """Counts that depend on a common level, and where they are missing."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=n)
    Y = np.round(20.0 + np.outer(level, [3.0, 4.0, 5.0]))
    return Y, rng.random(Y.shape) < 0.1


def pandas_frame(dtype):
    Y, hidden = counts()
    return pd.DataFrame(
        {
            name: pd.Series(Y[:, i].astype(int), dtype=dtype).mask(hidden[:, i])
            for i, name in enumerate("abc")
        }
    )


def polars_frame(dtype):
    Y, hidden = counts()
    columns = {
        name: [None if h else int(y) for y, h in zip(Y[:, i], hidden[:, i], strict=True)]
        for i, name in enumerate("abc")
    }
    return pl.DataFrame(columns, schema=dict.fromkeys("abc", dtype))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_of_pandas_keep_their_type(dtype):
    X = pandas_frame(dtype)
    model = OMFBImputer(1, integers=True, random_state=0).fit(X)
    filled = model.complete(X)
    assert (filled.dtypes == X.dtypes).all()
    assert not filled.isna().any(axis=None)
    seen = X.notna()
    assert (filled == X)[seen].fillna(True).all(axis=None)
    fractions = OMFBImputer(1, random_state=0).fit(X).complete(X)
    assert (fractions.dtypes == np.float64).all()
    assert all((bound.dtypes == np.float64).all() for bound in model.interval(X))


@pytest.mark.parametrize("dtype", POLARS_INTEGERS)
def test_integers_of_polars_keep_their_type(dtype):
    X = polars_frame(dtype)
    model = OMFBImputer(1, integers=True, random_state=0).fit(X)
    filled = model.complete(X)
    assert filled.schema == X.schema
    assert filled.null_count().sum_horizontal().item() == 0
    fractions = OMFBImputer(1, random_state=0).fit(X).complete(X)
    assert all(kind == pl.Float64 for kind in fractions.dtypes)


def test_large_integers_stay_exact():
    large = 2**60 + 1
    X = pd.DataFrame({"a": pd.array([large, large + 3, None, large + 1] * 10, dtype="Int64")})
    X["b"] = np.arange(40.0)
    filled = OMFBImputer(1, random_state=0).fit(X).complete(X)
    seen = X["a"].notna()
    if filled["a"].dtype == X["a"].dtype:
        assert (filled["a"][seen] == X["a"][seen]).all()
    assert not filled.isna().any(axis=None)


def test_filled_values_beyond_the_range_of_their_type_are_floats():
    X = pd.DataFrame({"a": np.arange(100.0, 140.0), "b": pd.array(range(80, 120), dtype="Int8")})
    X.loc[0, "b"] = pd.NA
    model = OMFBImputer(1, integers=True, min_value=[0.0, 200.0], random_state=0).fit(X)
    filled = model.complete(X)
    assert filled["b"].dtype == np.float64
    assert filled["b"][0] == 200.0


@pytest.mark.parametrize("dtype", ["boolean", "bool[pyarrow]", object, pl.Boolean])
def test_booleans_are_filled_with_booleans(dtype):
    rng = np.random.default_rng(0)
    level = rng.normal(size=300)
    hidden = np.arange(300) % 7 == 0
    flags = [None if h else bool(value > 0) for value, h in zip(level, hidden, strict=True)]
    if dtype is pl.Boolean:
        X = pl.DataFrame({"a": level, "b": 2 * level, "flag": pl.Series(flags, dtype=dtype)})
    else:
        X = pd.DataFrame({"a": level, "b": 2 * level, "flag": pd.Series(flags, dtype=dtype)})
    model = OMFBImputer(1, random_state=0).fit(X)
    filled = model.complete(X)
    assert filled["flag"].dtype == X["flag"].dtype
    given = list(filled["flag"])
    assert set(map(type, given)) <= {bool, np.bool_}
    assert np.mean((np.array(given) == (level > 0))[hidden]) > 0.9
    assert (np.array(given) == (level > 0))[~hidden].all()
    low, high = model.interval(X)
    assert low["flag"].dtype == high["flag"].dtype
    assert str(low["flag"].dtype).lower() == "float64"


def test_observed_values_stay_though_the_model_is_of_float32():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(50, 3)), columns=list("abc")).mask(rng.random((50, 3)) < 0.1)
    model = OMFBImputer(1, random_state=0).fit(X.astype(np.float32))
    for frame in (X, pl.from_pandas(X)):
        filled = model.complete(frame)
        for name in "abc":
            seen = X[name].notna().to_numpy()
            assert (np.asarray(filled[name])[seen] == X[name].to_numpy()[seen]).all()


def test_rows_by_name_may_hold_booleans_where_the_table_did():
    rng = np.random.default_rng(0)
    level = rng.normal(size=200)
    X = pd.DataFrame({"a": level, "b": 2.0 * level, "flag": level > 0.0})
    model = OMFBImputer(1, random_state=0).fit(X)
    row = {"a": 1.0, "b": None, "flag": True}
    filled = model.complete(row)
    assert filled["flag"] is True
    assert filled["b"] == model.complete({**row, "flag": 1.0})["b"]
    model.partial_fit(X.iloc[0])
    with pytest.raises(TypeError, match="'b' is True"):
        model.complete({"a": 1.0, "b": True})
