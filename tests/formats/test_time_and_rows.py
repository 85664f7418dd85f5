"""What a table tells of itself besides its numbers: dates, and how many rows it has."""

import gzip

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
    "ndjson": lambda frame, path: _write_lines(frame, path),
}


def _write_lines(frame, path):
    """Dates as text, as JSON has them."""
    dates = {name: frame[name].astype(str) for name in frame.select_dtypes("datetimetz")}
    dates |= {name: frame[name].astype(str) for name in frame.select_dtypes("datetime")}
    frame.assign(**dates).to_json(path, orient="records", lines=True, double_precision=15)


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


@pytest.mark.parametrize("zone", [None, "Europe/Berlin"])
@pytest.mark.parametrize("ending", WRITE)
def test_a_column_of_dates_says_when_rows_came(tmp_path, ending, zone):
    rng = np.random.default_rng(1)
    hours = pd.to_timedelta(np.cumsum(rng.integers(1, 9, N_ROWS)), unit="h")
    when = (pd.Timestamp("2024-03-30T00:30:15.25") + hours).tz_localize(zone)
    WRITE[ending](_frame(when=when), tmp_path / f"x.{ending}")
    stream = open_stream(tmp_path / f"x.{ending}")
    times = stream.row_times()
    expected = when.tz_convert(None) if zone else when
    seconds = expected.to_numpy().astype("datetime64[us]").astype(np.int64) / 1e6
    np.testing.assert_array_equal(times.last, seconds)
    assert (times.n_rows, times.fault, times.repeat) == (N_ROWS, None, None)
    assert stream.zoned == (zone is not None)
    in_order = [(rows, at) for rows, _, at in stream.timed_blocks()]
    np.testing.assert_array_equal(np.concatenate([at for _, at in in_order]), times.last)
    np.testing.assert_array_equal(
        np.concatenate([rows for rows, _ in in_order]), stream.some_rows(N_ROWS)[0]
    )


@pytest.mark.parametrize("ending", WRITE)
def test_few_wrong_times_are_found(tmp_path, ending):
    hours = pd.Series(pd.date_range("2024", periods=100, freq="h"))
    for name, wrong in {"fault": hours[3], "repeat": hours[59], "missing": pd.NaT}.items():
        when = hours.where(hours.index != 60, wrong)
        path = tmp_path / f"{name}.{ending}"
        WRITE[ending](_frame().iloc[[0] * 100].reset_index(drop=True).assign(when=when), path)
        times = open_stream(path).row_times()
        assert times.repeat == (60 if name == "repeat" else None)
        assert times.fault == (None if name == "repeat" else 60)


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
        (tmp_path / "x.csv.gz").write_bytes(gzip.compress((tmp_path / "x.csv").read_bytes()))
        assert open_stream(tmp_path / "x.csv").n_rows == N_ROWS + 1
        assert open_stream(tmp_path / "x.csv.gz").n_rows == N_ROWS + 1
        monkeypatch.setattr(_lines, "GROUP_BYTES", 100)
        assert open_stream(tmp_path / "x.csv").n_rows is None
        assert open_stream(tmp_path / "x.csv.gz").n_rows is None
