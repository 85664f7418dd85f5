"""`omfb complete --max-gap` and `--max-std`: what is not known stays empty."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from omfb import OMFBImputer
from omfb.cli import app
from omfb.formats import _lines


def run(*words, check=True, data=None):
    done = CliRunner().invoke(app, [str(word) for word in words], input=data)
    assert done.exit_code == 0 or not check, done.stderr
    return done


@pytest.fixture(scope="module")
def series(tmp_path_factory):
    """Hours of five sensors with gaps of all lengths, and a model of them."""
    folder = tmp_path_factory.mktemp("gaps")
    rng = np.random.default_rng(0)
    times = pd.date_range("2024-01-01", periods=600, freq="h", name="time")
    walk = np.cumsum(rng.normal(size=(600, 2)), axis=0) @ rng.normal(size=(2, 5))
    frame = pd.DataFrame(walk + 0.3 * rng.normal(size=(600, 5)), times, list("abcde"))
    for at, (column, length) in enumerate(zip("abcde" * 4, range(1, 21), strict=True)):
        frame.loc[times[20 * at + 40 : 20 * at + 40 + length], column] = np.nan
    frame.loc[times[500:530]] = np.nan
    frame.loc[times[590:], "b"] = np.nan
    frame.to_csv(folder / "x.csv")
    frame.to_parquet(folder / "x.parquet")
    run("fit", folder / "x.csv", "--seed", "0", "-q", "-o", folder / "m.omfb")
    return folder, frame


@pytest.mark.parametrize("limit", [{"max_gap": 5}, {"max_gap": "6h"}, {"max_std": 0.3}])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_are_filled_as_far_as_frames(series, tmp_path, monkeypatch, limit, ending):
    folder, frame = series
    (name, value), out = next(iter(limit.items())), tmp_path / f"y.{ending}"
    words = ["complete", folder / f"x.{ending}", "-m", folder / "m.omfb", "-o", out]
    words += [f"--{name.replace('_', '-')}", value]
    done = run(*words, "--report", tmp_path / "r.txt")
    made = pd.read_csv(out) if ending == "csv" else pd.read_parquet(out)
    expected = OMFBImputer.load(folder / "m.omfb").complete(frame, **limit)
    np.testing.assert_allclose(made[list("abcde")], expected, rtol=1e-6)
    left, missing = int(expected.isna().sum().sum()), int(frame.isna().sum().sum())
    assert 0 < left < missing
    assert f"{missing - left} values filled, {left} left empty" in done.stderr
    lines = [line.split() for line in (tmp_path / "r.txt").read_text().splitlines()[1:]]
    assert sum(int(line[3]) for line in lines) == left
    assert sum(int(line[2]) for line in lines) == missing - left


def test_gaps_may_reach_over_blocks_of_a_file(series, tmp_path, monkeypatch):
    folder, frame = series
    monkeypatch.setattr(_lines, "GROUP_BYTES", 500)
    run("complete", folder / "x.csv", "-m", folder / "m.omfb", "-o", tmp_path / "y.csv",
        "--max-gap", "5")  # fmt: skip
    expected = OMFBImputer.load(folder / "m.omfb").complete(frame, max_gap=5)
    made = pd.read_csv(tmp_path / "y.csv").iloc[:, 1:]
    np.testing.assert_array_equal(made.isna(), expected.isna())


def test_cells_that_are_left_stay_as_they_are(series, tmp_path):
    folder, frame = series
    marked = frame.to_csv(na_rep="NA").encode()
    (tmp_path / "x.csv").write_bytes(marked)
    words = ["complete", tmp_path / "x.csv", "-m", folder / "m.omfb", "-o", tmp_path / "y.csv"]
    run(*words, "--max-std", "0.000001")
    assert (tmp_path / "y.csv").read_bytes() == marked
    run(*words, "--max-std", "0.000001", "--interval", "0.9")
    assert pd.read_csv(tmp_path / "y.csv")["a_low"].isna().all()


def test_pipes_know_how_sure_values_are_but_not_how_long_gaps_get(series):
    folder, frame = series
    text = (folder / "x.csv").read_bytes()
    done = run("complete", "-", "-m", folder / "m.omfb", "--max-std", "0.3", data=text)
    filled, left = done.stdout.count(",,"), frame.to_csv().count(",,")
    assert 0 < filled < left
    done = run("complete", "-", "-m", folder / "m.omfb", "--max-gap", "3", data=text, check=False)
    assert done.exit_code == 2
    assert "--max-gap must know how long a gap will be" in done.stderr


def test_limits_that_mean_nothing_are_refused(series, tmp_path):
    folder, frame = series
    frame.reset_index(drop=True).to_csv(tmp_path / "x.csv", index=False)
    words = ["complete", tmp_path / "x.csv", "-m", folder / "m.omfb", "-o", tmp_path / "y.csv"]
    for option, value, said in (
        ("--max-gap", "0", "--max-gap"), ("--max-gap", "soon", "--max-gap"),
        ("--max-std", "0", "--max-std"), ("--max-gap", "6h", "no column of dates that ascend"),
    ):  # fmt: skip
        done = run(*words, option, value, check=False)
        assert done.exit_code == 2
        assert said in done.stderr
        assert done.stderr.count("\n") == 1
