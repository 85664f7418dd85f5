"""The data that come with the package."""

import sys
from pathlib import Path

import numpy as np
import pytest

from omfb.datasets import load_air

SOURCE = Path(__file__).resolve().parents[3] / "shared" / "data" / "beijing_air.npz"


def test_arrays_have_the_shapes_that_are_promised():
    air = load_air()
    assert air.data.shape == (2928, 132) == (len(air.times), len(air.feature_names))
    assert np.isnan(air.data).sum() == 7718
    assert (np.diff(air.times) == np.timedelta64(1, "h")).all()
    assert len(set(air.feature_names)) == 132


def test_the_description_names_author_licence_and_counts():
    air = load_air()
    for words in ("Chen, Song", "CC BY 4.0", "10.24432/C5RK5G", "7,718 of the 386,496"):
        assert words in air.DESCR


def test_a_frame_has_times_as_its_index():
    pd = pytest.importorskip("pandas")
    air = load_air(as_frame=True)
    assert isinstance(air.data.index, pd.DatetimeIndex)
    assert list(air.data.columns) == air.feature_names
    np.testing.assert_array_equal(air.data, load_air().data)


def test_without_pandas_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="as_frame=True needs pandas: pip install pandas"):
        load_air(as_frame=True)
    assert load_air().data.shape == (2928, 132)


@pytest.mark.skipif(not SOURCE.exists(), reason="the source is not in ../shared/data")
def test_no_value_was_changed():
    air = load_air()
    source = np.load(SOURCE)
    np.testing.assert_array_equal(air.data.astype(np.float32), source["x"][:2928].reshape(2928, -1))
    names = [f"{variable} {station}" for station in source["stations"]
             for variable in source["variables"]]  # fmt: skip
    assert air.feature_names == names
    assert air.times[0] == np.datetime64(str(source["start"]))
