"""Streams: every source brings the same rows, and goes on from any position."""

import itertools
import os
import sys
import threading

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

from omfb import OMFB
from omfb.formats import _lines as lines
from omfb.formats import open_pipe, open_stream
from omfb.formats._reader import LineReader
from omfb.formats.csv import Csv, split
from omfb.formats.reading import Reading
from omfb.streams import DataError, base, grouped, prefetched, rows_per_block

from ..commands import low_rank, write_csv

NAMES = [f"f{i}" for i in range(6)]


@pytest.fixture(name="X")
def _rows():
    return np.round(low_rank(700, 6), 4)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Blocks, groups and buffers so small that little data have many of each."""
    monkeypatch.setattr(base, "BLOCK_BYTES", 1 << 11)
    monkeypatch.setattr(grouped, "SHUFFLE_BYTES", 1 << 13)
    monkeypatch.setattr(lines, "GROUP_BYTES", 1 << 12)


def _table(X):
    columns = {
        name: pa.array(column, from_pandas=True) for name, column in zip(NAMES, X.T, strict=True)
    }
    return pa.table(columns)


def _sparse_npz(path, X):
    observed = ~np.isnan(X)
    matrix = scipy.sparse.csr_matrix((X[observed], np.nonzero(observed)), shape=X.shape)
    scipy.sparse.save_npz(path, matrix)


def _ndjson(path, X):
    frame = pd.DataFrame(X, columns=NAMES)
    frame.to_json(path, orient="records", lines=True, double_precision=12)


def _arrow(path, X):
    with pa.ipc.new_file(str(path), _table(X).schema) as writer:
        writer.write_table(_table(X), max_chunksize=90)


FILES = {
    "x.npy": np.save,
    "x.npz": lambda path, X: np.savez_compressed(path, X=X, other=np.arange(3)),
    "columns.npz": lambda path, X: np.savez(path, np.asfortranarray(X)),
    "sparse.npz": _sparse_npz,
    "x.csv": write_csv,
    "bare.csv": lambda path, X: write_csv(path, X, header=False),
    "semicolons.csv": lambda path, X: write_csv(path, X, mark=";"),
    "index.csv": lambda path, X: pd.DataFrame(X, columns=NAMES).to_csv(path, lineterminator="\r\n"),
    "x.tsv": lambda path, X: write_csv(path, X, mark="\t"),
    "x.ndjson": _ndjson,
    "x.parquet": lambda path, X: pq.write_table(_table(X), path, row_group_size=90),
    "pandas.parquet": lambda path, X: pd.DataFrame(
        X, columns=NAMES, index=pd.Index(np.arange(len(X)) * 2, name="when")
    ).to_parquet(path),
    "x.arrow": _arrow,
}
IN_MEMORY = {
    "array": lambda X: X,
    "pandas": lambda X: pd.DataFrame(X, columns=NAMES),
    "polars": lambda X: pl.DataFrame(X, schema=NAMES),
    "dask": lambda X: da.from_array(X, chunks=(90, 4)),
    "iterator of rows": lambda X: iter(X),
    "iterator of blocks": lambda X: iter(np.array_split(X, 9)),
    "iterator of lists": lambda X: ([None if np.isnan(v) else v for v in row] for row in X),
    "iterator of sparse blocks": lambda X: _sparse_parts(X),
}


def _sparse_parts(X):
    for part in np.array_split(X, 9):
        observed = ~np.isnan(part)
        yield scipy.sparse.coo_array((part[observed], np.nonzero(observed)), shape=part.shape)


def _sources(tmp_path, X):
    """Ways to open the same rows, each as often as one likes."""
    for name, write in FILES.items():
        write(tmp_path / name, X)
        yield name, lambda name=name: open_stream(tmp_path / name)
    for name, make in IN_MEMORY.items():
        yield name, lambda make=make: open_stream(make(X))
    data = (tmp_path / "x.csv").read_bytes(), (tmp_path / "x.ndjson").read_bytes()
    for number, name in enumerate(["pipe of CSV", "pipe of NDJSON"]):
        yield name, lambda number=number: open_pipe(_Stream(data[number]))


class _Stream:
    """Bytes as a pipe brings them: in pieces of any length."""

    def __init__(self, data):
        self._data, self._at = data, 0

    def read(self, size):
        end = min(self._at + 1 + (self._at * 7919) % 3000, self._at + size)
        part, self._at = self._data[self._at : end], end
        return part


def _dense(rows):
    from omfb.core.blocks import dense_with_holes

    return dense_with_holes(rows)


def _pass(source, length, shuffle, position=None):
    rng = np.random.RandomState(5)
    blocks = [(_dense(b), p) for b, p, _ in source.blocks(length, shuffle, rng, position)]
    return blocks, rng.randint(2**31)


def test_every_source_brings_the_same_rows_in_blocks(tmp_path, X):
    for name, opened in _sources(tmp_path, X):
        source = opened()
        assert source.n_features == 6, name
        assert source.n_rows in (None, len(X)), name
        blocks, _ = _pass(source, 33, False)
        assert [len(block) for block, _ in blocks[:-1]] == [33] * (len(X) // 33), name
        np.testing.assert_array_equal(np.concatenate([b for b, _ in blocks]), X, err_msg=name)
        if source.feature_names is not None:
            assert source.feature_names == NAMES, name


def test_a_row_has_the_same_number_in_every_pass(tmp_path, X):
    """Numbers that ascend in the order of the table, whatever the order of the pass."""
    for name, opened in _sources(tmp_path, X):
        if not opened().rereadable:
            continue
        for rng in (np.random.RandomState(6), np.random.RandomState(7)):
            blocks = list(opened().blocks(33, True, rng))
            order = np.argsort(np.concatenate([block.numbers for block in blocks]))
            rows = np.concatenate([_dense(block.rows) for block in blocks])
            np.testing.assert_array_equal(rows[order], X, err_msg=name)
        assert all(block.numbers is None for block in opened().blocks(33, False, rng))


@pytest.mark.parametrize("shuffle", [False, True])
def test_every_source_goes_on_from_any_position(tmp_path, X, shuffle):
    for name, opened in _sources(tmp_path, X):
        if shuffle and not opened().rereadable:
            continue
        blocks, after = _pass(opened(), 33, shuffle)
        together = np.concatenate([block for block, _ in blocks])
        order = np.lexsort(np.nan_to_num(together, nan=99.0).T)
        expected = np.lexsort(np.nan_to_num(X, nan=99.0).T)
        np.testing.assert_array_equal(together[order], X[expected], err_msg=name)
        for at in range(0, len(blocks), 4):
            rest, after_rest = _pass(opened(), 33, shuffle, blocks[at][1])
            assert after_rest == after, name
            assert len(rest) == len(blocks) - at - 1, name
            for (a, pa_), (b, pb) in zip(rest, blocks[at + 1 :], strict=True):
                np.testing.assert_array_equal(a, b, err_msg=name)
                assert pa_ == pb, name


def test_a_shuffled_pass_over_a_file_mixes_far_apart_rows(tmp_path):
    X = np.repeat(np.arange(3000.0)[:, None], 2, axis=1)
    write_csv(tmp_path / "sorted.csv", X)
    blocks, _ = _pass(open_stream(tmp_path / "sorted.csv"), 50, True)
    values = np.concatenate([block[:, 0] for block, _ in blocks])
    assert sorted(values) == list(range(3000))
    assert abs(np.corrcoef(values, np.arange(3000))[0, 1]) < 0.5
    assert np.mean(np.abs(np.diff(values)) == 1) < 0.05


def test_fit_takes_a_path_a_stream_and_an_iterator(tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    write_csv(tmp_path / "x.csv", X)
    model = OMFB(3, shuffle=False, random_state=0, max_iter=2)
    expected = model.fit(X).components_
    np.testing.assert_array_equal(model.fit(str(tmp_path / "x.npy")).components_, expected)
    np.testing.assert_allclose(model.fit(tmp_path / "x.csv").components_, expected, rtol=1e-9)
    assert list(model.feature_names_in_) == NAMES
    np.testing.assert_allclose(
        model.fit(open_stream(tmp_path / "x.csv")).components_, expected, rtol=1e-9
    )
    with pytest.raises(ValueError, match="once only"):
        model.fit(iter(X))
    # Once, and without the last touch that only a table gets which can be read again.
    model.set_params(max_iter=1)
    once = OMFB(3, random_state=0).partial_fit(X).components_
    np.testing.assert_allclose(model.fit(iter(X)).components_, once, rtol=1e-9)
    assert not hasattr(model, "feature_names_in_")
    shuffled = OMFB(3, random_state=0, max_iter=2)
    memory = shuffled.fit(X).components_
    np.testing.assert_array_equal(shuffled.fit(tmp_path / "x.npy").components_, memory)


def test_wide_rows_are_held_until_there_are_enough_for_a_start(monkeypatch, X):
    expected = OMFB(3, shuffle=False, random_state=0).fit(X).components_
    monkeypatch.setattr(base, "BLOCK_BYTES", 1)
    assert rows_per_block(6, X.dtype, 1) == 1
    model = OMFB(3, shuffle=False, random_state=0).fit(X)
    np.testing.assert_allclose(model.components_, expected, rtol=1e-8)


@pytest.mark.parametrize("pieces", [True, False])
def test_without_pyarrow_text_is_read_all_the_same(tmp_path, X, monkeypatch, pieces):
    path = write_csv(tmp_path / "x.csv", X)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    if pieces:
        monkeypatch.setattr(lines, "GROUP_BYTES", 1 << 20)
    blocks, _ = _pass(open_stream(path), 100, False)
    np.testing.assert_array_equal(np.concatenate([b for b, _ in blocks]), X)
    (tmp_path / "x.parquet").touch()
    with pytest.raises(DataError, match=r"pip install 'omfb\[files\]'"):
        open_stream(tmp_path / "x.parquet")


def test_the_fast_and_the_careful_parser_read_the_same_numbers():
    texts = ["1", "-2.5", "", "NA", "NaN", "+3e-2", " 4 ", '"5.5"', '"NA"', "1e-320", "0.1", "null"]
    rows = [",".join(texts[i:] + texts[:i]) for i in range(len(texts))]
    form = Csv().detect([rows[0].encode()], "x", Reading(header=False))
    chunk = ("\n".join(rows) + "\n").encode()
    careful = form.parse(chunk)
    many = form.parse(chunk * (1 + (1 << 15) // len(chunk)))
    np.testing.assert_array_equal(many[: len(rows)], careful)
    assert np.isnan(careful).sum() == 5 * len(rows)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(alphabet='ab"; ,\t1.', max_size=6), min_size=1, max_size=6))
def test_a_line_splits_into_the_cells_it_was_written_from(cells):
    quoted = [f'"{cell.replace(chr(34), chr(34) * 2)}"' for cell in cells]
    line = ",".join(quoted).encode()
    assert [cell.decode() for cell in split(line, b",")] == quoted
    assert b",".join(split(line, b",")) == line


BAD_FILES = {
    "text in a cell": (
        "x.csv",
        "a,b\n1,2\n3,x\n",
        "row 2 (line 3), column 'b': 'x' is not a number",
    ),
    "infinity": ("x.csv", "1,2\n3,-inf\n", "row 2, column 2: '-inf' is infinite"),
    "digits with underscores": ("x.csv", "1,2\n1_0,2\n", "row 2, column 1: '1_0' is not a number"),
    "too few cells": ("x.csv", "a,b\n1,2\n3\n", "row 2 (line 3): 1 cell instead of 2"),
    "an open quote": ("x.csv", 'a,b\n1,"2\n3",4\n', "does not end on its line"),
    "nothing": ("x.csv", "", "the file is empty"),
    "no rows": ("x.csv", "a,b\n", "no rows"),
    "an empty first line": ("x.csv", "\n1,2\n", "the first line is empty"),
    "broken JSON": ("x.ndjson", '{"a": 1}\n{"a": \n', "row 2: not JSON"),
    "a string in JSON": ("x.ndjson", '{"a": 1}\n{"a": "2"}\n', "row 2, column 'a': \"2\" is not"),
    "a new key": ("x.ndjson", '{"a": 1}\n{"b": 2}\n', "row 2, column 'b': a key that the first"),
    "a huge number": ("x.ndjson", "[1]\n[1" + "0" * 400 + "]\n", "row 2, column 1"),
    "a short list": ("x.ndjson", "[1, 2]\n[1]\n", "row 2: not a list of 2 numbers"),
    "no array": ("x.npy", "hello", "not a NumPy array file"),
    "no archive": ("x.npz", "hello", "not a complete .npz file"),
    "no Parquet": ("x.parquet", "hello", "not a complete Parquet file"),
    "no Arrow": ("x.arrow", "hello", "not a complete Arrow file"),
    "no known ending": ("x.pickle", "hello", "cannot tell what kind of file"),
}


@pytest.mark.parametrize("name", BAD_FILES)
def test_an_error_names_the_file_the_row_and_the_column(tmp_path, name):
    file, text, message = BAD_FILES[name]
    (tmp_path / file).write_text(text)
    with pytest.raises(DataError) as caught:
        OMFB(1).fit(tmp_path / file)
    assert str(tmp_path / file) in str(caught.value)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_error_far_into_a_file_counts_its_rows_right(tmp_path, X):
    path = write_csv(tmp_path / "x.csv", X)
    rows = path.read_text().splitlines()
    rows[600] = rows[600].replace(",", ",oops", 1)
    rows.insert(100, "")
    path.write_text("\n".join(rows) + "\n")
    with pytest.raises(DataError, match=r"row 600 \(line 602\), column 'f1': 'oops"):
        OMFB(2).fit(path)


def test_a_cell_that_goes_on_in_the_next_line_is_refused_also_where_it_is_no_feature(tmp_path, X):
    path = write_csv(tmp_path / "x.csv", X)
    lines = [f"{line},ok" for line in path.read_text().splitlines()]
    lines[0], lines[20] = lines[0].replace(",ok", ",note"), lines[20].replace("ok", '"two\nlines"')
    path.write_text("\n".join(lines) + "\n")
    assert path.stat().st_size > 1 << 14  # so much that pyarrow reads it
    with pytest.raises(DataError, match=r"row 21 \(line 22\): a quoted cell does not end"):
        OMFB(2).fit(path)


def test_infinity_in_a_parquet_file_is_found(tmp_path, X):
    X[300, 2] = np.inf
    pq.write_table(_table(X), tmp_path / "x.parquet")
    with pytest.raises(DataError, match=r"row 301, column 'f2'"):
        OMFB(2).fit(tmp_path / "x.parquet")


def test_reading_ahead_gives_the_same_items_and_errors_and_ends_with_its_consumer():
    def items():
        yield from range(5)
        raise KeyError("at the end")

    ahead = prefetched(items())
    assert [next(ahead) for _ in range(5)] == list(range(5))
    with pytest.raises(KeyError, match="at the end"):
        next(ahead)
    before = threading.active_count()
    endless = prefetched(itertools.count())
    assert next(endless) == 0
    endless.close()
    assert threading.active_count() == before


def test_a_file_that_shrinks_is_an_error_and_not_garbage(tmp_path, X):
    np.save(tmp_path / "x.npy", X)
    source = open_stream(tmp_path / "x.npy")
    os.truncate(tmp_path / "x.npy", 5000)
    for shuffle in (False, True):
        with pytest.raises(DataError, match="became shorter"):
            _pass(source, 100, shuffle)


def test_lines_of_a_slow_pipe_are_not_kept_waiting_for_more():
    end, begin = os.pipe()
    with os.fdopen(end, "rb") as stream, os.fdopen(begin, "wb", buffering=0) as writer:
        reader = LineReader(stream)
        writer.write(b"a\nb\nc")
        assert reader.chunk(1000) == b"a\nb\n"
        reader.idle = lambda: writer.write(b"\n")
        assert reader.chunk(1000) == b"c\n"


def test_a_pipe_is_read_line_by_line_without_reading_ahead():
    end, begin = os.pipe()
    with os.fdopen(end, "rb") as stream, os.fdopen(begin, "wb", buffering=0) as writer:
        reader = LineReader(stream)
        waited = []
        writer.write(b"a\nb")
        assert reader.line() == b"a\n"
        reader.idle = lambda: waited.append(1) or (len(waited) == 1 and writer.write(b"b\n"))
        assert reader.line() == b"bb\n"
        assert waited  # once, unless the machine is busy


def test_reading_ahead_waits_for_nobody_who_is_stuck():
    stuck = threading.Event()

    def items():
        yield 0
        stuck.wait()

    waited = []

    def idle():
        waited.append(1)
        if len(waited) == 3:
            raise KeyboardInterrupt

    ahead = prefetched(items(), idle)
    assert next(ahead) == 0
    with pytest.raises(KeyboardInterrupt):
        next(ahead)
    assert len(waited) == 3
    stuck.set()


REFUSED = {
    "complex rows": (lambda: iter([np.array([1.0, 2.0j])]), "complex numbers"),
    "complex sparse rows": (lambda: iter([scipy.sparse.csr_array([[1j, 2]])]), "complex numbers"),
    "lists of complex numbers": (lambda: iter([[1.0, 2j]]), "complex numbers"),
    "dates": (lambda: iter([np.array(["2020-01-01", "NaT"], "M8[D]")]), "dates or times"),
    "an array of dates": (lambda: np.array([["2020-01-01", "NaT"]], "M8[D]"), "dates or times"),
    "a frame with dates": (
        lambda: pd.DataFrame({"a": [1.0], "day": pd.to_datetime(["2020-01-01"])}),
        "column 'day' holds dates",
    ),
    "text": (lambda: iter([["1", "b"]]), "non-numeric"),
    "lists of other lengths": (lambda: iter([[[1.0], [1.0, 2.0]]]), "non-numeric"),
    "rows of nothing": (lambda: iter([np.empty((3, 0))]), "an array of shape"),
    "infinity": (lambda: iter([[1.0, 2.0], [3.0, np.inf]]), "row 2, column 2"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_row_of_numbers_is_refused(name):
    make, message = REFUSED[name]
    with pytest.raises(DataError, match=message):
        _pass(open_stream(make()), 10, False)


def test_masked_entries_are_missing():
    masked = np.ma.masked_array([[1.0, 2.0], [3.0, 4.0]], [[True, False], [False, False]])
    expected = np.array([[np.nan, 2.0], [3.0, 4.0]])
    for X in (masked, iter(masked), iter([masked]), masked.astype(int)):
        np.testing.assert_array_equal(_pass(open_stream(X), 10, False)[0][0][0], expected)


def test_entries_of_a_sparse_block_that_are_there_twice_add_up():
    rows, columns = [0, 0, 0, 1], [1, 1, 0, 2]
    block = scipy.sparse.coo_array(([1.0, 2.0, 4.0, 8.0], (rows, columns)), shape=(2, 3))
    expected = [[4.0, 3.0, np.nan], [np.nan, np.nan, 8.0]]
    for kind in (block, block.tocsr(), block.astype(int)):
        np.testing.assert_array_equal(
            _pass(open_stream(iter([kind])), 10, False)[0][0][0], expected
        )


@pytest.mark.parametrize("shuffle", [False, True])
def test_infinity_is_found_without_reading_again(tmp_path, X, shuffle):
    X[300, 2] = np.inf
    np.save(tmp_path / "x.npy", X)
    for data in (tmp_path / "x.npy", X, scipy.sparse.csr_array(np.nan_to_num(X, posinf=np.inf))):
        source = open_stream(data)
        begun, blocks = [], source.blocks
        source.blocks = _counted(blocks, begun)
        with pytest.raises(DataError, match="row 301, column 3"):
            OMFB(2, shuffle=shuffle, random_state=0).fit(source)
        assert len(begun) == 1


def _counted(function, calls):
    def counted(*arguments):
        calls.append(arguments)
        return function(*arguments)

    return counted


def test_an_error_that_is_not_about_infinity_names_the_source_and_reads_nothing_again():
    source = open_stream(np.ones((3, 2)))
    source.blocks = None
    with (
        pytest.raises(DataError, match="X: too odd"),
        base.errors_about(source, np.ones((3, 2)), 3),
    ):
        raise ValueError("too odd")
