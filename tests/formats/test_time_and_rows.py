"""What a table tells of itself besides its numbers: dates, and how many rows it has."""

import numpy as np
import pandas as pd
import pytest

from omfb.formats import _lines, open_stream

N_ROWS = 30
WRITE = {
    "csv": lambda frame, path: frame.to_csv(path, index=False),
    "tsv": lambda frame, path: frame.to_csv(path, index=False, sep="\t"),
    "parquet": lambda frame, path: frame.to_parquet(path),
    "arrow": lambda frame, path: frame.to_feather(path, compression="uncompressed"),
}


def _frame(**more):
    rows = np.random.default_rng(0).random((N_ROWS, 2))
    return pd.DataFrame(rows, columns=["a", "b"]).assign(**more)


@pytest.mark.parametrize("ending", WRITE)
def test_rising_dates_tell_that_rows_are_in_time(tmp_path, ending):
    days = pd.date_range("2020", periods=N_ROWS)
    cases = {
        "rising": (days, "when"),
        "falling": (days[::-1], None),
        "the same": ([days[0]] * N_ROWS, None),
        "one missing": (days.where(days != days[5]), None),
    }
    for name, (dates, expected) in cases.items():
        WRITE[ending](_frame(text="x", when=dates), tmp_path / f"{name}.{ending}")
        stream = open_stream(tmp_path / f"{name}.{ending}")
        assert stream.time_column == expected, name
        assert stream.feature_names == ["a", "b"]
    WRITE[ending](_frame(), tmp_path / f"none.{ending}")
    assert open_stream(tmp_path / f"none.{ending}").time_column is None


@pytest.mark.parametrize(
    ("text", "is_time"),
    [
        ("2020-01-{:02d}", True),
        ("2020/01/{:02d} 10:00", True),
        ('"2020-01-{:02d}T10:00:00+01:00"', True),
        ("day {:02d}", False),
        ("{:02d}:00", False),
    ],
)
def test_dates_are_known_by_the_way_they_are_written(tmp_path, text, is_time):
    lines = [f"{text.format(i + 1)},{i}.5,{i}.25\n" for i in range(20)]
    (tmp_path / "x.csv").write_text("".join(["t,a,b\n", *lines]))
    assert open_stream(tmp_path / "x.csv").time_column == ("t" if is_time else None)
    (tmp_path / "bare.csv").write_text("".join(lines))
    assert open_stream(tmp_path / "bare.csv").time_column == ("1" if is_time else None)


@pytest.mark.parametrize("ending", WRITE)
def test_a_short_table_knows_its_rows(tmp_path, ending, monkeypatch):
    WRITE[ending](_frame(), tmp_path / f"x.{ending}")
    assert open_stream(tmp_path / f"x.{ending}").n_rows == N_ROWS
    if ending == "csv":
        with (tmp_path / "x.csv").open("a") as stream:
            stream.write("\n\n1,2")  # blank lines are no rows, and the last may not end
        assert open_stream(tmp_path / "x.csv").n_rows == N_ROWS + 1
        monkeypatch.setattr(_lines, "GROUP_BYTES", 100)
        assert open_stream(tmp_path / "x.csv").n_rows is None
