"""Maps of a table: which entries are missing, and how far others are from what a model says."""

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._axes import feature_axis, new_axes, row_axis
from ._table import chosen_columns, missing_of, table_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Columns of pixels that a screen can resolve.
MAX_BINS = 250
# Residuals beyond this many deviations have the last colour.
MAX_DEVIATIONS = 4.0


def missing(X: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Show which entries of a table are missing: rows from left to right, a line per feature.

    Parameters
    ----------
    X : array-like or frame of shape (n_rows, n_features)
        Columns of a frame may be of any kind, and its dates are those of the axis. Of more than
        250 rows, several share a place, and the shade is the share of them that is missing.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : matplotlib Axes

    See Also
    --------
    filled : What a model fills in.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import plots
    >>> plots.missing([[1.0, np.nan], [2.0, 3.0]]).get_title()
    '25 % missing'
    """
    marks, table = missing_of(X)
    ax = new_axes(ax)
    edges = _bins(len(marks))
    shares = np.add.reduceat(marks, edges[:-1], dtype=np.float64) / np.diff(edges)[:, None]
    _draw(ax, table.at, edges, shares, cmap="Blues", vmin=0.0, vmax=1.0)
    row_axis(ax, table.at, table.label)
    feature_axis(ax, table.names, marks.shape[1])
    ax.set_title(f"{100 * marks.mean():.3g} % missing")
    return ax


def residuals(model: Any, X: Any, columns: Any = None, *, ax: "Axes | None" = None) -> "Axes":
    """Show how far the entries of a table are from what a model makes of their rows.

    A residual is an observed entry minus the entry that the row's code stands for, in standard
    deviations of the residuals of its feature. Runs of one colour are what the model does not
    explain: a level that has shifted, a sensor that drifts, rows of another kind.

    Parameters
    ----------
    model : fitted estimator
        Codes the rows.
    X : array-like or frame of shape (n_rows, n_features)
        The rows; missing entries are left white.
    columns : name or number, or a list of them, optional
        The features to show; by default all.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : matplotlib Axes

    See Also
    --------
    missing : Which entries are missing.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import OMFBImputer, plots
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 2)) @ rng.standard_normal((2, 6))
    >>> plots.residuals(OMFBImputer(random_state=0).fit(X), X).get_ylabel()
    'feature'
    """
    table = table_of(X, getattr(model, "feature_names_in_", None))
    which, _ = chosen_columns(table, columns, list(range(table.values.shape[1])))
    learner = model.learner_
    rows = table.values.astype(learner.dtype)
    differences = (table.values - learner.decode(learner.encode(rows)))[:, which]
    with np.errstate(invalid="ignore"):
        size = np.sqrt(np.nanmean(np.square(differences), axis=0, keepdims=True))
    deviations = differences / np.where(size > 0.0, size, 1.0)
    shown = table.take(which)
    edges = _bins(len(deviations))
    # Of several rows in one place, the entry that is farthest off.
    strongest = np.stack([
        _farthest(deviations[start:stop])
        for start, stop in pairwise(edges)
    ])  # fmt: skip
    ax = new_axes(ax)
    drawn = _draw(
        ax, table.at, edges, strongest, cmap="RdBu_r", vmin=-MAX_DEVIATIONS, vmax=MAX_DEVIATIONS
    )
    row_axis(ax, table.at, table.label)
    feature_axis(ax, shown.names, len(which))
    ax.figure.colorbar(drawn, ax=ax, extend="both", label="residual in standard deviations")
    return ax


def _bins(n_rows: int) -> NDArray[np.int64]:
    """Where the places of a map begin and end, as numbers of rows."""
    return np.linspace(0, n_rows, min(n_rows, MAX_BINS) + 1).astype(np.int64)


def _draw(ax: Any, at: NDArray[Any], edges: NDArray[np.int64], values: Any, **look: Any) -> Any:
    """A map whose places are as wide as the time between their rows."""
    step = (
        np.median(np.diff(at))
        if len(at) > 1
        else np.asarray(1, "m8[D]" if at.dtype.kind == "M" else int)
    )
    starts = np.append(at, at[-1] + step)[edges]
    if at.dtype.kind != "M":
        starts = starts - 0.5 * step  # the number of a row is at its middle
    n_features = values.shape[1]
    drawn = ax.pcolormesh(
        starts,
        np.arange(n_features + 1) - 0.5,
        np.ma.masked_invalid(values.T),
        rasterized=True,
        **look,
    )
    ax.set_ylim(n_features - 0.5, -0.5)
    return drawn


def _farthest(block: NDArray[np.float64]) -> NDArray[np.float64]:
    sizes = np.where(np.isnan(block), -1.0, np.abs(block))
    return np.asarray(block[np.argmax(sizes, axis=0), np.arange(block.shape[1])])
