"""What is taken for names, an index, numbers or text, and what the user can say about it."""

import gzip

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy.sparse

from omfb import OMFB
from omfb.formats import _lines as lines
from omfb.formats import compression, open_stream
from omfb.formats import open_pipe as piped
from omfb.streams import DataError

from ..commands import low_rank


@pytest.fixture(name="frame")
def _frame():
    X = np.round(low_rank(50, 4), 3)
    frame = pd.DataFrame(X, columns=["temp_a", "temp_b", "wind", "rain"])
    frame.insert(0, "when", pd.date_range("2020", periods=50).astype(str))
    frame.insert(3, "city", ["Paris", "Oslo"] * 25)
    return frame


def _rows(source):
    blocks = source.blocks(20, False, np.random.RandomState(0))
    return np.concatenate([block.rows for block in blocks])


def _notes(source):
    return " ".join(note.shown("--{}".format) for note in source.notes)


NUMBERS = ["temp_a", "temp_b", "wind", "rain"]


def _write(frame, path):
    if "ndjson" in path.name:
        frame.to_json(path, orient="records", lines=True, double_precision=12)
    elif path.suffix == ".parquet":
        frame.to_parquet(path)
    else:
        frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize("name", ["x.csv", "x.ndjson", "x.parquet", "x.csv.gz", "x.ndjson.gz"])
def test_columns_of_text_and_dates_are_no_features(tmp_path, frame, name):
    source = open_stream(_write(frame, tmp_path / name))
    assert source.feature_names == NUMBERS
    np.testing.assert_allclose(_rows(source), frame[NUMBERS])
    if "parquet" not in name:
        assert "when" in _notes(source)
        assert "--columns" in _notes(source)


CHOICES = {
    "a pattern": ({"columns": "temp_*"}, ["temp_a", "temp_b"]),
    "a list": ({"columns": ["wind", "temp_?"]}, ["wind", "temp_a", "temp_b"]),
    "all but one": ({"exclude": "wind"}, ["temp_a", "temp_b", "rain"]),
    "all but a pattern": ({"exclude": "temp_*"}, ["wind", "rain"]),
    "both": ({"columns": "temp_*,rain", "exclude": ["temp_b"]}, ["temp_a", "rain"]),
}


@pytest.mark.parametrize("name", ["x.csv", "x.ndjson", "x.parquet"])
@pytest.mark.parametrize("choice", CHOICES)
def test_columns_are_chosen_by_names_and_patterns(tmp_path, frame, name, choice):
    options, expected = CHOICES[choice]
    source = open_stream(_write(frame, tmp_path / name), **options)
    assert source.feature_names == expected
    np.testing.assert_allclose(_rows(source), frame[expected])


def test_a_name_that_is_not_there_gives_the_nearest(tmp_path, frame):
    for name in ("x.csv", "x.parquet"):
        path = _write(frame, tmp_path / name)
        for options in ({"columns": "wnid"}, {"exclude": "wnid"}, {"model_features": ["wnid"]}):
            with pytest.raises(DataError, match=r"'wnid' is not there. Did you mean 'wind'"):
                open_stream(path, **options)
        with pytest.raises(DataError, match=r"no column matches 'hum\*'"):
            open_stream(path, columns="hum*")
    source = open_stream(_write(frame, tmp_path / "x.ndjson"), columns="wnid,rain")
    assert "Did you mean 'wind'" in _notes(source)


def test_a_number_that_is_text_later_is_an_error_that_names_its_place(tmp_path):
    body = "".join(f"{i}.5,a{i}\n" for i in range(4000))
    (tmp_path / "x.csv").write_text("v,name\n" + body + "oops,b\n")
    with pytest.raises(DataError, match=r"row 4001 \(line 4002\), column 'v': 'oops'") as caught:
        _rows(open_stream(tmp_path / "x.csv"))
    assert "(exclude=)" in str(caught.value)
    assert "--" not in str(caught.value)
    assert "(--exclude)" in caught.value.shown("--{}".format)


def test_the_library_names_its_own_parameters(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n3,x\n")
    with pytest.raises(ValueError, match="column 'b'") as caught:
        OMFB(1).fit(tmp_path / "x.csv")
    assert "--" not in str(caught.value)
    np.save(tmp_path / "x.npy", np.eye(3))
    with pytest.raises(DataError, match=r"\(columns=\)"):
        open_stream(tmp_path / "x.npy", columns="1")


HEADERS = {
    "pandas without names": ("0,1,2\n1.5,2.5,3.5\n", ["0", "1", "2"], True),
    "pandas with an index": (",0,1\n0,1.5,2.5\n1,1.5,2.5\n", ["0", "1"], True),
    "whole numbers below": ("0,1,2,3\n7,8,9,9\n", ["0", "1", "2", "3"], True),
    "years": ("land,2019,2020\nDE,1.5,2\nFR,2.5,3\n", ["2019", "2020"], True),
    "a saved index": ("Unnamed: 0,a\n0,1.5\n1,2.5\n", ["a"], True),
    "two whole numbers": ("0,1\n1,0\n1,1\n", None, False),
    "three whole numbers": ("0,1,2\n1,0,7\n1,1,5\n", None, True),
    "columns from 1": ("1,2,3,4\n4.5,5,6,7\n", ["1", "2", "3", "4"], True),
    "whole numbers from 1": ("1,2,3,4\n4,5,6,7\n", None, True),
    "from 1, but few": ("1,2,3\n4.5,5,6\n", None, True),
    "just rows": ("1,2,4\n4.5,5,6\n", None, False),
    "an index with its name": ("index,a\n0,1.5\n1,2.5\n2,2.5\n", ["a"], True),
    "a column called index": ("index,a\n0,1.5\n7,2.5\n2,2.5\n", ["index", "a"], False),
    "rows that begin with text": ("DE,1.5,2\nFR,2.5,3\n", None, True),
    "names": ("a,b\n1,2\n", ["a", "b"], False),
    "names above text only": ("a,b\nx,1\ny,2\n", ["b"], True),
}


@pytest.mark.parametrize("case", HEADERS)
def test_headers_are_recognised_and_doubt_is_told(tmp_path, case):
    text, names, doubt = HEADERS[case]
    (tmp_path / "x.csv").write_text(text)
    source = open_stream(tmp_path / "x.csv")
    assert source.feature_names == names
    assert bool(source.notes) == doubt
    assert len(_rows(source)) == text.count("\n") - (names is not None)


def test_a_column_that_counts_rows_is_an_index_where_there_are_no_names(tmp_path):
    (tmp_path / "x.csv").write_text("".join(f"{i},{i % 7}.5,{i % 5}\n" for i in range(30)))
    source = open_stream(tmp_path / "x.csv")
    assert source.n_features == 2
    assert "counts the rows" in _notes(source)
    assert open_stream(tmp_path / "x.csv", columns="1-3").n_features == 3
    (tmp_path / "y.csv").write_text("".join(f"{i},{i % 7}.5\n" for i in (0, 1, 3)))
    assert open_stream(tmp_path / "y.csv").n_features == 2


TEXTS = {
    "decimal comma": ("a;b\n1,5;2\n;-3,25\n", {"decimal": ","}),
    "quoted decimal comma": ('a,b\n"1,5","2"\n,"-3,25"\n', {"decimal": ","}),
    "groups": ("a;b\n1.5;2\n-999;-3.25\n", {"missing": -999}),
    "other marks": ("a\tb\n1.5\t2\n?\t-3.25\n", {"missing": ["?", "none"]}),
}


@pytest.mark.parametrize("case", TEXTS)
@pytest.mark.parametrize("times", [1, 3000])
def test_marks_of_other_tables_are_read(tmp_path, case, times):
    text, options = TEXTS[case]
    header, _, body = text.partition("\n")
    (tmp_path / "x.csv").write_text(header + "\n" + body * times)
    rows = _rows(open_stream(tmp_path / "x.csv", **options))
    np.testing.assert_array_equal(rows, np.tile([[1.5, 2], [np.nan, -3.25]], (times, 1)))


@pytest.mark.parametrize("times", [1, 3000])
def test_groups_of_digits_are_read_and_nothing_else_is_taken_for_them(tmp_path, times):
    path = tmp_path / "x.csv"
    options = {"thousands": ".", "decimal": ","}
    path.write_text("a;b\n" + "1.234.567,5;12\n-1.000;1\n" * times)
    rows = _rows(open_stream(path, **options))
    np.testing.assert_array_equal(rows, np.tile([[1234567.5, 12], [-1000, 1]], (times, 1)))
    path.write_text("a;b\n" + "1.234;2\n" * times + "1.5;2\n")
    with pytest.raises(DataError, match=rf"row {times + 1} .*'1.5' is not a number"):
        _rows(open_stream(path, **options))
    path.write_text("a,b\n" + '"1,234",2\n' * times)
    with pytest.raises(DataError, match=r"row 1 .*column 'a'.*\(decimal=\)"):
        _rows(open_stream(path))
    np.testing.assert_array_equal(_rows(open_stream(path, thousands=","))[0], [1234, 2])


def test_marks_are_numbers_in_every_format(tmp_path):
    X = np.array([[1.0, -999.0], [2.0, 3.0], [-999.0, 5.0]])
    expected = np.where(X == -999, np.nan, X)
    np.save(tmp_path / "x.npy", X.astype(int))
    np.savez(tmp_path / "x.npz", X)
    pd.DataFrame(X, columns=["a", "b"]).to_parquet(tmp_path / "x.parquet")
    _write(pd.DataFrame(X, columns=["a", "b"]), tmp_path / "x.ndjson")
    for name in ("x.npy", "x.npz", "x.parquet", "x.ndjson"):
        np.testing.assert_array_equal(_rows(open_stream(tmp_path / name, missing="-999")), expected)
    np.testing.assert_array_equal(_rows(open_stream(X, missing=-999)), expected)


@pytest.mark.parametrize("name", ["x.csv.gz", "x.csv.zst"])
def test_compressed_text_goes_on_from_any_position(tmp_path, frame, name, monkeypatch):
    monkeypatch.setattr(lines, "GROUP_BYTES", 1 << 10)
    path = tmp_path / name
    data = frame[NUMBERS].to_csv(index=False).encode()
    if name.endswith("gz"):
        path.write_bytes(gzip.compress(data))
    else:
        with pa.output_stream(str(path), compression="zstd") as stream:
            stream.write(data)
    blocks = list(open_stream(path).blocks(7, True, np.random.RandomState(1)))
    rest = list(open_stream(path).blocks(7, True, np.random.RandomState(1), blocks[2][1]))
    assert len(blocks) == 8
    for (a, _, _), (b, _, _) in zip(blocks[3:], rest, strict=True):
        np.testing.assert_array_equal(a, b)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match="not a complete compressed file"):
        _rows(open_stream(path))


def test_a_bomb_stops_at_a_bound(tmp_path, monkeypatch):
    monkeypatch.setattr(compression, "ALWAYS_ALLOWED", 1 << 20)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(b"1,2,3\n" * (1 << 20)))
    with pytest.raises(DataError, match="more than 200 times its size"):
        _rows(open_stream(tmp_path / "x.csv.gz"))
    nothing = scipy.sparse.csr_matrix((np.zeros(1 << 20), (np.arange(1 << 20),) * 2))
    scipy.sparse.save_npz(tmp_path / "x.npz", nothing)
    monkeypatch.setattr(compression, "LARGEST_RATIO", 2)
    with pytest.raises(DataError, match="more than 2 times its size"):
        open_stream(tmp_path / "x.npz")


def test_a_pipe_tells_its_columns_as_a_file_does(tmp_path, frame):
    import io

    source = piped(io.BytesIO(frame.to_csv(index=False).encode()))
    assert source.feature_names == NUMBERS
    np.testing.assert_allclose(_rows(source), frame[NUMBERS])
