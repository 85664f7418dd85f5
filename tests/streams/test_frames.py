"""Columns of frames: which hold numbers, and what the others hold."""

import datetime

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from omfb.formats import open_stream
from omfb.streams import DataError
from omfb.streams.frames import non_numeric_kind

DATES = pd.Series(pd.date_range("2026-01-01", periods=3))
TEXT = pd.Series(["a", "b", "c"])
NUMBERS = {
    "float32": pd.Series([1, 2, 3], dtype="float32"),
    "uint8": pd.Series([1, 2, 3], dtype="uint8"),
    "Int64": pd.array([1, None, 3], dtype="Int64"),
    "half": pd.array([1, None, 3], dtype="halffloat[pyarrow]"),
    "double": pd.array([1, None, 3], dtype="double[pyarrow]"),
    "decimal": pd.array([1, None, 3], dtype=pd.ArrowDtype(pa.decimal128(9, 2))),
    "sparse": pd.arrays.SparseArray([1.0, np.nan, 3.0]),
    "Float32": pl.Series([1.0, None, 3.0], dtype=pl.Float32),
    "UInt16": pl.Series([1, None, 3], dtype=pl.UInt16),
    "Decimal": pl.Series([1, None, 3], dtype=pl.Decimal(9, 2)),
    "Null": pl.Series([None] * 3),
}
OTHERS = {
    "dates or times": [
        DATES, DATES.dt.tz_localize("UTC"), DATES - DATES[0], DATES.dt.to_period("M"),
        DATES.astype("timestamp[ns][pyarrow]"), DATES.astype("date32[pyarrow]"),
        DATES.dt.date, pl.Series([datetime.date(2026, 1, 1)]), pl.Series([datetime.time(1)]),
        pl.Series([datetime.timedelta(1)]),
    ],
    "booleans": [
        pd.Series([True, False]), pd.array([True, None], dtype="boolean"),
        pd.Series([True, None], dtype=object), pd.array([True], dtype="bool[pyarrow]"),
        pl.Series([True, None]),
    ],
    "categories": [
        TEXT.astype("category"), TEXT.astype(pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
        pl.Series(["a"], dtype=pl.Categorical), pl.Series(["a"], dtype=pl.Enum(["a"])),
    ],
    "text": [TEXT, TEXT.astype("string"), TEXT.astype("string[pyarrow]"), pl.Series(["a"])],
    "text ('a')": [TEXT.astype(object)],
    "intervals": [pd.Series(pd.interval_range(0, 3))],
    "complex numbers": [pd.Series([1j])],
    "structures": [pl.Series([{"a": 1}])],
    "objects (list)": [pd.Series([[1], [2]])],
    "Binary": [pl.Series([b"a"])],
}  # fmt: skip


def made(column):
    library = pl if isinstance(column, pl.Series) else pd
    return library.DataFrame({"number": [1.0] * len(column), "x": column})


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_of_every_library_are_numbers(name):
    assert non_numeric_kind(made(NUMBERS[name]), 1) is None


@pytest.mark.parametrize("kind", OTHERS)
def test_what_is_no_number_is_told_by_what_it_is(kind):
    for column in OTHERS[kind]:
        assert non_numeric_kind(made(column), 1) == kind
        assert non_numeric_kind(made(column), 0) is None


def test_numbers_with_something_among_them_are_refused_by_name():
    for other, told in (("bad", r"text \('bad'\)"), (True, "booleans"), ([1], "objects")):
        with pytest.raises(DataError, match=f"column 'x' holds numbers and {told}"):
            non_numeric_kind(made(pd.Series([1.5, None, other], dtype=object)), 1)


def test_streams_of_frames_name_the_column_and_know_what_is_missing():
    good = pd.DataFrame({"a": [1.0, 2.0], "b": pd.Series([3, pd.NA], dtype=object)})
    for stream in (open_stream(iter([good, good])), open_stream(good)):
        blocks = [block.rows for block in stream.blocks(9, False, np.random.RandomState(0))]
        assert np.array_equal(blocks[0][:2], [[1.0, 3.0], [2.0, np.nan]], equal_nan=True)
    for make in (lambda frame: open_stream(iter([frame])), open_stream):
        with pytest.raises(DataError, match="column 'b' holds dates or times"):
            make(good.assign(b=DATES))
