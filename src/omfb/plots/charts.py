"""Charts of errors, variances, atoms, filled series and missing entries."""

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .mosaic import stretched, tiled, turned_bright

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OBSERVED, FILLED = "#2f5d9b", "#e8590c"
# Lines of a map that a screen can resolve, and names that fit beside it.
MAX_MAP_LINES = 250
MAX_NAMES = 30


class HasComponents(Protocol):
    """A fitted model with atoms."""

    @property
    def components_(self) -> NDArray[Any]:
        """Atoms, one per row."""


class HasVariances(Protocol):
    """A fitted model that knows the variances of its components."""

    @property
    def explained_variance_(self) -> NDArray[Any]:
        """Variance of each component."""


def error_history(
    errors: ArrayLike, *, rows: ArrayLike | None = None, label: str | None = None,
    ax: "Axes | None" = None,
) -> "Axes":  # fmt: skip
    """Plot the error as learning goes on.

    Parameters
    ----------
    errors : array-like of shape (n_points,)
        For instance `prequential_error_` after each call of `partial_fit`.
    rows : array-like of shape (n_points,), optional
        Rows learned at each point; by default the points are numbered from 1.
    label : str, optional
        Name in the legend, to compare several histories in one plot.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from omfb.plots import error_history
    >>> error_history([0.5, 0.2, 0.1]).get_ylabel()
    'error'
    """
    values = _vector(errors, "errors")
    at = np.arange(1, len(values) + 1) if rows is None else _vector(rows, "rows", len(values))
    ax = _axes(ax)
    # A single point makes no line.
    ax.plot(at, values, label=label, marker="o" if len(values) == 1 else "")
    ax.set_xlabel("step" if rows is None else "rows learned")
    _whole_ticks(ax.xaxis)
    ax.set_ylabel("error")
    if label is not None:
        ax.legend(loc="best")
    return ax


def spectrum(explained_variance: ArrayLike | HasVariances, *, ax: "Axes | None" = None) -> "Axes":
    """Plot how much variance each component explains, largest first.

    Parameters
    ----------
    explained_variance : array-like of shape (n_components,), or a fitted model
        Variances, or a model with `explained_variance_`.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> from omfb.plots import spectrum
    >>> spectrum([0.5, 4.0, 1.0]).get_xlabel()
    'component'
    """
    values = getattr(explained_variance, "explained_variance_", explained_variance)
    variances = np.sort(_vector(values, "explained_variance"))[::-1]
    ax = _axes(ax)
    numbers = np.arange(1, len(variances) + 1)
    ax.plot(numbers, variances, marker="o", markersize=4)
    ax.set_xlabel("component")
    ax.set_ylabel("explained variance")
    _whole_ticks(ax.xaxis)
    if len(variances) and variances[-1] > 0 and variances[0] > 100 * variances[-1]:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0.0)
    return ax


def atoms(
    components: ArrayLike | HasComponents,
    shape: tuple[int, int],
    *,
    columns: int | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Show the atoms of a dictionary as images, each stretched from black to white.

    Parameters
    ----------
    components : array-like of shape (n_components, n_features), or a fitted model
        Atoms, or a model with `components_`. Signs are flipped so that most of an atom is bright.
    shape : (int, int)
        Height and width of an atom; their product is n_features.
    columns : int, optional
        Atoms per line; by default the image is about square.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from omfb.plots import atoms
    >>> atoms(np.eye(4), shape=(2, 2)).get_title()
    '4 atoms of 2 × 2'
    """
    values = np.asarray(getattr(components, "components_", components), np.float64)
    height, width = shape
    if values.ndim != 2 or values.shape[1] != height * width:
        raise ValueError(
            f"components of shape {values.shape} are not images of {height} × {width}: "
            f"components need the shape (n_components, {height * width})"
        )
    grey = stretched(turned_bright(values)).reshape(-1, height, width)
    mosaic = tiled(grey, columns, gap=max(1, width // 16), background=np.nan)
    ax = _axes(ax)
    ax.imshow(mosaic, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set_axis_off()
    ax.set_title(f"{len(values)} atoms of {height} × {width}")
    return ax


def filled_series(
    index: Any,
    observed: Any,
    filled: Any,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    *,
    ax: "Axes | None" = None,
) -> "Axes":
    """Plot a series, the values filled into it, and the interval around them.

    Parameters
    ----------
    index : array-like of shape (n_rows,)
        Times or numbers of the rows.
    observed : array-like of shape (n_rows,)
        The series; NaN is missing.
    filled : array-like of shape (n_rows,)
        The completed series. Only the values missing in `observed` are drawn.
    low, high : array-like of shape (n_rows,), optional
        Ends of the interval for each value.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from omfb.plots import filled_series
    >>> ax = filled_series([1, 2, 3], [1.0, np.nan, 3.0], [1.0, 2.0, 3.0], [0, 1.5, 0], [4, 2.5, 4])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['observed', 'filled', 'interval']
    """
    if (low is None) != (high is None):
        raise ValueError("an interval needs both its ends: give low and high, or neither")
    at, values = np.asarray(index), _vector(observed, "observed")
    completed = _vector(filled, "filled", len(values))
    if at.shape != values.shape:
        raise ValueError(f"index has the shape {at.shape}, but observed has {values.shape}")
    missing = np.isnan(values)
    ax = _axes(ax)
    if np.issubdtype(at.dtype, np.datetime64):
        _date_axis(ax)
    ax.plot(at, values, color=OBSERVED, linewidth=1.5, label="observed", **_dots(~missing))
    # A filled gap begins and ends at its observed neighbours, so that the line is not broken.
    near = _widened(missing)
    drawn = np.where(near, completed, np.nan)
    ax.plot(at, drawn, color=FILLED, linewidth=1.5, label="filled", **_dots(near))
    if low is not None and high is not None:
        # Zero width at observed values.
        lower, upper = (
            np.where(missing, _vector(end, name, len(values)), completed)
            for name, end in (("low", low), ("high", high))
        )
        ax.fill_between(
            at, lower, upper, where=near, color=FILLED, alpha=0.25, linewidth=0, label="interval"
        )
    ax.set_xlabel(str(getattr(index, "name", None) or ("time" if at.dtype.kind == "M" else "row")))
    ax.set_ylabel(str(getattr(observed, "name", None) or "value"))
    ax.legend(loc="best")
    return ax


def missing_map(X: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Show which entries of a table are missing.

    Parameters
    ----------
    X : array-like or DataFrame of shape (n_rows, n_features)
        NaN is missing. For more than 250 rows, a line of the map stands for several rows, and its
        shade for the share of them in which a feature is missing.
    ax : matplotlib Axes, optional

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from omfb.plots import missing_map
    >>> missing_map([[1.0, np.nan], [2.0, 3.0]]).get_title()
    '25 % missing'
    """
    missing = np.isnan(np.asarray(X, np.float64))
    if missing.ndim != 2 or missing.size == 0:
        raise ValueError(f"X needs rows and features, but has the shape {missing.shape}")
    n_rows, n_features = missing.shape
    edges = np.linspace(0, n_rows, min(n_rows, MAX_MAP_LINES) + 1).astype(int)
    share = np.add.reduceat(missing, edges[:-1], dtype=np.float64) / np.diff(edges)[:, None]
    ax = _axes(ax)
    ax.imshow(
        share, cmap="Blues", vmin=0.0, vmax=1.0, aspect="auto", interpolation="nearest",
        extent=(-0.5, n_features - 0.5, n_rows - 0.5, -0.5),
    )  # fmt: skip
    names = [str(name) for name in getattr(X, "columns", ())]
    if 0 < len(names) <= MAX_NAMES:
        ax.set_xticks(range(n_features), names, rotation=90 if max(map(len, names)) > 3 else 0)
    else:
        _whole_ticks(ax.xaxis)
    _whole_ticks(ax.yaxis)
    ax.set_xlabel("feature")
    ax.set_ylabel("row")
    ax.set_title(f"{100 * missing.mean():.3g} % missing")
    return ax


def _axes(ax: Any) -> Any:
    """The given Axes, or new ones in a figure that is not registered with pyplot."""
    if ax is not None:
        return ax
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "matplotlib":
            raise
        raise ImportError("plots need matplotlib: pip install 'omfb[plot]'") from None
    return Figure(figsize=(7.0, 4.0), layout="constrained").subplots()


def _vector(values: Any, name: str, length: int | None = None) -> NDArray[np.float64]:
    vector = np.asarray(values, np.float64)
    if vector.ndim != 1 or length not in (None, len(vector)):
        shape = "one dimension" if length is None else f"the shape ({length},)"
        raise ValueError(f"{name} needs {shape}, but has the shape {vector.shape}")
    return vector


def _widened(marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Also mark the neighbours of marked entries."""
    wide = marked.copy()
    wide[1:] |= marked[:-1]
    wide[:-1] |= marked[1:]
    return wide


def _dots(drawn: NDArray[np.bool_]) -> dict[str, Any]:
    """Options that mark the points without a neighbour to draw a line to."""
    isolated = drawn.copy()
    isolated[1:] &= ~drawn[:-1]
    isolated[:-1] &= ~drawn[1:]
    if not isolated.any():
        return {}
    return {"marker": "o", "markersize": 3, "markevery": np.flatnonzero(isolated).tolist()}


def _whole_ticks(axis: Any) -> None:
    """Only integer ticks, unless the axis has a locator of another kind."""
    from matplotlib.ticker import MaxNLocator

    locator = axis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(integer=True)


def _date_axis(ax: Any) -> None:
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    locator = AutoDateLocator()
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))
