"""`omfb forecast` as a user types it."""

import io
import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from omfb import OMFBImputer
from omfb.cli import app


def run(*words, check=True, data=None):
    done = CliRunner().invoke(app, [str(word) for word in words], input=data)
    assert done.exit_code == 0 or not check, done.stderr
    return done


@pytest.fixture
def series(tmp_path):
    """Hours of four sensors with a daily cycle, some missing, and the hours after them."""
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=1000, freq="h")
    hour = 2.0 * np.pi * np.arange(1000)[:, None] / 24.0
    Y = 10.0 * np.sin(hour + np.arange(4)) + rng.normal(size=(1000, 4))
    frame = pd.DataFrame(Y, columns=list("abcd"))
    frame.insert(0, "time", times)
    given = frame[:-24].copy()
    given.iloc[rng.integers(0, 900, 200), 2] = np.nan
    given.to_csv(tmp_path / "sensors.csv", index=False)
    return tmp_path, Y[-24:]


def test_a_forecast_of_a_file_with_dates(series):
    folder, truth = series
    run("fit", folder / "sensors.csv", "-o", folder / "m.omfb")
    out = folder / "ahead.csv"
    run("forecast", folder / "m.omfb", "--steps", "24", "--interval", "0.9", "-o", out)
    made = pd.read_csv(out)
    assert list(made.columns[:5]) == ["time", *"abcd"]
    expected = pd.date_range("2024-01-01", periods=1000, freq="h")[-24:]
    assert list(pd.to_datetime(made["time"])) == list(expected)
    assert np.sqrt(np.mean((made[list("abcd")] - truth).to_numpy() ** 2)) < 2.0
    low, high = (made[[f"{name}_{side}" for name in "abcd"]] for side in ("low", "high"))
    assert 0.75 < np.mean((low.to_numpy() <= truth) & (truth <= high.to_numpy())) <= 1.0


@pytest.mark.parametrize("ending", ["csv", "ndjson", "parquet", "arrow"])
def test_a_file_with_dates_is_a_frame_with_times(series, ending):
    """Gaps between rows, the calendar and the times of forecasts count alike."""
    folder, _ = series
    frame = pd.read_csv(folder / "sensors.csv", parse_dates=["time"]).drop(index=range(400, 430))
    write = {"csv": pd.DataFrame.to_csv, "parquet": pd.DataFrame.to_parquet}
    path = folder / f"x.{ending}"
    if ending == "ndjson":
        rows = frame.assign(time=frame["time"].astype(str)).to_dict("records")
        path.write_text("".join(json.dumps(row).replace("NaN", "null") + "\n" for row in rows))
    elif ending == "arrow":
        frame.reset_index(drop=True).to_feather(path, compression="uncompressed")
    else:
        write[ending](frame, path, index=False)
    frame = pd.read_csv(folder / "sensors.csv", parse_dates=["time"]).drop(index=range(400, 430))
    run("fit", path, "--seed", "0", "--no-shuffle", "-o", folder / "m.omfb")
    ours = OMFBImputer.load(folder / "m.omfb")
    theirs = OMFBImputer(shuffle=False, random_state=0).fit(frame.set_index("time"))
    expected = theirs.forecast(6)
    pd.testing.assert_frame_equal(ours.forecast(6), expected, rtol=1e-6)
    run("forecast", folder / "m.omfb", "-n", "6", "-o", folder / f"f.{ending}")
    run("complete", path, "-m", folder / "m.omfb", "-o", folder / f"y.{ending}")
    read = {
        "csv": pd.read_csv, "parquet": pd.read_parquet, "arrow": pd.read_feather,
        "ndjson": lambda path: pd.read_json(path, lines=True),
    }[ending]  # fmt: skip
    made = read(folder / f"f.{ending}")
    assert list(pd.to_datetime(made["time"])) == list(expected.index)
    filled = theirs.complete(frame.set_index("time"))
    np.testing.assert_allclose(
        read(folder / f"y.{ending}")[list("abcd")], filled[list("abcd")], rtol=1e-6
    )


def test_a_pipe_with_dates_is_filled_by_them(series):
    folder, _ = series
    run("fit", folder / "sensors.csv", "--seed", "0", "-q", "-o", folder / "m.omfb")
    model = OMFBImputer.load(folder / "m.omfb")
    head = pd.read_csv(folder / "sensors.csv", parse_dates=["time"]).iloc[700:720]
    head = head.drop(index=range(703, 712))  # nine hours without a row
    head.iloc[-8, 1:] = np.nan
    text = head.to_csv(index=False).encode()
    done = run("complete", "-", "-m", folder / "m.omfb", "-q", data=text)
    made = pd.read_csv(io.StringIO(done.stdout)).iloc[-8, 1:].to_numpy(np.float64)
    for use, same in ((head.set_index("time"), True), (head.iloc[:, 1:], False)):
        expected = np.asarray(model.complete(use[:-7]))[-1]
        assert np.allclose(made, expected, rtol=1e-6) is same


def test_times_that_fall_or_repeat_are_told_once(series):
    folder, _ = series
    frame = pd.read_csv(folder / "sensors.csv")
    for wrong, words in ((3, "do not rise"), (499, "repeat at row")):
        other = frame.copy()
        other.loc[500, "time"] = frame["time"][wrong]
        other.to_csv(folder / "x.csv", index=False)
        done = run("fit", folder / "x.csv", "--seed", "0", "-o", folder / "m.omfb")
        assert done.stderr.count(words) == 1
        assert "row 501" in done.stderr
        assert ("rows are in time" in done.stderr) is (words != "do not rise")
        model = OMFBImputer.load(folder / "m.omfb")
        assert model.learner_.is_temporal is (words != "do not rise")
    run("fit", folder / "sensors.csv", "--seed", "0", "-o", folder / "m.omfb")
    done = run("complete", folder / "x.csv", "-m", folder / "m.omfb", "-o", folder / "y.csv")
    assert done.stderr.count("repeat at row") == 1


def test_rows_that_are_not_in_time_have_no_forecast(tmp_path):
    OMFBImputer().fit(np.random.default_rng(0).normal(size=(50, 3))).save(tmp_path / "m.omfb")
    done = run("forecast", tmp_path / "m.omfb", check=False)
    assert done.exit_code == 2
    assert "not in time" in done.stderr
    assert done.stderr.count("\n") == 1


def test_steps_and_levels_that_mean_nothing_are_refused(series):
    folder, _ = series
    run("fit", folder / "sensors.csv", "-o", folder / "m.omfb")
    for words in (["--steps", "0"], ["--interval", "2"]):
        done = run("forecast", folder / "m.omfb", *words, check=False)
        assert done.exit_code == 2
        assert words[0].removeprefix("--")[:5] in done.stderr or "level" in done.stderr


def test_a_forecast_is_reported_as_text_page_and_picture(series):
    folder, _ = series
    frame = pd.read_csv(folder / "sensors.csv").rename(columns={"b": "b<i>"})
    frame.to_csv(folder / "x.csv", index=False)
    run("fit", folder / "x.csv", "--seed", "0", "-q", "-o", folder / "m.omfb")
    words = ["forecast", folder / "m.omfb", "-n", "24", "-o", folder / "f.csv", "--report"]
    lines = [line.split() for line in run(*words, "-").stdout.splitlines()]
    made = pd.read_csv(folder / "f.csv")
    model = OMFBImputer.load(folder / "m.omfb")
    low, high = (side.iloc[-1] for side in model.forecast(24, level=0.9)[1:])
    assert [line[0] for line in lines] == ["column", "a", "b<i>", "c", "d"]
    for name, last, first, _, _, _, end, at_low, _, at_high in lines[1:]:
        expected = [frame[name].dropna().iloc[-1], made[name].iloc[0], made[name].iloc[-1]]
        expected += [low[name], high[name]]
        told = [float(number) for number in (last, first, end, at_low, at_high)]
        np.testing.assert_allclose(told, expected, rtol=1e-3)
    assert list(made) == ["time", "a", "b<i>", "c", "d"]  # bounds only with --interval
    run(*words, folder / "r.txt")
    assert (folder / "r.txt").read_text() == run(*words, "-").stdout
    run(*words, folder / "r.html")
    page = (folder / "r.html").read_text()
    assert page.count("<svg") == 1
    assert "b&lt;i&gt;" in page
    assert "<i>" not in page
    assert not any(mark in page for mark in ("$", 'id="claims"', "results.csv"))
    for kind, beginning in {"png": b"\x89PNG", "svg": b"<?xml"}.items():
        run(*words, folder / f"r.{kind}")
        assert (folder / f"r.{kind}").read_bytes().startswith(beginning)


def test_reports_replace_reports_only(series):
    folder, _ = series
    run("fit", folder / "sensors.csv", "-q", "-o", folder / "m.omfb")
    words = ["forecast", folder / "m.omfb", "-o", folder / "f.csv", "--report"]
    for wrong in (folder / "sensors.csv", folder / "m.omfb", folder / "f.csv", folder):
        done = run(*words, wrong, check=False)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert not (folder / "f.csv").exists()
    done = run("forecast", folder / "m.omfb", "--report", "-", check=False)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "cannot both be printed" in done.stderr


def test_a_report_counts_rows_where_there_are_no_times(tmp_path):
    rng = np.random.default_rng(0)
    X = np.sin(np.arange(200) / 4.0)[:, None] + 0.1 * rng.normal(size=(200, 9))
    OMFBImputer(temporal=True, random_state=0).fit(X).save(tmp_path / "m.omfb")
    run("forecast", tmp_path / "m.omfb", "-n", "9", "-o", tmp_path / "f.csv",
        "--report", tmp_path / "r.html")  # fmt: skip
    page = (tmp_path / "r.html").read_text()
    assert "rows ahead" in page
    assert "the first 6 of 9 columns" in page
