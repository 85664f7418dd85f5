"""What a model has found: its components and their variances."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ._axes import MAX_NAMES, feature_axis, integer_ticks, new_axes
from .mosaic import stretched, tiled, turned_bright

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def components(
    model: Any,
    n: int | None = None,
    *,
    shape: tuple[int, int] | None = None,
    ax: "Axes | None" = None,
) -> "Axes":
    """Show the components of a model: a map of their loadings, or images.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_components, n_features)
        Its components, in descending order of variance where the model knows it. A map shows
        them in units of the features, `scale_`, if the model has found any.
    n : int, optional
        How many to show; by default those that stand out of the noise, at most 30 in a map.
    shape : (int, int), optional
        Height and width, if a row is an image: each component is then an image, from black to
        white, with its sign flipped so that most of it is bright.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : matplotlib Axes

    See Also
    --------
    spectrum : How much variance each component explains.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import plots
    >>> plots.components(np.eye(4), shape=(2, 2)).get_title()
    '4 components of 2 × 2'
    >>> plots.components(np.eye(4)).get_xlabel()
    'component'
    """
    values = np.asarray(getattr(model, "components_", model), np.float64)
    if values.ndim != 2 or values.size == 0:
        raise ValueError(
            f"components have the shape {values.shape}, not (n_components, n_features)"
        )
    if n is None:
        n = getattr(model, "n_components_", len(values))
        n = n if shape is not None else min(n, MAX_NAMES)
    values = values[: max(1, n)]
    if shape is not None:
        return _images(values, shape, ax)
    names = getattr(model, "feature_names_in_", None)
    values = values / getattr(model, "scale_", 1.0)
    ax = new_axes(ax)
    largest = np.abs(values).max(axis=1, keepdims=True)
    loadings = values / np.where(largest > 0.0, largest, 1.0)
    n_features = values.shape[1]
    drawn = ax.imshow(
        loadings.T, cmap="RdBu_r", vmin=-1.0, vmax=1.0, aspect="auto", interpolation="nearest",
        extent=(0.5, len(values) + 0.5, n_features - 0.5, -0.5),
    )  # fmt: skip
    integer_ticks(ax.xaxis)
    ax.set_xlabel("component")
    feature_axis(ax, None if names is None else [str(name) for name in names], n_features)
    ax.figure.colorbar(drawn, ax=ax, label="loading, beside the component's largest")
    return ax


def spectrum(model: Any, *, ax: "Axes | None" = None) -> "Axes":
    """Plot how much variance each component explains, largest first.

    Parameters
    ----------
    model : fitted estimator, or array-like of shape (n_components,)
        A model with `explained_variance_`, or variances.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    ax : matplotlib Axes

    See Also
    --------
    components : What the components look like.

    Examples
    --------
    >>> from omfb import plots
    >>> plots.spectrum([0.5, 4.0, 1.0]).get_xlabel()
    'component'
    """
    values = np.asarray(getattr(model, "explained_variance_", model))
    if values.ndim != 1 or values.dtype.kind not in "fiu":
        raise ValueError(
            "model has no explained_variance_: give a fitted OnlineFactorAnalysis or OMFBImputer, "
            "or an array of variances."
        )
    variances = np.sort(values.astype(np.float64))[::-1]
    ax = new_axes(ax)
    ax.plot(np.arange(1, len(variances) + 1), variances, marker="o", markersize=4)
    ax.set_xlabel("component")
    ax.set_ylabel("explained variance")
    integer_ticks(ax.xaxis)
    if len(variances) and variances[-1] > 0 and variances[0] > 100 * variances[-1]:
        ax.set_yscale("log")
    else:
        ax.set_ylim(bottom=0.0)
    return ax


def _images(values: NDArray[np.float64], shape: tuple[int, int], ax: Any) -> Any:
    height, width = shape
    if values.shape[1] != height * width:
        raise ValueError(
            f"components of {values.shape[1]} features are not images of {height} × {width}: shape "
            f"must be two numbers whose product is {values.shape[1]}."
        )
    grey = stretched(turned_bright(values)).reshape(-1, height, width)
    mosaic = tiled(grey, gap=max(1, width // 16), background=np.nan)
    ax = new_axes(ax)
    ax.imshow(mosaic, cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
    ax.set_axis_off()
    ax.set_title(f"{len(values)} components of {height} × {width}")
    return ax
