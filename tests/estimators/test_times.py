"""Times of rows: every index of times is understood, and what misleads is told."""

import warnings

import numpy as np
import pandas as pd
import pytest

from omfb import OMFBImputer, OnlineFactorAnalysis
from omfb.estimators.times import Stamps, has_times, times_of

from ..making import PREDICTIVE

HOURS = pd.date_range("2026-01-01", periods=200, freq="h")


def walk(index=HOURS, seed=0):
    rng = np.random.default_rng(seed)
    codes = np.cumsum(rng.normal(size=(len(index), 2)), axis=0)
    Y = codes @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(len(index), 4))
    frame = pd.DataFrame(Y, columns=list("abcd"), index=index)
    return frame.mask(rng.random(frame.shape) < 0.1)


INDICES = {
    "hours": HOURS,
    "time zone": HOURS.tz_localize("Europe/Berlin"),
    "periods": HOURS.to_period("h"),
    "durations": HOURS - HOURS[0],
    "objects": pd.Index([time.to_pydatetime() for time in HOURS], dtype=object),
    "dates": pd.Index([day.date() for day in pd.date_range("2026-01-01", periods=200)]),
}


@pytest.mark.parametrize("name", INDICES)
def test_every_index_of_times_makes_rows_temporal(name):
    frame = walk(INDICES[name])
    assert has_times(frame)
    times = times_of(frame)
    step = 86400.0 if name == "dates" else 3600.0
    assert np.allclose(np.diff(times), step)
    assert times[0] == (0.0 if name == "durations" else times[0])
    model = OMFBImputer(seasons=None, random_state=0).fit(frame)
    assert model.learner_.config.temporal
    usual = OMFBImputer(seasons=None, random_state=0).fit(walk())
    np.testing.assert_allclose(model.complete(frame), usual.complete(walk()), rtol=1e-6)


def test_what_is_no_time_is_none():
    for index in (pd.RangeIndex(3), pd.Index(["a", "b", "c"]), pd.Index([1.0, 2.0, 3.0])):
        assert times_of(pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=index)) is None
    assert times_of(np.eye(2)) is None
    assert times_of([[1.0]]) is None


def told(call, *args):
    """The messages of the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(*args)
    return [str(warning.message) for warning in caught]


@PREDICTIVE
def test_dates_as_text_are_told(estimator):
    frame = walk(HOURS.strftime("%Y-%m-%d %H:%M"))
    messages = told(estimator(2, random_state=0).fit, frame)
    assert len(messages) == 1
    assert "dates as text" in messages[0]
    assert (
        told(estimator(2, random_state=0).fit, walk(pd.Index([f"s{i}" for i in range(200)]))) == []
    )


@PREDICTIVE
def test_repeated_times_are_told(estimator):
    frame = walk(HOURS.repeat(2)[:200])
    model = estimator(2, random_state=0)
    for call in (model.fit, model.partial_fit, model.complete):
        messages = told(call, frame)
        assert sum("repeat" in message for message in messages) == 1
    assert told(estimator(2, temporal=False, random_state=0).fit, frame) == []


@PREDICTIVE
def test_rows_that_go_back_are_told(estimator):
    first, then = walk()[:100], walk()[100:]
    model = estimator(2, random_state=0)
    assert told(model.fit, first) == []
    assert told(model.partial_fit, then[:50]) == []
    assert told(model.partial_fit, then[50:]) == []
    (message,) = told(model.partial_fit, first)
    assert "before the end" in message
    assert told(model.complete, first) == []
    (message,) = told(model.partial_fit, then[::-1])
    assert "ascending" in message
    young = estimator(2, random_state=0)
    assert told(young.partial_fit, then[:5]) == []
    (message,) = told(young.partial_fit, first[:5])
    assert "before the end" in message
    assert told(model.set_params(temporal=False).partial_fit, first) == []


@PREDICTIVE
def test_another_step_is_told_also_by_a_loaded_model(estimator, tmp_path):
    model = estimator(2, random_state=0).fit(walk())
    model.save(tmp_path / "m.omfb")
    days = walk(pd.date_range("2027-01-01", periods=30, freq="D"))
    for each in (model, estimator.load(tmp_path / "m.omfb")):
        for call in (each.complete, each.interval):
            (message,) = told(call, days)
            assert "1 d apart" in message
            assert "1 h" in message
        assert told(each.complete, walk()[20:22]) == []
    (message,) = told(model.partial_fit, days)
    assert "1 d apart" in message


def test_months_are_one_step():
    months = walk(pd.date_range("2000-01-01", periods=120, freq="MS"))
    model = OnlineFactorAnalysis(2, random_state=0)
    assert told(model.fit, months[:60]) == []
    assert told(model.partial_fit, months[60:61]) == []
    assert told(model.partial_fit, months[61:]) == []


def test_stamps_learn_their_step_from_single_rows():
    stamps = Stamps()
    for time in (0.0, 60.0, 120.0):
        stamps = stamps.after(np.array([time]))
    assert stamps == Stamps(60.0, 120.0)
    assert stamps.after(None).last is None
