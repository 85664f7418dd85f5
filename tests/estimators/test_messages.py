"""Messages name what is wrong and where, and say what helps."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import omfb
from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis

from ..commands import low_rank

NAMES = list("abcdef")


@pytest.fixture
def frame():
    return pd.DataFrame(low_rank(60, 6, missing=0.1), columns=NAMES).assign(town="Oslo")


def test_warnings_show_the_line_of_the_user(frame, recwarn):
    hourly = pd.date_range("2024-01-01", periods=60, freq="h")
    gappy = frame.assign(b=np.nan).set_axis(hourly)
    model = OMFBImputer(random_state=0).fit(gappy)
    model.complete(gappy.set_axis(hourly[::-1]))
    model.transform(gappy.set_axis(pd.date_range("2024-01-01", periods=60, freq="D")))
    model.partial_fit(gappy)
    model.partial_fit({"new": 1.0})
    OMFBImputer(random_state=0).fit_transform(frame.drop(columns="town").set_axis(hourly[::-1]))
    assert len(recwarn) >= 6
    assert {Path(each.filename).name for each in recwarn} == {Path(__file__).name}


def test_features_never_observed_are_told_apart_from_the_text(frame):
    with pytest.warns(UserWarning, match=r"Never observed: feature '', 'b c'\."):
        OMFBImputer().fit(
            frame.rename(columns={"a": "", "b": "b c"}).assign(**{"": np.nan, "b c": np.nan})
        )


@pytest.mark.parametrize(
    ("absent", "hint"), [("a", r"'a'\. Add them\.$"), ("town", "'town'. .* remainder='drop'")]
)
def test_an_absent_column_of_numbers_cannot_be_dropped(frame, absent, hint):
    model = OMFBImputer(random_state=0).fit(frame)
    with pytest.raises(ValueError, match=f"lacks columns .*: {hint}"):
        model.transform(frame.drop(columns=absent))


def test_a_row_by_name_is_no_table(frame):
    numbers = frame.drop(columns="town")
    model = OMFBImputer(random_state=0).fit(numbers)
    for row in (numbers.iloc[0], frame.iloc[0], {"a": 1.0}, [{"a": 1.0}]):
        for method in (model.transform, model.score, OMFBImputer().fit):
            with pytest.raises(TypeError, match=r"Give a table: .*pandas\.DataFrame"):
                method(row)


def test_bounds_are_shown_as_they_were_given(frame):
    with pytest.raises(ValueError, match=r"got 2\.0 and 1\.0: there is no number"):
        OMFBImputer(min_value=2, max_value=1).fit(frame)


def test_times_that_are_missing_are_told(frame):
    times = pd.date_range("2024-01-01", periods=60, freq="h").where(np.arange(60) != 3)
    with pytest.warns(UserWarning, match=r"missing \(NaT\).*Drop these rows"):
        OMFBImputer(random_state=0).fit(frame.set_axis(times))


def test_the_folder_of_a_checkpoint_must_be_there(frame, tmp_path):
    with pytest.raises(FileNotFoundError, match="typo"):
        OMFBImputer().fit(frame, checkpoint=tmp_path / "typo" / "fit.ckpt")
    assert not (tmp_path / "typo").exists()


def test_odd_parameters_are_refused_by_name():
    X = low_rank(30, 4)
    for shuffle in (10**30, np.array([1, 2])):
        with pytest.raises((TypeError, ValueError), match="shuffle"):
            OMFB(2, smooth=1.0, shuffle=shuffle).fit(X)
    one = OMFBImputer(missing_values=np.array(-999.0)).fit(np.where(np.isnan(X), -999.0, X))
    assert np.isfinite(one.transform(np.where(np.isnan(X), -999.0, X))).all()


def test_merge_says_what_it_takes():
    model = OnlineFactorAnalysis(2, random_state=0).fit(low_rank(600, 6))
    for wrong in ((model, model), ([model], None), ([model, "x"], model)):
        with pytest.raises(TypeError, match=r"merge\(\[a, b\], start\)"):
            omfb.merge(*wrong)
