"""Tasks of workers: a chunk's rows in their order, however few are taken at a time."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from omfb import OnlineFactorAnalysis
from omfb.adapters.dask import worker_tasks
from omfb.adapters.dask.worker_tasks import (
    After,
    Chunk,
    learn_chunk,
    numbers_of,
    order_of,
    read_chunk,
    some_of,
)
from omfb.formats import Reading, _lines
from omfb.formats.opening import open_file
from omfb.streams.blocks import as_rows

from ...making import rows

CHUNKS = pytest.mark.parametrize("chunk", [Chunk(0, None), Chunk(0, (3, 4))])
MADE = {"array": np.asarray, "frame": pd.DataFrame, "sparse": scipy.sparse.csr_array}


@CHUNKS
@pytest.mark.parametrize("kind", MADE)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_pieces_are_the_rows_of_a_chunk(chunk, kind, dtype, rng, monkeypatch):
    X = rng.normal(size=(103, 7))
    monkeypatch.setattr(worker_tasks, "PIECE_BYTES", 10 * 7 * np.dtype(dtype).itemsize)
    taken = some_of(as_rows(MADE[kind](X), "X"), order_of(chunk, 103), dtype)
    pieces, which = zip(*((piece.copy(), which) for piece, which in taken), strict=True)
    order = np.arange(103)
    if chunk.seed is not None:
        order = np.random.default_rng(chunk.seed).permutation(103)
    assert [len(piece) for piece in pieces] == [10] * 10 + [3]
    assert np.array_equal(np.concatenate(pieces), X[order].astype(dtype))
    assert np.array_equal(np.concatenate(which), order)
    assert np.array_equal(numbers_of(chunk._replace(first_row=50), 103), 50 + order)


@CHUNKS
@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize("temporal", [False, True])
def test_a_task_learns_the_same_from_few_rows_at_a_time(chunk, holes, temporal, rng, monkeypatch):
    X = rows(rng, 1200, 9, holes=holes)
    learner = (
        OnlineFactorAnalysis(3, random_state=0, temporal=temporal).partial_fit(X[:400]).learner_
    )
    before = After(learner.snapshot().learned, np.zeros(9, bool))
    whole = learn_chunk(learner.engine, before, None, X[400:], chunk)
    monkeypatch.setattr(worker_tasks, "PIECE_BYTES", 100 * 9 * 8)
    parts = learn_chunk(learner.engine, before, None, X[400:], chunk)
    assert np.allclose(parts.state.C, whole.state.C, rtol=0, atol=1e-9)
    # How many of a young stream's first rows are scored depends on how they come.
    assert np.isclose(parts.info.error, whole.info.error, rtol=0.1 if holes == 0.0 else 1e-9)
    assert np.array_equal(parts.last, whole.last, equal_nan=True)
    assert np.array_equal(parts.observed, whole.observed)


@pytest.mark.parametrize("text", ["a,b\n", "a,b\n" + "1.5,2.5\n" * 100])
def test_a_group_of_a_file_may_have_no_rows(tmp_path, monkeypatch, text):
    """A file with a header only, and a last line that began in the stretch before."""
    monkeypatch.setattr(_lines, "GROUP_BYTES", 4 + 8 * 99 + 1)
    path = tmp_path / "x.csv"
    path.write_text(text)
    file = open_file(path, Reading.of())
    counts = [len(read_chunk(path, Reading.of(), group)) for group in range(file.n_groups())]
    assert sum(counts) == text.count("\n") - 1
    assert counts[-1] == 0
