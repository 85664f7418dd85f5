"""Frames with times: seasons, uneven rows, forecasts as frames, and backtests."""

import datetime
import warnings

import numpy as np
import pandas as pd
import pytest

from omfb import OMFBImputer, OnlineFactorAnalysis
from omfb.core.factor import temporal
from omfb.estimators.known import gap_rows, gap_seconds

from ..making import PREDICTIVE, snapshot

HOURS = pd.date_range("2024-01-01", periods=24 * 35, freq="h", name="time")


def panel(rng, index=HOURS, m=5):
    """Hourly series about a daily cycle."""
    t = np.arange(len(index))[:, None]
    X = 5.0 + 2.0 * np.sin(2.0 * np.pi * (t / 24 + rng.random(m)))
    X += 0.3 * rng.standard_normal(X.shape) + 0.3 * rng.standard_normal((len(t), 1))
    return pd.DataFrame(X, index=index, columns=[f"s{i}" for i in range(m)])


@pytest.fixture
def model():
    return OMFBImputer(random_state=0)


@PREDICTIVE
def test_a_forecast_is_a_frame_with_columns_and_times_to_come(rng, estimator):
    X = panel(rng)
    made = estimator(random_state=0).fit(X).forecast(30, level=0.9)
    for frame in made:
        assert list(frame.columns) == list(X.columns)
        assert frame.index.equals(pd.date_range("2024-02-05", periods=30, freq="h", name="time"))
        assert np.isfinite(frame.to_numpy()).all()
    mean, low, high = made
    assert ((low < mean) & (mean < high)).all(axis=None)


@pytest.mark.parametrize(
    "index",
    [
        pd.date_range("2024-01-01", periods=120, freq="MS"),
        pd.date_range("2024-01-01", periods=120, freq="D", tz="Europe/Berlin"),
        pd.period_range("2000-01", periods=120, freq="M"),
        pd.timedelta_range("0s", periods=120, freq="15min"),
        pd.date_range("2024-01-01", periods=120, freq="h").astype(object),
        pd.date_range("2024-01-01", periods=120, freq="h", tz="UTC").astype(object),
    ],
    ids=["months", "zone", "periods", "durations", "objects", "objects in a zone"],
)
def test_the_index_goes_on_as_it_was(rng, model, index):
    X = panel(rng, index)
    ahead = model.fit(X.iloc[:-5]).forecast(5)
    assert ahead.index.equals(index[-5:])


def test_an_array_has_an_array_as_its_forecast(rng):
    X = panel(rng).to_numpy()
    assert isinstance(OMFBImputer(temporal=True, random_state=0).fit(X).forecast(3), np.ndarray)


def test_seasons_are_found_reported_given_and_switched_off(rng, model):
    X = panel(rng)
    assert model.fit(X).seasons_ == [datetime.timedelta(days=1)]
    assert OMFBImputer(seasons=None).fit(X).seasons_ == []
    given = OMFBImputer(seasons=["12h", 48]).fit(X)
    assert given.seasons_ == [datetime.timedelta(hours=12), datetime.timedelta(hours=48)]
    rows = OMFBImputer(temporal=True, random_state=0).fit(X.to_numpy())
    assert rows.seasons_ == [24.0]
    assert OMFBImputer().fit(X.reset_index(drop=True)).seasons_ == []


def test_a_day_without_any_sensor_follows_the_cycle(rng, model):
    X = panel(rng)
    Y = X.copy()
    Y.iloc[300:348] = np.nan
    error = {}
    for seasons in ("auto", None):
        filled = OMFBImputer(seasons=seasons, random_state=0).fit(Y).complete(Y)
        error[seasons] = np.sqrt(np.mean((filled - X).iloc[300:348].to_numpy() ** 2))
    assert error["auto"] < 0.6
    assert error["auto"] < 0.5 * error[None]


def test_seasons_are_changed_after_a_fit(rng, model):
    X = panel(rng)
    cyclic = model.fit(X).forecast(24)
    level = model.set_params(seasons=None).forecast(24)
    assert model.seasons_ == []
    assert cyclic["s0"].std() > 1.0 > level["s0"].std()


def test_windows_of_another_time_are_filled_in_their_phase(rng, model):
    """By their times or, without, by the phase that suits them."""
    X = panel(rng)
    model.fit(X.iloc[: 24 * 25])
    window = X.iloc[24 * 30 + 7 : 24 * 32 + 7].copy()
    truth = window.iloc[20:40].to_numpy().copy()
    window.iloc[20:40] = np.nan
    plain = OMFBImputer(temporal=True, random_state=0).fit(X.iloc[: 24 * 25].to_numpy())
    for filled in (model.complete(window), plain.complete(window.to_numpy())):
        assert np.sqrt(np.mean((np.asarray(filled)[20:40] - truth) ** 2)) < 0.6


def test_rows_that_are_missing_altogether_count_as_gaps(rng, model):
    """Nothing changes if rows of which nothing is observed are dropped."""
    X = panel(rng)
    X.iloc[200:230] = np.nan
    X.iloc[400:420] = np.nan
    X.iloc[50:60, 1] = np.nan
    model.fit(X)
    dropped = X.dropna(how="all")
    one, other = model.complete(X).loc[dropped.index], model.complete(dropped)
    pd.testing.assert_frame_equal(one, other)


def test_unevenly_spaced_walks_are_bridged_by_their_times(rng, model):
    """A value one minute after a known one is near it, though a row lies an hour off."""
    n = 600
    seconds = np.cumsum(np.where(np.arange(n) % 2, 60.0, 7200.0))
    walk = np.cumsum(rng.standard_normal((n, 3)) * np.sqrt(np.diff(seconds, prepend=0))[:, None], 0)
    index = pd.Timestamp("2024-01-01") + pd.to_timedelta(seconds, unit="s")
    X = pd.DataFrame(walk, index=index, columns=list("abc"))
    Y = X.copy()
    gone = np.arange(20, n - 20, 10) + 1  # a minute after a known row, two hours before the next
    for i, name in enumerate("abc"):
        Y.loc[Y.index[gone + 2 * i], name] = np.nan
    missing = Y.isna().to_numpy()
    error = {}
    for name, frame in (("uneven", Y), ("even", Y.reset_index(drop=True))):
        filled = OMFBImputer(temporal=True, random_state=0).fit(frame).complete(frame)
        error[name] = np.sqrt(np.mean((filled.to_numpy() - X.to_numpy())[missing] ** 2))
    assert error["uneven"] < 0.5 * error["even"]


def test_repeated_times_are_said_once_and_kept_as_measurements_of_one_moment(rng, model):
    X = panel(rng)
    twice = X.index[[*range(400), 399, *range(400, 839)]]
    with pytest.warns(UserWarning, match="several measurements of one moment"):
        model.fit(X.set_axis(twice))
    assert np.isfinite(model.forecast(3).to_numpy()).all()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OMFBImputer(temporal=False).fit(X.set_axis(twice))


def test_a_stream_whose_times_go_back_is_warned_of(rng, model):
    X = panel(rng)
    model.fit(X.iloc[:500])
    with pytest.warns(UserWarning, match="begins before the end"):
        model.partial_fit(X.iloc[100:110])


def test_a_stream_in_time_forecasts_as_a_fit_does(rng, model):
    """Rows after a fit move the forecast on, with the same seasons."""
    X = panel(rng)
    model.fit(X.iloc[:600])
    for at in range(600, 830, 10):
        model.partial_fit(X.iloc[at : at + 10])
    ahead = model.forecast(10)
    assert ahead.index.equals(X.index[830:840])
    assert datetime.timedelta(days=1) in model.seasons_
    assert np.sqrt(np.mean((ahead - X.iloc[830:]).to_numpy() ** 2)) < 0.7


@pytest.mark.parametrize("stamped", [True, False])
def test_reads_do_not_find_out_where_the_sequence_stands(rng, model, stamped, monkeypatch):
    """Only forecasts need that, and it costs a filter over the last rows at each new row."""
    X = panel(rng)
    X = X.mask(rng.random(X.shape) < 0.2) if stamped else X.to_numpy()
    other = OMFBImputer(random_state=0, temporal=True)
    model.set_params(temporal=True)
    for each in (model, other):
        each.partial_fit(X[:600])
    gap = X[606:612] * np.nan
    for at in range(600, 606):
        for each in (model, other):
            each.partial_fit(X[at : at + 1])
        expected = np.asarray(other.forecast(3))
        with monkeypatch.context() as patch:
            patch.setattr(temporal, "filtered_at", lambda *args: pytest.fail("not needed"))
            filled, bounds = model.transform(gap), model.interval(gap)
        np.testing.assert_array_equal(filled, other.transform(gap))  # after its forecast
        np.testing.assert_array_equal(bounds, other.interval(gap))
        np.testing.assert_array_equal(model.forecast(3), expected)


def test_a_stream_of_single_rows_learns_seasons(rng, model):
    X = panel(rng).iloc[:400]
    for at in range(400):
        model.partial_fit(X.iloc[at : at + 1])
    assert model.seasons_ == [datetime.timedelta(days=1)]
    assert model.forecast(2).index.equals(HOURS[400:402])


def test_files_keep_seasons_times_and_horizons(rng, model, tmp_path):
    X = panel(rng)
    X.iloc[10:20, 0] = np.nan
    model = OMFBImputer(seasons=["24h", 168], random_state=0).fit(X)
    model.save(tmp_path / "model.omfb")
    loaded = OMFBImputer.load(tmp_path / "model.omfb")
    assert loaded.seasons_ == model.seasons_
    for one, other in zip(model.forecast(9, level=0.8), loaded.forecast(9, level=0.8), strict=True):
        pd.testing.assert_frame_equal(one, other)
    pd.testing.assert_frame_equal(loaded.complete(X), model.complete(X))
    more = X.iloc[-5:].set_axis(HOURS[-5:] + pd.Timedelta("5h"))
    pd.testing.assert_frame_equal(
        loaded.partial_fit(more).forecast(2), model.partial_fit(more).forecast(2)
    )


def test_answers_change_nothing(rng, model):
    X = panel(rng)
    model.fit(X)
    model.forecast(2)
    before = snapshot(model)
    model.forecast(5, level=0.9)
    model.backtest(X.iloc[:200], horizon=3, n_origins=2)
    model.complete(X.iloc[:50])
    assert len(model.seasons_) == 1
    assert snapshot(model) == before


def test_a_backtest_is_what_models_of_the_past_forecast(rng, model):
    X = panel(rng).iloc[:500].copy()
    X.iloc[460:470, 2] = np.nan
    result = model.backtest(X, horizon=12, n_origins=3, level=0.8)
    assert result.origins.tolist() == [250, 369, 488]
    mean, low, high = OMFBImputer(random_state=0).fit(X.iloc[:369]).forecast(12, level=0.8)
    truth = X.iloc[369:381]
    np.testing.assert_allclose(result.errors[1], mean - truth)
    assert result.rmse.shape == result.mae.shape == result.rmse_last_value.shape == (12, 5)
    assert result.coverage.shape == (12,)
    assert 0.5 < result.coverage.mean() <= 1.0
    assert result.level == 0.8
    held = ((low <= truth) & (truth <= high)).to_numpy()
    alone = model.backtest(X.iloc[:381], horizon=12, n_origins=1, level=0.8)
    assert alone.origins.tolist() == [190]
    assert held.shape == (12, 5)
    assert result.rmse[5].mean() < result.rmse_last_value[5].mean()


@pytest.mark.parametrize(
    ("given", "message"),
    [({"horizon": 0}, "horizon"), ({"n_origins": 1.5}, "n_origins"), ({"level": 2.0}, "level")],
)
def test_backtests_that_cannot_be_made_are_refused(rng, model, given, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model.backtest(panel(rng), **given)
    with pytest.raises(ValueError, match="X has 10 rows"):
        model.backtest(panel(rng).iloc[:10], horizon=8)


def test_rows_without_times_have_no_forecast_of_models_that_are_not_temporal(rng):
    with pytest.raises(ValueError, match="consecutive in time"):
        OnlineFactorAnalysis().fit(panel(rng).to_numpy()).forecast(3)


@pytest.fixture
def gappy(rng):
    """Three columns with gaps of 2, 12 and 60 rows."""
    X = panel(rng)
    for i, length in enumerate((2, 12, 60)):
        X.iloc[100 + 80 * i : 100 + 80 * i + length, i] = np.nan
    return X


@pytest.mark.parametrize(
    "max_gap", [12, "13h", datetime.timedelta(hours=13), np.timedelta64(13, "h")]
)
def test_gaps_that_are_too_long_stay_empty(gappy, model, max_gap):
    whole = model.fit(gappy).complete(gappy)
    filled, std = model.complete(gappy, max_gap=max_gap, return_std=True)
    left = filled.isna()
    assert left.sum().tolist() == [0, 0, 60, 0, 0]
    pd.testing.assert_frame_equal(filled.fillna(whole), whole)
    assert std.shape == filled.shape


def test_gaps_at_the_ends_last_to_the_end():
    missing = np.zeros((10, 3), bool)
    missing[:3, 0] = missing[8:, 1] = missing[:, 2] = True
    rows = gap_rows(missing)
    assert rows[0].tolist() == [3, 0, 10]
    assert rows[9].tolist() == [0, 2, 10]
    seconds = gap_seconds(missing, 60.0 * np.arange(10))
    assert seconds[0].tolist() == [180.0, 0.0, np.inf]
    assert seconds[9].tolist() == [0.0, 120.0, np.inf]


def test_what_is_known_too_little_stays_empty(gappy, model):
    gappy.iloc[500:520] = np.nan
    _, std = model.fit(gappy).complete(gappy, return_std=True)
    missing = gappy.isna().to_numpy()
    limit = float(np.quantile((std / model.scale_)[missing], 0.6))
    filled = model.complete(gappy, max_std=limit)
    assert np.array_equal(filled.isna().to_numpy(), missing & (std > limit * model.scale_))
    assert 0.2 < np.mean(filled.isna().to_numpy()[missing]) < 0.5
    array = OMFBImputer(temporal=True, random_state=0).fit(gappy.to_numpy())
    assert np.isnan(array.complete(gappy.to_numpy(), max_std=limit)).any()


def test_limits_that_mean_nothing_are_refused(gappy, model):
    model.fit(gappy)
    for given in ({"max_gap": 0}, {"max_gap": "soon"}, {"max_std": 0.0}, {"max_std": "x"}):
        with pytest.raises((TypeError, ValueError), match=next(iter(given))):
            model.complete(gappy, **given)
    with pytest.raises(ValueError, match="no times"):
        model.complete(gappy.reset_index(drop=True), max_gap="2h")


def test_rows_that_were_never_there_are_returned_at_a_frequency(gappy, model):
    some = gappy.drop(gappy.index[600:610])
    model.fit(some)
    filled = model.complete(some, freq="h")
    assert filled.index.equals(gappy.index)
    assert filled.notna().all(axis=None)
    short = model.complete(some, freq="h", max_gap=5)
    assert short.iloc[600:610].isna().all(axis=None)
    for X, match in (
        (some.reset_index(drop=True), "times as its index"),
        (some[::-1], "ascending"),
    ):
        with pytest.raises(ValueError, match=match):
            model.complete(X, freq="h")
    with pytest.raises(ValueError, match="freq"):
        model.complete(some, freq="often")


def test_polars_frames_keep_what_is_left_empty(gappy):
    pl = pytest.importorskip("polars")
    frame = pl.from_pandas(gappy.reset_index(drop=True))
    model = OMFBImputer(temporal=True, random_state=0).fit(frame)
    filled = model.complete(frame, max_gap=12)
    assert filled["s2"].null_count() == 60
    assert filled["s1"].null_count() == 0


def test_seasons_do_not_cost_single_sensors_what_their_neighbours_tell(gappy, model):
    """Components that a season explains follow the noise of a row no more."""
    truth = gappy.copy()
    gappy.iloc[700:705, 3] = np.nan
    assert model.fit(gappy).seasons_ == [datetime.timedelta(days=1)]
    error = {}
    for seasons in ("auto", None):
        filled = OMFBImputer(seasons=seasons, random_state=0).fit(gappy).complete(gappy)
        error[seasons] = np.sqrt(np.mean((filled - truth).iloc[700:705, 3] ** 2))
    assert error["auto"] < 1.2 * error[None]


def test_seasons_of_the_last_rows_do_not_spoil_a_long_past():
    """What varies little in the window that seasons are estimated from may vary much before it."""
    rng = np.random.default_rng(5)
    n, m = 3500, 12
    t = np.arange(n)
    day = 3.0 * np.cos(2 * np.pi * t / 24)
    quiet = np.where(t < n - 2048, 3.0, 0.1)
    codes = np.column_stack([day + rng.standard_normal(n), quiet * rng.standard_normal(n)])
    X = codes @ rng.standard_normal((2, m)) + 1.5 * rng.standard_normal((n, m))
    hidden = rng.random(X.shape) < 0.3

    def error(**given):
        fitted = OMFBImputer(temporal=True, random_state=0, **given)
        gappy = np.where(hidden, np.nan, X)
        wrong = (fitted.fit(gappy).complete(gappy) - X)[: n - 2048]
        assert bool(fitted.seasons_) == (not given)
        return np.sqrt(np.mean(wrong[hidden[: n - 2048]] ** 2))

    assert error() < 1.05 * error(seasons=None)
