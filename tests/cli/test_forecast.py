"""`omfb forecast` as a user types it."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from omfb import OMFBImputer
from omfb.cli import app


def run(*words, check=True):
    done = CliRunner().invoke(app, [str(word) for word in words])
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
    assert list(made.columns[:5]) == ["ahead", *"abcd"]
    assert list(made["ahead"]) == list(range(1, 25))
    assert np.sqrt(np.mean((made[list("abcd")] - truth).to_numpy() ** 2)) < 2.0
    low, high = (made[[f"{name}_{side}" for name in "abcd"]] for side in ("low", "high"))
    assert 0.75 < np.mean((low.to_numpy() <= truth) & (truth <= high.to_numpy())) <= 1.0


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
