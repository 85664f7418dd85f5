"""Series with what a model fills into them, and forecasts."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._axes import FILLED, OBSERVED, new_axes, row_axis, shortened
from ._table import Table, chosen_columns, table_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Panels of a figure, if the columns are not named.
USUAL_PANELS = 3


def filled(
    model: Any, X: Any, columns: Any = None, *, level: float = 0.9, ax: "Axes | None" = None
) -> Any:
    """Plot columns of a table with the values that a model fills in, and their intervals.

    Parameters
    ----------
    model : fitted estimator
        Fills X by `complete`; `interval` gives the bounds, if the model has it.
    X : array-like or frame of shape (n_rows, n_features)
        The rows to show, with missing entries. Dates of its index are those of the axis.
    columns : name or number, or a list of them, optional
        By default, the three columns with the most missing entries.
    level : float, default=0.9
        Probability of the intervals.
    ax : matplotlib Axes, optional
        Only for a single column.

    Returns
    -------
    axes : matplotlib Axes, or an ndarray of them
        One for each column; the Axes itself if `columns` is a single name or number.

    See Also
    --------
    forecast : The rows that follow.
    missing : Which entries are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import OMFBImputer, plots
    >>> level = np.sin(np.arange(200) / 5)
    >>> X = np.column_stack([level, 2 * level, 1 - level])
    >>> X[50:60, 1] = np.nan
    >>> ax = plots.filled(OMFBImputer(random_state=0).fit(X), X, columns=1)
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['observed', 'filled', '90 % interval']
    """
    names = _feature_names(model)
    table = table_of(X, names)
    many = np.argsort(-np.isnan(table.values).sum(axis=0), kind="stable")[:USUAL_PANELS]
    which, single = chosen_columns(table, columns, sorted(many.tolist()))
    completed = table_of(model.complete(X), names).values
    ends: dict[str, NDArray[np.float64]] = {}
    if hasattr(model, "interval"):
        low, high = (table_of(end, names).values for end in model.interval(X, level=level))
        ends = {"low": low, "high": high}
    panels = _panels(ax, which)
    for panel, column in zip(panels, which, strict=True):
        bounds = {name: end[:, column] for name, end in ends.items()}
        draw_filled(
            panel, table.at, table.values[:, column], completed[:, column],
            interval=f"{100 * level:g} % interval", **bounds,
        )  # fmt: skip
    _finish(panels, table, which)
    return panels[0] if single else panels


def forecast(
    model: Any,
    X: Any,
    steps: int = 24,
    columns: Any = None,
    *,
    level: float = 0.9,
    past: int | None = None,
    ax: "Axes | None" = None,
    **options: Any,
) -> Any:
    """Plot the end of a table, and how a model continues it.

    Parameters
    ----------
    model : fitted temporal estimator
        One that has learned from X last.
    X : array-like or frame of shape (n_rows, n_features)
        The rows before the forecast.
    steps : int, default=24
        How many rows ahead.
    columns : name or number, or a list of them, optional
        By default, the first three columns.
    level : float, default=0.9
        Probability of the intervals.
    past : int, optional
        How many rows of X to show; by default twice as many as `steps`.
    ax : matplotlib Axes, optional
        Only for a single column.
    **options
        For `model.forecast`.

    Returns
    -------
    axes : matplotlib Axes, or an ndarray of them
        One for each column; the Axes itself if `columns` is a single name or number.

    See Also
    --------
    filled : The values that are missing in the table.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import OMFBImputer, plots
    >>> level = np.sin(np.arange(300) / 5)
    >>> X = np.column_stack([level, 2 * level, 1 - level])
    >>> model = OMFBImputer(temporal=True, random_state=0).fit(X)
    >>> plots.forecast(model, X, steps=12, columns=0).get_ylabel()
    'feature 0'
    """
    names = _feature_names(model)
    table = table_of(X, names)
    first = list(range(min(USUAL_PANELS, table.values.shape[1])))
    which, single = chosen_columns(table, columns, first)
    ahead = [table_of(part, names) for part in model.forecast(steps, level=level, **options)]
    mean, low, high = (part.values for part in ahead)
    at = ahead[0].at if ahead[0].label != "row" else _continued(table.at, len(mean))
    shown = slice(-(2 * steps if past is None else past), None)
    panels = _panels(ax, which)
    for panel, column in zip(panels, which, strict=True):
        draw_forecast(
            panel, table.at[shown], table.values[shown, column], at, mean[:, column],
            low[:, column], high[:, column], f"{100 * level:g} % interval",
        )  # fmt: skip
    _finish(panels, table, which)
    return panels[0] if single else panels


def draw_forecast(
    ax: Any, at: NDArray[Any], before: NDArray[Any], ahead: NDArray[Any], mean: NDArray[Any],
    low: NDArray[Any], high: NDArray[Any], interval: str = "interval",
) -> None:  # fmt: skip
    """Draw the end of one series and its continuation into Axes.

    Parameters
    ----------
    ax : matplotlib Axes
    at, ahead : ndarray of shape (n_rows,), (steps,)
        Times or numbers of the rows, and of those to come.
    before : ndarray of shape (n_rows,)
        NaN is missing.
    mean, low, high : ndarray of shape (steps,)
    interval : str
        The name of the interval in the legend.
    """
    ax.plot(
        at, before, color=OBSERVED, linewidth=1.5, label="observed",
        **_isolated(~np.isnan(before)),
    )  # fmt: skip
    dots = {"marker": "o", "markersize": 3} if len(ahead) == 1 else {}
    ax.plot(ahead, mean, color=FILLED, linewidth=1.5, label="forecast", **dots)
    ax.fill_between(ahead, low, high, color=FILLED, alpha=0.25, linewidth=0, label=interval)


def draw_filled(
    ax: Any,
    at: NDArray[Any],
    observed: ArrayLike,
    completed: ArrayLike,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    interval: str = "interval",
) -> None:
    """Draw one series into Axes: observed values, filled ones, and the interval around these.

    Parameters
    ----------
    ax : matplotlib Axes
    at : ndarray of shape (n_rows,)
        Times or numbers of the rows.
    observed : array-like of shape (n_rows,)
        NaN is missing.
    completed : array-like of shape (n_rows,)
        Only the values missing in `observed` are drawn.
    low, high : array-like of shape (n_rows,), optional
        Ends of the interval for each value.
    interval : str
        Its name in the legend.
    """
    values, whole = np.asarray(observed, np.float64), np.asarray(completed, np.float64)
    missing = np.isnan(values)
    ax.plot(at, values, color=OBSERVED, linewidth=1.5, label="observed", **_isolated(~missing))
    # A filled gap begins and ends at its observed neighbours, so that the line is not broken.
    near = _widened(missing)
    drawn = np.where(near, whole, np.nan)
    ax.plot(at, drawn, color=FILLED, linewidth=1.5, label="filled", **_isolated(near))
    if low is not None and high is not None:
        # Zero width at observed values.
        lower, upper = (np.where(missing, end, whole) for end in (low, high))
        ax.fill_between(
            at, lower, upper, where=near, color=FILLED, alpha=0.25, linewidth=0, label=interval
        )


def _feature_names(model: Any) -> list[str] | None:
    names = getattr(model, "feature_names_in_", None)
    return None if names is None else [str(name) for name in names]


def _panels(ax: Any, which: list[int]) -> Any:
    if ax is not None and len(which) > 1:
        raise ValueError(f"ax is for one column, but columns has {len(which)}: leave out ax.")
    return new_axes(ax, len(which))


def _finish(panels: Any, table: Table, which: list[int]) -> None:
    """Labels of all panels, and one legend."""
    for panel, column in zip(panels, which, strict=True):
        panel.set_ylabel(shortened(table.name_of(column)))
        panel.margins(x=0.01)
        row_axis(panel, table.at, table.label if panel is panels[-1] else "")
    panels[0].legend(
        loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3, frameon=False, borderaxespad=0.2
    )


def _continued(at: NDArray[Any], steps: int) -> NDArray[Any]:
    """Times or numbers after the last one, at the usual distance."""
    step = np.median(np.diff(at)) if len(at) > 1 else np.int64(1)
    return at[-1] + np.arange(1, steps + 1) * step


def _widened(marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Also mark the neighbours of marked entries."""
    wide = marked.copy()
    wide[1:] |= marked[:-1]
    wide[:-1] |= marked[1:]
    return wide


def _isolated(drawn: NDArray[np.bool_]) -> dict[str, Any]:
    """Options that mark the points without a neighbour to draw a line to."""
    isolated = drawn.copy()
    isolated[1:] &= ~drawn[:-1]
    isolated[:-1] &= ~drawn[1:]
    if not isolated.any():
        return {}
    return {"marker": "o", "markersize": 3, "markevery": np.flatnonzero(isolated).tolist()}
