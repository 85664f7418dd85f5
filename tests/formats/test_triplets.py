"""Ratings in text files."""

import gzip

import pytest

from omfb.formats.triplets import id_of, read_triplets
from omfb.streams import DataError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), ("-3", -3), ("0", 0), ("007", "007"), ("-0", "-0"), ("1.5", "1.5"), ("", ""),
        ("+4", "+4"), ("1_0", "1_0"), ("²", "²"), ("9" * 19, "9" * 19), ("tt0111161", "tt0111161"),
    ],
)  # fmt: skip
def test_ids_are_numbers_only_where_nothing_is_lost(text, value):
    assert id_of(text) == value


@pytest.mark.parametrize(
    "content",
    [
        "user,item,rating\nann,1,4\nbob,2,3.5\n",
        "ann,1,4\nbob,2,3.5",
        "\ufeffann\t1\t4\r\nbob\t2\t3.5\r\n",
        "ann::1::4\nbob::2::3.5\n",
        'ann;1;4\n\n"bob";2;3.5\n',
    ],
)
def test_separators_and_headers_are_found(tmp_path, content):
    path = tmp_path / "ratings.csv"
    path.write_text(content, encoding="utf-8", newline="")
    assert read_triplets(path) == (["ann", "bob"], [1, 2], [4.0, 3.5], None)


def test_columns_by_name_and_by_number(tmp_path):
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(b"id,stars,when,film,who\n1,4,9,Up,ann\n2,3,8,Up,bob\n"))
    expected = (["ann", "bob"], ["Up", "Up"], [4.0, 3.0], ["9", "8"])
    assert read_triplets(path, ["who", "film", "stars", "when"]) == expected
    assert read_triplets(path, [5, 4, 2, 3]) == expected
    assert read_triplets(path, ["5", "4", "2"]) == (*expected[:3], None)


@pytest.mark.parametrize(
    ("content", "columns", "message"),
    [
        ("", None, "is empty"),
        ("user,item,rating\n", None, "a header only"),
        ("a,x,1\nb,y\n", None, "line 2 has 2 cells instead of 3"),
        ("a,x,1\nb,y,good\n", None, "line 2: 'good' is not a rating"),
        ("a,x,1\nb,y,\n", None, "line 2: '' is not a rating"),
        ("a,x,1\nb,y,nan\n", None, "line 2: 'nan' is not a rating"),
        ("a,x,1\n,y,2\n", None, "line 2: no user"),
        ("a,x,1,2,3\n", None, "5 columns: say which"),
        ("a,b,c\n1,2,3\n", ["a", "b", "d"], "no column 'd'; its first line is: a, b, c"),
        ("1,2,3\n", [1, 2, 4], "no column 4"),
    ],
)
def test_what_is_no_rating_is_refused_with_its_line(tmp_path, content, columns, message):
    path = tmp_path / "ratings.csv"
    path.write_text(content)
    with pytest.raises(DataError, match=message):
        read_triplets(path, columns)


def test_files_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "ratings.csv"
    path.write_bytes(b"a,b,1\n\xff\xfe\x00,b,2\n")
    with pytest.raises(DataError, match="not a text file"):
        read_triplets(path)
    path = tmp_path / "ratings.csv.gz"
    path.write_bytes(gzip.compress(b"a,b,1\n" * 999)[:-9])
    with pytest.raises(DataError, match="not a complete compressed file"):
        read_triplets(path)
