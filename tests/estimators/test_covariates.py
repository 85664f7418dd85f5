"""Covariates: columns that are always known, in gaps, forecasts, streams and files."""

import io
import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.cli import app

N, AHEAD, SENSORS = 1000, 36, list("abcde")


def _table(seed=0, effect=5.0):
    """Hours of five sensors; on some days, which nothing else tells, all of them are off."""
    rng = np.random.default_rng(seed)
    times = pd.date_range("2024-01-01", periods=N + AHEAD, freq="h", name="time")
    days = rng.random((N + AHEAD) // 24 + 1) < 0.15
    holiday = np.repeat(days, 24)[: N + AHEAD].astype(float)
    holiday[N + 6 : N + 30] = 1.0
    codes, e = np.zeros((N + AHEAD, 2)), rng.normal(size=(N + AHEAD, 2))
    for t in range(1, N + AHEAD):
        codes[t] = 0.5 * codes[t - 1] + e[t]
    Y = codes @ rng.normal(size=(2, 5)) + 0.5 * rng.normal(size=(N + AHEAD, 5))
    Y += effect * holiday[:, None] * np.array([1.0, -1.0, 0.5, 0.8, -0.7])
    frame = pd.DataFrame(Y, times, SENSORS)
    return frame.assign(holiday=holiday, junk=rng.normal(size=N + AHEAD))


def _with_gaps(table, seed=0):
    rng = np.random.default_rng(seed)
    known = table[:N].copy()
    for at in rng.integers(0, N - 12, 20):
        known.iloc[at : at + 12, :5] = np.nan
    return known


def _errors(table, columns, covariates, seed=0):
    """Root mean squared errors of gaps and of forecasts."""
    known = _with_gaps(table, seed)[columns]
    model = OMFBImputer(covariates=covariates, random_state=0).fit(known)
    missing = known[SENSORS].isna().to_numpy()
    gaps = (model.complete(known) - table[:N])[SENSORS].to_numpy()[missing]
    given = {} if covariates is None else {"covariates": table[covariates]}
    ahead = (model.forecast(AHEAD, **given) - table[N:])[SENSORS].to_numpy()
    return np.array([np.sqrt(np.mean(gaps**2)), np.sqrt(np.mean(ahead**2))])


@pytest.fixture(scope="module")
def table():
    return _table()


@pytest.fixture(scope="module")
def fitted(table):
    return OMFBImputer(covariates=["holiday"], random_state=0).fit(
        _with_gaps(table).drop(columns="junk")
    )


def test_what_only_a_covariate_tells_is_filled_and_forecast(table):
    with_it = _errors(table, [*SENSORS, "holiday"], ["holiday"])
    without = _errors(table, SENSORS, None)
    base = _errors(_table(effect=0.0), SENSORS, None)  # as good as it can be
    assert (with_it < 1.03 * base).all()
    assert (with_it < without * [0.95, 0.7]).all()


def test_covariates_that_tell_nothing_cost_nothing():
    ratios = []
    for seed in range(4):
        table = _table(seed, effect=0.0)
        without = _errors(table, SENSORS, None, seed)
        ratios.append(_errors(table, [*SENSORS, "junk"], ["junk"], seed) / without)
    assert (np.exp(np.mean(np.log(ratios), axis=0)) < 1.01).all()


def test_the_unit_of_a_covariate_does_not_matter(table, fitted):
    known, given = _with_gaps(table).drop(columns="junk"), table[["holiday"]]
    other = known.assign(holiday=1000.0 * known["holiday"] - 7.0)
    model = OMFBImputer(covariates=["holiday"], random_state=0).fit(other)
    moved = 1000.0 * given - 7.0
    for ours, theirs in (
        (model.complete(other), fitted.complete(known)),
        (model.forecast(5, covariates=moved), fitted.forecast(5, covariates=given)),
    ):
        np.testing.assert_allclose(ours[SENSORS], theirs[SENSORS], rtol=1e-6, atol=1e-6)


def test_future_values_come_as_frames_dicts_and_arrays(table, fitted):
    given = table[["holiday"]]
    expected = fitted.forecast(AHEAD, covariates=given)
    np.testing.assert_array_equal(expected["holiday"], given["holiday"][N:])
    for same in (
        table[::-1], given[N:], given[N:].reset_index(drop=True), given[N:].to_numpy(),
        given["holiday"][N:].to_numpy(), {"holiday": list(given["holiday"][N:])},
    ):  # fmt: skip
        pd.testing.assert_frame_equal(fitted.forecast(AHEAD, covariates=same), expected)
    low, high = fitted.forecast(AHEAD, level=0.9, covariates=given)[1:]
    assert (low["holiday"] == high["holiday"]).all()
    assert (low[SENSORS] < high[SENSORS]).all(axis=None)


def test_what_cannot_be_used_is_refused_in_one_line(table, fitted):
    known = _with_gaps(table).drop(columns="junk")
    given = table[["holiday"]]
    cases = [
        ({}, "give their values in the 5 rows to come by covariates="),
        ({"covariates": given[:N]}, "covariates have no row at 2024-02-11T16:00:00"),
        ({"covariates": given.to_numpy()}, "covariates have 1036 rows of 1 columns, but 5 rows"),
        ({"covariates": table[["junk"]]}, "covariates lack the column 'holiday'"),
        ({"covariates": [0.0, 1.0, np.nan, 0.0, 0.0]}, "nan at row 3 of the rows to come"),
    ]
    for options, message in cases:
        with pytest.raises(ValueError, match=re.escape(message)):
            fitted.forecast(5, **options)
    with pytest.raises(ValueError, match="the model was fitted without any"):
        OMFBImputer(temporal=True).fit(known).forecast(5, covariates=given)
    for options, message in (
        ({"covariates": ["snow"]}, "there is no column 'snow'"),
        ({"covariates": [9]}, "there is no column 9 of 6"),
        ({"covariates": 0.5}, "covariates must be a list"),
        ({"covariates": ["holiday", "holiday"]}, "must name each column once"),
        ({"covariates": list(known.columns)}, "nothing is left to predict"),
        ({"covariates": ["holiday"], "temporal": False}, "covariates are for rows in time"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            OMFBImputer(**options).fit(known)
    with pytest.raises(ValueError, match="covariates are for rows in time"):
        OnlineFactorAnalysis(covariates=[0]).partial_fit(np.eye(5))
    assert "covariates" not in OMFB().get_params()


def test_a_covariate_that_is_missing_is_named(table, fitted, tmp_path):
    known = _with_gaps(table).drop(columns="junk")
    holes = known.copy()
    holes.iloc[700, 5] = np.nan
    message = re.escape("misses a covariate at row 701, column 'holiday'")
    before = fitted.complete(known)
    with pytest.raises(ValueError, match=message):
        fitted.complete(holes)
    later = table[N:].drop(columns="junk")
    later.iloc[2] = np.nan
    with pytest.raises(ValueError, match="misses a covariate at row 3, column 'holiday'"):
        fitted.partial_fit(later)
    with pytest.raises(ValueError, match=message):
        OMFBImputer(covariates=["holiday"]).fit(holes)
    holes.to_csv(tmp_path / "x.csv")
    with pytest.raises(ValueError, match=message):
        OMFBImputer(covariates=["holiday"], temporal=True).fit(tmp_path / "x.csv")
    with pytest.raises(ValueError, match="misses a covariate at row 1, column 'holiday'"):
        fitted.partial_fit({"a": 1.0})
    pd.testing.assert_frame_equal(fitted.complete(known), before)


def test_streams_learn_with_covariates_however_they_are_cut(table, tmp_path):
    known = _with_gaps(table).drop(columns="junk")
    whole = OMFBImputer(covariates=["holiday"], random_state=0).partial_fit(known)
    parts = OMFBImputer(covariates=["holiday"], random_state=0)
    for start, stop in ((0, 300), (300, 301), (301, N)):
        parts.partial_fit(known[start:stop])
        if start:
            parts.save(tmp_path / "m.omfb")
            parts = OMFBImputer.load(tmp_path / "m.omfb")
    given = table[["holiday"]]
    expected = whole.forecast(AHEAD, covariates=given)
    pd.testing.assert_frame_equal(parts.forecast(AHEAD, covariates=given), expected)
    pd.testing.assert_frame_equal(parts.complete(known), whole.complete(known))
    error = (expected - table[N:])[SENSORS].to_numpy()
    assert np.sqrt(np.mean(error**2)) < 0.8 * _errors(table, SENSORS, None)[1]


def test_covariates_are_known_by_name_when_features_before_them_are_dropped(table):
    known = _with_gaps(table).drop(columns="junk")
    known.iloc[500:, 0] = np.nan
    model = OMFBImputer(covariates=["holiday"], drop_after=200, random_state=0)
    model.partial_fit(known)
    assert list(model.feature_names_in_) == [*SENSORS[1:], "holiday"]
    given = table[["holiday"]]
    made = model.forecast(AHEAD, covariates=given)
    np.testing.assert_array_equal(made["holiday"], given["holiday"][N:])
    error = (made - table[N:])[SENSORS[1:]].to_numpy()
    assert np.sqrt(np.mean(error**2)) < 0.8 * _errors(table, SENSORS, None)[1]
    with pytest.raises(ValueError, match="column 'holiday'"):
        model.partial_fit({"b": 1.0})


def test_backtests_give_covariates_to_forecasts(table):
    rows = table.drop(columns="junk")
    with_it = OMFBImputer(covariates=["holiday"], random_state=0).backtest(rows, 12, 4)
    without = OMFBImputer(random_state=0).backtest(rows[SENSORS], 12, 4)
    assert np.isnan(with_it.errors[..., 5]).all()
    assert np.nanmean(with_it.rmse) < 0.9 * np.mean(without.rmse)


def _run(*words, check=True, data=None):
    done = CliRunner().invoke(app, [str(word) for word in words], input=data)
    assert done.exit_code == 0 or not check, done.stderr
    return done


def test_commands_know_covariates(table, fitted, tmp_path):
    known = _with_gaps(table).drop(columns="junk")
    known.to_csv(tmp_path / "x.csv")
    table[["holiday"]].to_csv(tmp_path / "calendar.csv")
    table[["holiday"]][N:].to_csv(tmp_path / "plain.csv", index=False)
    model, out = tmp_path / "m.omfb", tmp_path / "y.csv"
    words = ["fit", tmp_path / "x.csv", "--seed", "0", "-q", "--no-shuffle", "-o", model]
    _run(*words, "--covariates", "holiday")
    ours = OMFBImputer(covariates=["holiday"], random_state=0, shuffle=False).fit(known)
    ahead = ["forecast", model, "-n", AHEAD, "--covariates"]
    _run(*ahead, tmp_path / "calendar.csv", "-o", out)
    expected = ours.forecast(AHEAD, covariates=table[["holiday"]])
    np.testing.assert_allclose(pd.read_csv(out).iloc[:, 1:], expected, rtol=1e-6)
    assert _run(*ahead, tmp_path / "plain.csv").stdout == out.read_text()
    _run("complete", tmp_path / "x.csv", "-m", model, "-o", out)
    np.testing.assert_allclose(pd.read_csv(out).iloc[:, 1:], ours.complete(known), rtol=1e-6)

    done = _run("forecast", model, check=False)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "by --covariates FILE, with the columns holiday" in done.stderr
    for wrong, said in (("snow", "no column 'snow'"), ("a,a", "each column once")):
        done = _run(*words, "--covariates", wrong, check=False)
        assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
        assert said in done.stderr
    known.to_csv(tmp_path / "rows.csv", index=False)
    done = _run("fit", tmp_path / "rows.csv", "-q", "-o", model, "--covariates", "holiday",
                check=False)  # fmt: skip
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "--covariates is for rows in time" in done.stderr


def test_commands_name_the_row_of_a_covariate_that_is_missing(table, fitted, tmp_path):
    known = _with_gaps(table).drop(columns="junk")
    fitted.save(tmp_path / "m.omfb")
    known.iloc[400, 5] = np.nan
    known.to_csv(tmp_path / "x.csv")
    text = (tmp_path / "x.csv").read_bytes()
    for words, data in (
        (["complete", tmp_path / "x.csv", "-o", tmp_path / "y.csv"], None),
        (["complete", "-", "-o", tmp_path / "y.csv"], text),
        (["complete", "-"], text),
        (["complete", "-", "--learn", "-q"], text),
    ):
        done = _run(*words, "-m", tmp_path / "m.omfb", check=False, data=data)
        assert done.exit_code == 1
        assert "misses a covariate at row 401, column 'holiday'" in done.stderr
        assert done.stderr.count("\n") == 1
    assert len(pd.read_csv(io.StringIO(done.stdout))) == 400
    words = ["fit", "-", "--covariates", "holiday", "-q", "-o", tmp_path / "n.omfb"]
    done = _run(*words, check=False, data=text)
    assert "misses a covariate at row 401, column 'holiday'" in done.stderr
