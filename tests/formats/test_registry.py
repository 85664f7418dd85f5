"""Formats are found by their endings, and other packages can add some."""

from importlib.metadata import EntryPoint

import numpy as np
import pytest

from omfb import OMFB
from omfb.formats import Format, TableSource, format_of, registry
from omfb.formats.npy import ArrayTable, NpyWriter
from omfb.streams import DataError


class Plain(Format):
    """Numbers between spaces, as another package might read them."""

    name = "plain"
    endings = (".plain",)

    def open(self, path, reading) -> TableSource:
        return ArrayTable(self, np.loadtxt(path), path, reading)

    def writer(self, stream, names, dtype):
        return NpyWriter(stream, len(names), dtype)


class Broken(Plain):
    def __init__(self):
        raise RuntimeError("out of order")


@pytest.fixture(name="plugins")
def _plugins(monkeypatch):
    def use(*names):
        points = [EntryPoint(name, f"{__name__}:{name}", registry.GROUP) for name in names]
        loaded = {"Plain": Plain, "Broken": Broken}
        monkeypatch.setattr(EntryPoint, "load", lambda self: loaded[self.name])
        monkeypatch.setattr(registry, "entry_points", lambda group: points)
        registry.added.cache_clear()

    yield use
    registry.added.cache_clear()


def test_a_format_of_another_package_is_opened(plugins, tmp_path):
    plugins("Plain")
    X = np.random.default_rng(0).random((30, 4))
    np.savetxt(tmp_path / "x.plain", X)
    assert format_of("x.plain").name == "plain"
    expected = OMFB(2, random_state=0).fit(X).components_
    np.testing.assert_array_equal(
        OMFB(2, random_state=0).fit(tmp_path / "x.plain").components_, expected
    )


def test_a_broken_plugin_is_named_and_does_not_stop_the_others(plugins):
    plugins("Broken")
    assert format_of("x.csv").name == "csv"
    with pytest.raises(DataError, match=r"'Broken'.*out of order"):
        format_of("x.plain")


@pytest.mark.parametrize(
    ("name", "expected"),
    [("x.CSV", "csv"), ("x.csv.gz", "csv"), ("a.b.jsonl.zst", "ndjson"), ("x.pq", "Parquet")],
)
def test_endings_tell_the_format(name, expected):
    assert format_of(name).name == expected


@pytest.mark.parametrize("name", ["x", "x.gz", "x.npy.gz", "x.docx"])
def test_other_endings_are_refused(name):
    with pytest.raises(DataError, match=r"Use one of these extensions: .csv"):
        format_of(name)
