"""CSV: which mark separates cells, and columns of the same name."""

import io

import numpy as np
import pytest

from omfb.formats import open_pipe, open_stream
from omfb.formats.csv import marks_in, quoted, split
from omfb.formats.reading import Reading


def rows_of(source):
    blocks = source.blocks(20, False, np.random.RandomState(0))
    return np.concatenate([block.rows for block in blocks])


def notes_of(source):
    return " ".join(note.shown("--{}".format) for note in source.notes)


SEPARATORS = {
    "a semicolon in a name": ("temp;C,wind\n1.5,2\n3,4\n", ["temp;C", "wind"], "."),
    "a bar in a name": ("temp|C,wind\n1.5,2\n3,4\n", ["temp|C", "wind"], "."),
    "a tab in a name": ("temp\tC,wind\n1.5,2\n3,4\n", ["temp\tC", "wind"], "."),
    "one column": ("price;EUR\n1.5\n3\n", ["price;EUR"], "."),
    "semicolons": ("a;b\n1.5;2\n3;4\n", ["a", "b"], "."),
    "bars": ("a|b\n1.5|2\n3|4\n", ["a", "b"], "."),
    "decimal commas": ("a;b\n1,5;2\n3;4\n", ["a", "b"], ","),
    "a comma in a name": ("temp,C;wind\n1,5;2\n3;4\n", ["temp,C", "wind"], ","),
    "a quoted name": ('"temp;C,x",wind\n1.5,2\n3,4\n', ["temp;C,x", "wind"], "."),
}


@pytest.mark.parametrize("kind", SEPARATORS)
def test_the_separator_is_the_mark_that_splits_all_lines_alike(tmp_path, kind):
    text, names, decimal = SEPARATORS[kind]
    (tmp_path / "x.csv").write_text(text)
    expected = np.array([[1.5, 2.0], [3.0, 4.0]])[:, : len(names)]
    for source in (
        open_stream(tmp_path / "x.csv", decimal=decimal),
        open_pipe(io.BytesIO(text.encode()), "csv", Reading.of(decimal=decimal)),
    ):
        assert source.feature_names == names
        np.testing.assert_array_equal(rows_of(source), expected)


def test_a_line_of_the_wrong_length_does_not_change_the_separator(tmp_path):
    (tmp_path / "x.csv").write_text("a;x,b\n1,2\n3\n4,5\n")
    with pytest.raises(ValueError, match=r"row 2 \(line 3\): 1 cell instead of 2"):
        rows_of(open_stream(tmp_path / "x.csv"))


def test_the_decimal_mark_is_not_taken_for_a_separator():
    assert marks_in(b"1,5;2,5", Reading.of()) == [b";", b","]
    assert marks_in(b"1,5;2,5", Reading.of(decimal=",")) == [b";"]
    assert marks_in(b'"1;5","2;5"', Reading.of()) == [b","]


def test_columns_of_the_same_name_get_a_suffix_and_can_be_excluded(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b,a,a.1,a\n1,2,3,4,5\n6,7,8,9,10\n")
    source = open_stream(path)
    assert source.feature_names == ["a", "b", "a.2", "a.1", "a.3"]
    assert "column 3 is called 'a' as well: it is 'a.2' here" in notes_of(source)
    without = open_stream(path, exclude="a.2,a.3")
    assert without.feature_names == ["a", "b", "a.1"]
    np.testing.assert_array_equal(rows_of(without), [[1, 2, 4], [6, 7, 9]])
    assert open_stream(path, columns="a.3").feature_names == ["a.3"]


def test_a_model_finds_a_column_by_its_suffix(tmp_path):
    (tmp_path / "x.csv").write_text("a,a\n1,2\n3,4\n")
    source = open_stream(tmp_path / "x.csv", model_features=["a.1", "a"])
    np.testing.assert_array_equal(rows_of(source), [[2, 1], [4, 3]])


@pytest.mark.parametrize("mark", [b",", b";", b"\t", b"|"])
def test_names_are_quoted_so_that_they_split_into_themselves(mark):
    names = ["plain", "a,b;c\td|e", 'with "quotes"', ""]
    line = mark.join(quoted(name, mark) for name in names)
    assert len(split(line, mark)) == len(names)
