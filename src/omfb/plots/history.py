"""The error as learning goes on."""

from typing import TYPE_CHECKING, Any

import numpy as np

from ._axes import integer_ticks, new_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def error_history(model: Any, *, label: str | None = None, ax: "Axes | None" = None) -> "Axes":
    """Plot the error of entries that a model predicted before it learned them, over the rows.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_points, 2) or (n_points,)
        A model with `error_history_`; or rows learned and errors; or errors alone.
    label : str, optional
        Name in the legend, to compare several histories in one plot.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : matplotlib Axes

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import OnlineFactorAnalysis, plots
    >>> rng = np.random.default_rng(0)
    >>> model = OnlineFactorAnalysis(random_state=0)
    >>> for _ in range(20):
    ...     rows = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 8))
    ...     model = model.partial_fit(rows)
    >>> plots.error_history(model).get_xlabel()
    'rows learned'
    """
    points = np.asarray(getattr(model, "error_history_", model))
    if (
        points.dtype.kind not in "fiu"
        or points.ndim not in (1, 2)
        or points.shape[1:] not in ((), (2,))
    ):
        raise ValueError(
            "model has no error_history_: give a fitted estimator, or an array of errors of shape "
            "(n_points,) or, with the rows learned, (n_points, 2)."
        )
    numbered = points.ndim == 1
    at = np.arange(1, len(points) + 1) if numbered else points[:, 0]
    errors = points if numbered else points[:, 1]
    ax = new_axes(ax)
    # A single point makes no line.
    ax.plot(at, errors, label=label, marker="o" if len(points) == 1 else "")
    ax.set_xlabel("step" if numbered else "rows learned")
    integer_ticks(ax.xaxis)
    ax.set_ylabel("error" if numbered else "error, relative to the mean")
    ax.set_ylim(bottom=0.0)
    if label is not None:
        ax.legend(loc="best")
    return ax
