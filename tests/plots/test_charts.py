"""Plots for users: what they show, and that they leave no trace."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="plots need omfb[plot]")

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from omfb import OMFB, plots

NAN = np.nan
SERIES = np.array([1.0, NAN, 3.0, NAN, NAN, 6.0, 7.0, NAN])
COMPLETE = np.arange(1.0, 9.0)
CALLS = {
    "error_history": lambda **more: plots.error_history([3.0, 2.0, 1.0], label="mine", **more),
    "spectrum": lambda **more: plots.spectrum([3.0, 2.0, 1.0], **more),
    "atoms": lambda **more: plots.atoms(np.eye(4), (2, 2), **more),
    "filled_series": lambda **more: plots.filled_series(
        np.arange(8), SERIES, COMPLETE, COMPLETE - 1, COMPLETE + 1, **more
    ),
    "missing_map": lambda **more: plots.missing_map(SERIES.reshape(4, 2), **more),
}
each = pytest.mark.parametrize("name", CALLS)


def test_every_plot_is_tested():
    assert set(CALLS) == set(plots.__all__)


def test_pyplot_is_neither_used_nor_changed():
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_charts import CALLS\n"
        "for call in CALLS.values(): call().figure.draw_without_rendering()\n"
        "assert 'matplotlib.pyplot' not in sys.modules"
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
    if ax.get_legend() is not None:
        inside, legend = ax.get_window_extent(), ax.get_legend().get_window_extent()
        assert inside.x0 <= legend.x0 < legend.x1 <= inside.x1
        assert inside.y0 <= legend.y0 < legend.y1 <= inside.y1


@each
def test_axes_have_labels(name):
    ax = CALLS[name]()
    if name == "atoms":  # pixels have no unit
        assert not ax.axison
        assert ax.get_title()
    else:
        assert ax.get_xlabel()
        assert ax.get_ylabel()


@each
def test_input_stays_as_it_is(name):
    series, complete = SERIES.copy(), COMPLETE.copy()
    CALLS[name]()
    np.testing.assert_array_equal(series, SERIES)
    np.testing.assert_array_equal(complete, COMPLETE)


@each
def test_without_matplotlib_it_says_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"plots need matplotlib: pip install 'omfb\[plot\]'"):
        CALLS[name]()


# -- each of them -------------------------------------------------------------------------------


def test_histories_can_be_compared():
    ax = plots.error_history([3.0, 2.0], rows=[10, 20], label="one")
    plots.error_history([2.0, 1.0], rows=[10, 20], label="two", ax=ax)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["one", "two"]
    np.testing.assert_array_equal(ax.lines[1].get_xydata(), [[10, 2], [20, 1]])
    assert ax.get_xlabel() == "rows learned"
    ticks = plots.error_history([3.0, 2.0, 1.0]).get_xticks()
    assert (ticks == ticks.round()).all()  # there is no half of a step
    assert plots.error_history([1.0]).lines[0].get_marker() == "o"  # a point alone is seen


def test_spectrum_falls_and_takes_a_model():
    class Model:
        explained_variance_ = np.array([1.0, 1000.0, 10.0])

    ax = plots.spectrum(Model())
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1000.0, 10.0, 1.0])
    assert ax.get_yscale() == "log"
    assert plots.spectrum([2.0, 1.0, 0.0]).get_yscale() == "linear"


def test_atoms_of_a_model(rng):
    model = OMFB(6, random_state=0).fit(rng.random((40, 12)))
    ax = plots.atoms(model, (3, 4), columns=3)
    image = ax.images[0].get_array()
    assert image.shape == (2 * 3 + 1, 3 * 4 + 2)
    first = image[:3, :4].ravel()
    assert abs(np.corrcoef(first, model.components_[0])[0, 1]) > 1 - 1e-9
    assert (first.min(), first.max()) == (0.0, 1.0)
    with pytest.raises(ValueError, match="3 × 5"):
        plots.atoms(model, (3, 5))


def test_only_what_is_missing_is_drawn_as_filled():
    ax = plots.filled_series(np.arange(8), SERIES, COMPLETE + 100 * np.isnan(SERIES))
    observed, filled = (line.get_ydata() for line in ax.lines)
    np.testing.assert_array_equal(observed, SERIES)
    missing = np.isnan(SERIES)
    np.testing.assert_array_equal(filled[missing], COMPLETE[missing] + 100)
    # It starts and ends at what was observed beside it, and nowhere else.
    np.testing.assert_array_equal(filled[[0, 2, 5, 6]], SERIES[[0, 2, 5, 6]])
    assert not ax.collections
    lonely = plots.filled_series([0, 1, 2], [NAN, 1.0, NAN], [0.0, 1.0, 2.0]).lines[0]
    assert lonely.get_markevery() == [1]  # no line could show it


def test_the_interval_is_around_what_is_missing():
    ax = CALLS["filled_series"]()
    (band,) = ax.collections
    corners = {tuple(corner) for path in band.get_paths() for corner in path.vertices}
    for at in np.flatnonzero(np.isnan(SERIES)):
        assert {(at, COMPLETE[at] - 1), (at, COMPLETE[at] + 1)} <= corners
    for at in np.flatnonzero(~np.isnan(SERIES)):
        assert not {(at, COMPLETE[at] - 1), (at, COMPLETE[at] + 1)} & corners


def test_a_series_brings_its_dates_and_its_name():
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2024-03-01", periods=8, freq="h", name="hour")
    series = pd.Series(SERIES, index=times, name="north")
    ax = plots.filled_series(series.index, series, COMPLETE)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("hour", "north")
    ax.figure.draw_without_rendering()
    assert all(len(label.get_text()) < 12 for label in ax.get_xticklabels())


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 1], [1.0, NAN], [1.0, 2.0], [0.0, 1.0]), "both its ends"),
        (([0, 1], [1.0, NAN], [1.0]), "filled needs the shape"),
        (([0], [1.0, NAN], [1.0, 2.0]), "index has the shape"),
        (([0, 1], [[1.0], [NAN]], [1.0, 2.0]), "one dimension"),
    ],
)
def test_series_that_do_not_fit_together_are_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        plots.filled_series(*arguments)


def test_the_map_shows_what_is_missing_where(rng):
    X = np.where(rng.random((30, 5)) < 0.3, NAN, 1.0)
    ax = plots.missing_map(X)
    np.testing.assert_array_equal(ax.images[0].get_array(), np.isnan(X))
    assert ax.get_title() == f"{100 * np.isnan(X).mean():.3g} % missing"


def test_long_tables_are_shown_by_shares(rng):
    X = np.where(rng.random((1234, 3)) < 0.3, NAN, 1.0)
    ax = plots.missing_map(X)
    shares = ax.images[0].get_array()
    assert len(shares) == plots.charts.MAX_MAP_LINES
    assert 0.0 <= shares.min() < shares.max() <= 1.0
    assert shares.mean() == pytest.approx(np.isnan(X).mean(), abs=0.01)
    np.testing.assert_allclose(shares[0], np.isnan(X[:4]).mean(axis=0))
    assert ax.get_ylim() == (1233.5, -0.5)


def test_the_map_names_the_columns_of_a_frame():
    pd = pytest.importorskip("pandas")
    ax = plots.missing_map(pd.DataFrame({"north": [1.0, NAN], "south": [NAN, 2.0]}))
    assert [label.get_text() for label in ax.get_xticklabels()] == ["north", "south"]
    with pytest.raises(ValueError, match="rows and features"):
        plots.missing_map([1.0, 2.0])
