"""`omfb merge`: models of several sites become one file."""

from copy import copy

import numpy as np
import pytest

import omfb
from omfb import OMFBImputer

from ..commands import low_rank, one_line, succeeded


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    X = low_rank(1200, 6)
    start = OMFBImputer(random_state=0).fit(X[:600])
    start.save(folder / "start.omfb")
    for name, rows in {"a": X[600:900], "b": X[900:]}.items():
        copy(start).partial_fit(rows).save(folder / f"{name}.omfb")
    OMFBImputer(random_state=0).fit(X[300:]).save(folder / "other.omfb")
    return folder


def test_it_does_what_the_library_does(server, folder):
    words = ["merge", "a.omfb", "b.omfb", "--start", "start.omfb", "-o", "c.omfb"]
    done = server.run(*words, cwd=folder)
    succeeded(done)
    rows = OMFBImputer.load(folder / "c.omfb").n_samples_seen_
    assert done.stderr.decode() == f"c.omfb: 2 models, {rows} rows\n"
    start, *models = (OMFBImputer.load(folder / f"{name}.omfb") for name in ("start", "a", "b"))
    omfb.merge(models, start).save(folder / "expected.omfb")
    assert (folder / "c.omfb").read_bytes() == (folder / "expected.omfb").read_bytes()


def test_what_shares_no_start_is_refused_and_nothing_written(server, folder):
    words = ["merge", "a.omfb", "other.omfb", "--start", "start.omfb", "-o", "none.omfb"]
    done = server.run(*words, cwd=folder)
    assert "no common start" in one_line(done, 1)
    assert not (folder / "none.omfb").exists()


def test_no_model_is_overwritten(server, folder):
    before = (folder / "a.omfb").read_bytes()
    done = server.run("merge", "a.omfb", "--start", "start.omfb", "-o", "a.omfb", cwd=folder)
    one_line(done, 2)
    assert (folder / "a.omfb").read_bytes() == before
    assert np.isfinite(OMFBImputer.load(folder / "a.omfb").components_).all()
