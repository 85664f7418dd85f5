"""Text files that cannot be read as meant: the message says why, and what helps."""

import gzip
import io

import numpy as np
import pytest

from omfb.formats import open_pipe, open_stream
from omfb.formats.reading import Reading
from omfb.streams.base import DataError

REFUSED = {
    "UTF-16": ("a,b\n1,2\n".encode("utf-16"), "zero bytes, as UTF-16 and binary files do"),
    "UTF-16 without a mark": ("a,b\n1,2\n".encode("utf-16-le"), "zero bytes"),
    "percentages": (b"a,b\n1%,2%\n3%,4%\n", "no column holds numbers: column 'a' has '1%', "),
    "blanks between numbers": (
        b"a b\n1 2\n3 4\n",
        "column 'a b' has '1 2'",
    ),
    "text without names": (
        b"x,y,z,u\nv,w,z,u\n",
        "column 'x' has 'v', .*…",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_table_of_numbers_is_shown(tmp_path, case):
    content, message = REFUSED[case]
    (tmp_path / "x.csv").write_bytes(content)
    (tmp_path / "x.csv.gz").write_bytes(gzip.compress(content))
    for name in ("x.csv", "x.csv.gz"):
        with pytest.raises(DataError, match=message):
            open_stream(tmp_path / name)
    with pytest.raises(DataError, match=message):
        open_pipe(io.BytesIO(content), "csv", Reading())


@pytest.mark.parametrize(
    ("cell", "hint"),
    [("-", "missing"), ("?", "missing"), ("..", "missing"), ("n/a", "missing"),
     ("#N/A!", "exclude"), ("<NA>", "missing"), ("None", "missing"),
     ("bad9", "exclude"), ("x", "exclude")],
)  # fmt: skip
def test_a_mark_for_missing_values_is_taken_for_one_if_the_user_says_so(tmp_path, cell, hint):
    (tmp_path / "x.csv").write_text(f"a,b\n1,2\n3,{cell}\n5,6\n")
    with pytest.raises(DataError, match=rf"column 'b': .* is not a number; .*\({hint}=\)"):
        np.concatenate([block.rows for block in _blocks(open_stream(tmp_path / "x.csv"))])
    marked = open_stream(tmp_path / "x.csv", missing=cell)
    assert np.isnan(np.concatenate([block.rows for block in _blocks(marked)])).sum() == 1


def _blocks(source):
    return source.blocks(20, False, np.random.RandomState(0))


@pytest.mark.parametrize("day", ["{:02d}.01.2024", "{:02d}/01/24 10:00", "1/{:02d}/2024"])
def test_dates_that_may_be_read_in_two_ways_are_told(tmp_path, day):
    lines = [f"{day.format(i + 1)},{i}.5,{i}.25\n" for i in range(20)]
    (tmp_path / "x.csv").write_text("".join(["t,a,b\n", *lines]))
    source = open_stream(tmp_path / "x.csv")
    assert source.time_column is None
    assert any("'t' seems to hold dates" in note.message for note in source.notes)


def test_a_folder_is_told_from_a_file(tmp_path):
    with pytest.raises(DataError, match=r"a folder\. Give one of the files"):
        open_stream(tmp_path)
