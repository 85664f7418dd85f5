"""Every figure. Needs matplotlib, which is imported here only."""

import io
import math
import re
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import imsave
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

# The colour of text and axes; in a page it becomes the page's own, light or dark.
INK = "#1b1f24"
# What is missing in an image.
HOLE = (0.36, 0.45, 0.78)
# Readable on white and on black, and told apart without seeing red from green.
STYLES = {
    "omfb, memory=1": ("#e8590c", "-"),
    "OMF-B, the paper's": ("#3b82f6", "-"),
    "NMF": ("#12a150", "-"),
    "SGMF, best start": ("#a855f7", "-"),
    "SGMF, the paper's start": ("#a855f7", (0, (4, 2))),
    "IncrementalPCA": ("#0d9aa5", (0, (6, 1.5))),
    "MiniBatchDictionaryLearning": ("#b08a2e", (0, (1.5, 1))),
}
LEVEL = ("#8a929c", (0, (5, 3)))
SETTINGS = {
    "svg.fonttype": "none",
    "font.size": 10.5,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "lines.linewidth": 2.0,
    "legend.frameon": False,
}


class Curve(NamedTuple):
    """The error of a method as it learns."""

    seconds: list[float]
    observations: list[float]
    errors: list[float]


def error_figure(curves: dict[str, Curve], optimum: float) -> Figure:
    """Error against seconds, and against observations processed; the paper's Fig. 1.

    Parameters
    ----------
    curves : dict of Curve
        By method.
    optimum : float
        The error that no dictionary of this size can be below.
    """
    with rc_context(SETTINGS):
        figure = Figure(figsize=(9.6, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for name, curve in curves.items():
            colour, dashes = STYLES.get(name, (None, "-"))
            for axes, at in ((left, curve.seconds), (right, curve.observations)):
                axes.plot(at, curve.errors, color=colour, linestyle=dashes, label=name)
        for axes, label in ((left, "seconds of learning"), (right, "observations processed")):
            axes.axhline(
                optimum, color=LEVEL[0], linestyle=LEVEL[1], linewidth=1.4, label="SVD, the optimum"
            )
            axes.set_xscale("log")
            axes.set_xlabel(label)
            _finish(axes)
        highest = max(curve.errors[-1] for curve in curves.values())
        left.set_ylim(0.96 * optimum, max(1.9 * optimum, 1.1 * highest))
        left.set_ylabel("error ‖Y − C X‖, pixels from 0 to 1")
        left.set_title("(a) against time")
        right.set_title("(b) against data")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure


def snr_figure(curves: dict[str, dict[float, list[float]]], levels: dict[str, float]) -> Figure:
    """SNR against passes over the data: means, and bands from the least to the largest.

    Parameters
    ----------
    curves : dict of dict
        By method: by passes, a value for each repeat.
    levels : dict of float
        Values to compare with, by their name.
    """
    with rc_context(SETTINGS):
        figure = Figure(figsize=(7.6, 4.6), layout="constrained")
        axes = figure.subplots()
        for name, curve in curves.items():
            colour, dashes = STYLES.get(name, (None, "-"))
            passes = list(curve)
            values = np.array([curve[at] for at in passes])
            axes.plot(passes, values.mean(axis=1), color=colour, linestyle=dashes, label=name)
            axes.fill_between(
                passes,
                values.min(axis=1),
                values.max(axis=1),
                color=colour,
                alpha=0.18,
                linewidth=0,
            )
        for name, level in levels.items():
            axes.axhline(level, color=LEVEL[0], linestyle=LEVEL[1], linewidth=1.2)
            axes.annotate(
                name,
                (1.0, level),
                (-2, 3),
                ("axes fraction", "data"),
                "offset points",
                ha="right",
                color=LEVEL[0],
                fontsize=9,
            )
        axes.set_xscale("log")
        axes.set_xlabel("passes over the data (iterations of NMF)")
        axes.set_ylabel("SNR in dB")
        _finish(axes)
        figure.legend(loc="outside lower center", ncols=3)
    return figure


def pictures_figure(pictures: dict[str, NDArray[Any]], shape: tuple[int, int]) -> Figure:
    """Rows of images with their captions; the paper's Fig. 2.

    Parameters
    ----------
    pictures : dict of ndarray of shape (n_images, height * width)
        By caption; NaN is shown as a hole.
    shape : (int, int)
        Height and width of an image.
    """
    with rc_context(SETTINGS):
        columns = len(next(iter(pictures.values())))
        close = ConstrainedLayoutEngine(h_pad=0.02, hspace=0.0)
        figure = Figure(figsize=(8.4, 0.88 * len(pictures)), layout=close)
        all_axes = figure.subplots(len(pictures), squeeze=False)[:, 0]
        for axes, (caption, images) in zip(all_axes, pictures.items(), strict=True):
            axes.imshow(mosaic(images, shape, columns), interpolation="nearest")
            axes.set_axis_off()
            axes.text(-0.02, 0.5, caption, transform=axes.transAxes, ha="right", va="center")
    return figure


def atoms_figure(atoms: dict[str, NDArray[Any]], shape: tuple[int, int]) -> Figure:
    """Learned dictionaries, each atom stretched from black to white.

    Parameters
    ----------
    atoms : dict of ndarray of shape (n_components, height * width)
        By method.
    shape : (int, int)
        Height and width of an atom.
    """
    with rc_context(SETTINGS):
        figure = Figure(figsize=(8.4, 2.9 * len(atoms)), layout="constrained")
        all_axes = figure.subplots(len(atoms), squeeze=False)[:, 0]
        for axes, (name, dictionary) in zip(all_axes, atoms.items(), strict=True):
            axes.imshow(mosaic(stretched(dictionary), shape, 10), interpolation="nearest")
            axes.set_axis_off()
            axes.set_title(name)
    return figure


def stretched(atoms: NDArray[Any]) -> NDArray[np.float64]:
    """Each atom from 0 to 1, the way round that makes its larger part bright."""
    atoms = np.asarray(atoms, np.float64)
    atoms = atoms * np.where(atoms.sum(axis=1) < 0, -1.0, 1.0)[:, None]
    low, high = atoms.min(axis=1, keepdims=True), atoms.max(axis=1, keepdims=True)
    return (atoms - low) / np.where(high > low, high - low, 1.0)


def mosaic(images: NDArray[Any], shape: tuple[int, int], columns: int) -> NDArray[np.float64]:
    """Images side by side, with transparent gaps: RGBA of shape (height, width, 4)."""
    height, width = shape
    gap = max(1, width // 16)
    lines = math.ceil(len(images) / columns)
    canvas = np.zeros((lines * (height + gap) - gap, columns * (width + gap) - gap, 4))
    for number, image in enumerate(np.asarray(images, np.float64)):
        top, left = number // columns * (height + gap), number % columns * (width + gap)
        pixels = image.reshape(shape)[..., None]
        here = canvas[top : top + height, left : left + width]
        here[..., :3] = np.where(np.isnan(pixels), HOLE, np.clip(pixels, 0.0, 1.0))
        here[..., 3] = 1.0
    return canvas


def mosaic_png(images: NDArray[Any], shape: tuple[int, int], columns: int) -> bytes:
    """The mosaic as a PNG file, a pixel for a pixel."""
    file = io.BytesIO()
    imsave(file, mosaic(images, shape, columns), format="png")
    return file.getvalue()


def render(figure: Figure, kind: str) -> bytes:
    """The figure as an SVG or PNG file, on white."""
    file = io.BytesIO()
    with rc_context({**SETTINGS, "svg.hashsalt": "omfb"}):
        figure.savefig(file, format=kind, dpi=160, facecolor="white", metadata=_dateless(kind))
    return file.getvalue()


def inline_svg(figure: Figure, salt: str) -> str:
    """The figure as an element of a page, in the page's colours; `salt` keeps its ids apart."""
    file = io.StringIO()
    with rc_context({**SETTINGS, "svg.hashsalt": "omfb"}):
        figure.savefig(file, format="svg", transparent=True, metadata=_dateless("svg"))
    svg = file.getvalue()
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{salt}-", svg[svg.index("<svg") :])
    return svg.replace(INK, "currentColor")


def _dateless(kind: str) -> dict[str, Any]:
    """The same run gives the same file."""
    return {"Date": None} if kind == "svg" else {}


def _finish(axes: Axes) -> None:
    axes.grid(True, alpha=0.15, color=INK, linewidth=0.8)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
