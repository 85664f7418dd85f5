"""Axes to draw into, ticks that do not overlap, and the colours of all plots."""

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

OBSERVED, FILLED = "#2f5d9b", "#e8590c"
# Names that fit beside a map.
MAX_NAMES = 30


def new_axes(ax: Any, n_panels: int | None = None) -> Any:
    """The given Axes, or new ones; with `n_panels`, an array of them, one above the other."""
    if ax is not None:
        return ax if n_panels is None else np.array([ax], dtype=object)
    if n_panels is None:
        return _new_figure(7.0, 4.0).subplots()
    panels = _new_figure(7.0, 1.0 + 2.2 * n_panels).subplots(n_panels, sharex=True, squeeze=False)
    return panels[:, 0]


def _new_figure(width: float, height: float) -> Any:
    """A figure of pyplot where a notebook or a program shows those; else one that it ignores."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ImportError("plots need matplotlib: pip install 'omfb[plot]'") from None
    options: Any = {"figsize": (width, height), "layout": "constrained"}
    if "matplotlib.pyplot" in sys.modules or _in_notebook():
        from matplotlib import pyplot

        return pyplot.figure(**options)
    return Figure(**options)


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


def integer_ticks(axis: Any) -> None:
    """Only integer ticks, unless the axis has a locator of another kind."""
    from matplotlib.ticker import MaxNLocator

    locator = axis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(integer=True)


def date_ticks(axis: Any) -> None:
    """Ticks at round dates, with short labels."""
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator(minticks=3, maxticks=8)
    axis.set_major_locator(locator)
    axis.set_major_formatter(ConciseDateFormatter(locator))


def row_axis(ax: Any, at: NDArray[Any], label: str) -> None:
    """Make the x axis one of the times or numbers of rows."""
    if at.dtype.kind == "M":
        date_ticks(ax.xaxis)
    elif at.dtype.kind in "iu":
        integer_ticks(ax.xaxis)
    ax.set_xlabel(label)


def feature_axis(ax: Any, names: list[str] | None, n_features: int) -> None:
    """Make the y axis one of features, the first at the top; of many, every k-th has a name."""
    if names is None:
        integer_ticks(ax.yaxis)
        ax.set_ylabel("feature")
    else:
        every = -(-n_features // MAX_NAMES)
        ax.set_yticks(range(0, n_features, every), [shortened(name) for name in names[::every]])
        ax.tick_params(axis="y", labelsize="small" if n_features > 12 else None)
        ax.set_ylabel("feature" if every == 1 else f"feature (1 in {every} named)")


def shortened(name: str, longest: int = 24) -> str:
    """A name that leaves room for the plot."""
    return name if len(name) <= longest else name[: longest - 1] + "…"
