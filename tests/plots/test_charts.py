"""Plots for users: what they show, and that they leave no trace."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="plots need omfb[plot]")

from matplotlib.axes import Axes
from matplotlib.dates import num2date
from matplotlib.figure import Figure

from omfb import OMFB, plots
from omfb.plots.maps import MAX_BINS
from omfb.plots.series import draw_filled

NAN = np.nan
SERIES = np.array([1.0, NAN, 3.0, NAN, NAN, 6.0, 7.0, NAN])
COMPLETE = np.arange(1.0, 9.0)
TABLE = np.column_stack([SERIES, COMPLETE, SERIES + 10])


class Model:
    """Fills with what is known, one above and below; codes are the rows."""

    components_ = np.array([[1.0, -2.0, 0.5], [0.0, 1.0, 1.0]])
    n_components_ = 2
    explained_variance_ = np.array([1.0, 1000.0])
    error_history_ = np.array([[10.0, 0.5], [20.0, 0.25]])

    class learner_:  # noqa: N801
        dtype = np.dtype(np.float64)

        @staticmethod
        def encode(rows):
            return rows

        @staticmethod
        def decode(codes):
            return np.full(codes.shape, 2.0)

    def complete(self, X):
        values = np.column_stack([COMPLETE, COMPLETE, COMPLETE + 10])
        if not hasattr(X, "columns"):
            return values
        frame = X.copy()
        frame[["north", "south", "west"]] = values
        return frame

    def interval(self, X, level):
        done = self.complete(X)
        if not hasattr(X, "columns"):
            return done - 1, done + 1
        low, high = done.copy(), done.copy()
        low[["north", "south", "west"]] -= 1
        high[["north", "south", "west"]] += 1
        return low, high

    def forecast(self, steps, level):
        rows = np.tile([[9.0, 9.0, 19.0]], (steps, 1))
        return rows, rows - 1, rows + 1


class NamedModel(Model):
    feature_names_in_ = np.array(["north", "south", "west"], dtype=object)


CALLS = {
    "components": lambda **more: plots.components(Model(), **more),
    "error_history": lambda **more: plots.error_history(Model(), label="mine", **more),
    "filled": lambda **more: plots.filled(Model(), TABLE, columns=0, **more),
    "forecast": lambda **more: plots.forecast(Model(), TABLE, 3, columns=0, **more),
    "missing": lambda **more: plots.missing(TABLE, **more),
    "residuals": lambda **more: plots.residuals(Model(), TABLE, **more),
    "spectrum": lambda **more: plots.spectrum(Model(), **more),
}
each = pytest.mark.parametrize("name", CALLS)


@pytest.fixture(name="frame")
def _frame():
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2024-03-01", periods=8, freq="h", name="hour")
    frame = pd.DataFrame(TABLE, times, ["north", "south", "west"])
    frame.insert(1, "note", ["a"] * 7 + [None])
    return frame


def test_every_plot_is_tested():
    assert set(CALLS) == set(plots.__all__)


def test_pyplot_is_neither_used_nor_changed_unless_the_program_uses_it():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_charts import CALLS\n"
        "for call in CALLS.values(): call().figure.draw_without_rendering()\n"
        "assert 'matplotlib.pyplot' not in sys.modules\n"
        "import matplotlib; matplotlib.use('agg')\n"
        "from matplotlib import pyplot\n"
        "figure = CALLS['spectrum']().figure\n"
        "assert pyplot.gcf() is figure"
    )
    folder = str(Path(__file__).parent)
    done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@each
def test_draws_into_the_given_axes_or_new_ones(name):
    given = Figure().subplots()
    assert CALLS[name](ax=given) is given
    assert given.has_data()
    new = CALLS[name]()
    assert isinstance(new, Axes)
    assert new is not CALLS[name]()


@each
def test_everything_written_lies_within_the_figure(name):
    ax = CALLS[name]()
    ax.figure.draw_without_rendering()
    page, drawn = ax.figure.bbox, ax.get_tightbbox()  # with ticks, labels, title and legend
    assert page.x0 <= drawn.x0 < drawn.x1 <= page.x1
    assert page.y0 <= drawn.y0 < drawn.y1 <= page.y1


@each
def test_axes_have_labels(name):
    ax = CALLS[name]()
    assert ax.get_xlabel()
    assert ax.get_ylabel()


@each
def test_input_stays_as_it_is(name):
    before = TABLE.copy()
    CALLS[name]()
    np.testing.assert_array_equal(before, TABLE)


@each
def test_without_matplotlib_it_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"plots need matplotlib: pip install 'omfb\[plot\]'"):
        CALLS[name]()


def overlapping(ax, axis):
    """Whether labels of the ticks of an axis lie on each other."""
    ax.figure.draw_without_rendering()
    labels = getattr(ax, f"get_{axis}ticklabels")()
    boxes = [label.get_window_extent() for label in labels if label.get_text()]
    first, last = ("x0", "x1") if axis == "x" else ("y0", "y1")
    boxes.sort(key=lambda box: getattr(box, first))
    return any(getattr(a, last) > getattr(b, first) + 1 for a, b in pairwise(boxes))


# -- series -------------------------------------------------------------------------------------


def test_only_what_is_missing_is_drawn_as_filled():
    ax = Figure().subplots()
    draw_filled(ax, np.arange(8), SERIES, COMPLETE + 100 * np.isnan(SERIES))
    observed, filled = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(observed, SERIES)
    missing = np.isnan(SERIES)
    np.testing.assert_array_equal(filled[missing], COMPLETE[missing] + 100)
    # It starts and ends at what was observed beside it, and nowhere else.
    np.testing.assert_array_equal(filled[[0, 2, 5, 6]], SERIES[[0, 2, 5, 6]])
    assert not ax.collections
    ax = Figure().subplots()
    draw_filled(ax, np.arange(3), [NAN, 1.0, NAN], [0.0, 1.0, 2.0])
    assert ax.lines[0].get_markevery() == [1]  # no line could show it


def test_the_interval_is_around_what_is_missing():
    (band,) = CALLS["filled"]().collections
    corners = {tuple(corner) for path in band.get_paths() for corner in path.vertices}
    for at in np.flatnonzero(np.isnan(SERIES)):
        assert {(at, COMPLETE[at] - 1), (at, COMPLETE[at] + 1)} <= corners
    for at in np.flatnonzero(~np.isnan(SERIES)):
        assert not {(at, COMPLETE[at] - 1), (at, COMPLETE[at] + 1)} & corners


def test_a_frame_brings_its_dates_and_names(frame):
    top, bottom = plots.filled(NamedModel(), frame, columns=["south", "north"])
    assert (top.get_ylabel(), bottom.get_ylabel()) == ("south", "north")
    assert (top.get_xlabel(), bottom.get_xlabel()) == ("", "hour")
    np.testing.assert_array_equal(bottom.lines[0].get_ydata(), SERIES)
    assert not overlapping(bottom, "x")


def test_the_usual_columns_are_those_with_most_missing():
    assert [ax.get_ylabel() for ax in plots.filled(Model(), TABLE)] == [
        f"feature {i}" for i in range(3)
    ]
    assert plots.filled(Model(), TABLE, columns=[2])[0].get_ylabel() == "feature 2"


def test_a_model_without_intervals_fills_too():
    rng = np.random.default_rng(0)
    X = rng.random((40, 2)) @ rng.random((2, 5))
    model = OMFB(2, random_state=0).fit(X)
    X[3, 1] = NAN
    assert not plots.filled(model, X, columns=1).collections


def test_a_forecast_continues_the_times(frame):
    ax = plots.forecast(NamedModel(), frame, 4, columns="west")
    before, after = (line.get_xdata() for line in ax.lines)
    assert after[0] - before[-1] == np.timedelta64(1, "h")
    assert len(before) == 8
    assert len(after) == 4
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), 19.0)
    assert ax.get_ylabel() == "west"
    assert len(plots.forecast(NamedModel(), frame, 2, columns="west").lines[0].get_xdata()) == 4
    with pytest.raises(ValueError, match="steps"):
        plots.forecast(Refusing(), TABLE, 0)


class Refusing(Model):
    def forecast(self, steps, level):
        raise ValueError("steps must be positive")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"columns": "east"}, "no column 'east'"),
        ({"columns": 3}, "no column 3 .*0 to 2"),
        ({"columns": []}, "columns is empty"),
        ({"columns": [0, 1], "ax": object()}, "ax is for one column"),
    ],
)
def test_columns_that_are_not_there_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        plots.filled(Model(), TABLE, **arguments)


# -- maps ---------------------------------------------------------------------------------------


def test_the_map_shows_what_is_missing_where(rng):
    X = np.where(rng.random((30, 5)) < 0.3, NAN, 1.0)
    ax = plots.missing(X)
    np.testing.assert_array_equal(ax.collections[0].get_array(), np.isnan(X).T)
    assert ax.get_title() == f"{100 * np.isnan(X).mean():.3g} % missing"
    assert ax.get_ylim() == (4.5, -0.5)


def test_long_tables_are_shown_by_shares(rng):
    X = np.where(rng.random((1234, 3)) < 0.3, NAN, 1.0)
    shares = plots.missing(X).collections[0].get_array()
    assert shares.shape == (3, MAX_BINS)
    assert 0.0 <= shares.min() < shares.max() <= 1.0
    assert shares.mean() == pytest.approx(np.isnan(X).mean(), abs=0.01)
    np.testing.assert_allclose(shares[:, 0], np.isnan(X[:4]).mean(axis=0))


def test_the_map_names_columns_of_any_kind_and_knows_the_time(frame):
    ax = plots.missing(frame)
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["north", "note", "south", "west"]
    assert ax.collections[0].get_array()[1].tolist() == [0.0] * 7 + [1.0]
    begin, end = (num2date(x).hour for x in ax.get_xlim())
    assert (begin, end) == (0, 8)
    assert ax.get_xlabel() == "hour"
    with pytest.raises(ValueError, match="rows and features"):
        plots.missing([1.0, 2.0])


def test_uneven_times_are_as_far_apart_as_they_are(frame):
    frame = frame.iloc[[0, 1, 2, 7]]
    corners = plots.missing(frame).collections[0].get_coordinates()[0, :, 0]
    np.testing.assert_allclose(np.diff(corners) * 24, [1, 1, 5, 1])


def test_many_names_do_not_overlap(rng):
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2024-01-01", periods=1000, freq="h")
    wide = pd.DataFrame(rng.random((1000, 132)), times, [f"sensor number {i}" for i in range(132)])
    ax = plots.missing(wide)
    assert not overlapping(ax, "y")
    assert not overlapping(ax, "x")
    assert "1 in 5" in ax.get_ylabel()


def test_polars_frames_have_missing_entries_too():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"a": [1.0, None, NAN], "b": ["x", None, "z"]})
    marks = plots.missing(frame).collections[0].get_array()
    assert marks.tolist() == [[0, 1, 1], [0, 1, 0]]


def test_residuals_are_in_deviations_of_their_feature():
    drawn = plots.residuals(Model(), TABLE, columns=[1]).collections[0].get_array()
    expected = (COMPLETE - 2.0) / np.sqrt(np.mean((COMPLETE - 2.0) ** 2))
    np.testing.assert_allclose(drawn, expected[None])
    drawn = plots.residuals(Model(), TABLE).collections[0].get_array()
    np.testing.assert_array_equal(np.ma.getmaskarray(drawn), np.isnan(TABLE).T)


# -- what a model has found ---------------------------------------------------------------------


def test_histories_can_be_compared():
    ax = plots.error_history([[10, 3.0], [20, 2.0]], label="one")
    plots.error_history([[10, 2.0], [20, 1.0]], label="two", ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), [[10, 2], [20, 1]])
    assert ax.get_xlabel() == "rows learned"
    ticks = plots.error_history([3.0, 2.0, 1.0]).get_xticks()
    assert (ticks == ticks.round()).all()  # there is no half of a step
    assert plots.error_history([1.0]).lines[0].get_marker() == "o"  # a point alone is seen
    with pytest.raises(ValueError, match="no error_history_"):
        plots.error_history(object())


def test_spectrum_falls_and_takes_a_model():
    ax = plots.spectrum(Model())
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1000.0, 1.0])
    assert ax.get_yscale() == "log"
    assert plots.spectrum([2.0, 1.0, 0.0]).get_yscale() == "linear"
    with pytest.raises(ValueError, match="no explained_variance_"):
        plots.spectrum(object())


def test_components_are_scaled_by_their_largest_loading():
    ax = plots.components(NamedModel())
    np.testing.assert_allclose(ax.images[0].get_array().T, [[0.5, -1.0, 0.25], [0.0, 1.0, 1.0]])
    assert [label.get_text() for label in ax.get_yticklabels()] == ["north", "south", "west"]
    scaled = NamedModel()
    scaled.scale_ = np.array([1.0, 4.0, 0.5])
    np.testing.assert_allclose(plots.components(scaled, 1).images[0].get_array().T, [[1, -0.5, 1]])
    assert plots.components(Model(), 1).images[0].get_array().shape == (3, 1)


def test_components_as_images(rng):
    model = OMFB(6, random_state=0).fit(rng.random((40, 12)))
    ax = plots.components(model, shape=(3, 4))
    image = ax.images[0].get_array()
    first = image[:3, :4].ravel()
    assert abs(np.corrcoef(first, model.components_[0])[0, 1]) > 1 - 1e-9
    assert (first.min(), first.max()) == (0.0, 1.0)
    assert ax.get_title() == "6 components of 3 × 4"
    with pytest.raises(ValueError, match="3 × 5"):
        plots.components(model, shape=(3, 5))
