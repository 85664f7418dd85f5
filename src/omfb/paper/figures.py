"""The paper's figures, as files and as parts of the report. Needs matplotlib."""

import io
import re
from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from ..plots.mosaic import enlarged, png, stretched, tiled, turned_bright
from .experiments import faces_missing, faces_online

# The colour of text and axes; in a page it becomes the page's own, light or dark.
INK = "#1b1f24"
# What is missing in an image.
MISSING = (0.36, 0.45, 0.78)
# Readable on white and on black, also by those who cannot tell red from green.
STYLES = {
    faces_online.MEMORY: ("#e8590c", "-"),
    faces_online.PAPER: ("#3b82f6", "-"),
    faces_missing.MULTIPLICATIVE: ("#12a150", "-"),
    faces_online.SGMF_DATA: ("#a855f7", "-"),
    faces_online.SGMF_RANDOM: ("#a855f7", (0, (4, 2))),
    faces_online.PCA: ("#0d9aa5", (0, (6, 1.5))),
    faces_online.DICTIONARY: ("#b08a2e", (0, (1.5, 1))),
}
LEVEL = ("#8a929c", (0, (5, 3)))
# Images are enlarged to at least this many pixels across, so that no viewer has to blur them.
SHARP_WIDTH = 1920
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
    rows: list[float]
    errors: list[float]


def error_figure(curves: dict[str, Curve], optimum: float) -> Figure:
    """Error against seconds, and against rows processed; the paper's Fig. 1.

    Parameters
    ----------
    curves : dict of Curve
        By method.
    optimum : float
        The least error that any dictionary of this size can have.
    """
    with rc_context(SETTINGS):
        figure = Figure(figsize=(9.6, 4.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for name, curve in curves.items():
            colour, dashes = STYLES.get(name, (None, "-"))
            for axes, at in ((left, curve.seconds), (right, curve.rows)):
                axes.plot(at, curve.errors, color=colour, linestyle=dashes, label=name)
        for axes, label in ((left, "seconds of learning"), (right, "rows processed")):
            axes.axhline(
                optimum,
                color=LEVEL[0],
                linestyle=LEVEL[1],
                linewidth=1.4,
                label=faces_online.OPTIMUM,
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
    """SNR against passes over the data: means, and bands from the lowest to the highest.

    Parameters
    ----------
    curves : dict of dict
        By method: by passes, a value for each repeat.
    levels : dict of float
        Values to compare with, by name.
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
        By caption; NaN is missing.
    shape : (int, int)
        Height and width of an image.
    """
    with rc_context(SETTINGS):
        columns = len(next(iter(pictures.values())))
        close = ConstrainedLayoutEngine(h_pad=0.02, hspace=0.0)
        figure = Figure(figsize=(8.4, 0.88 * len(pictures)), layout=close)
        all_axes = figure.subplots(len(pictures), squeeze=False)[:, 0]
        for axes, (caption, images) in zip(all_axes, pictures.items(), strict=True):
            axes.imshow(enlarged(mosaic(images, shape, columns), SHARP_WIDTH))
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
            axes.imshow(enlarged(atoms_mosaic(dictionary, shape), SHARP_WIDTH))
            axes.set_axis_off()
            axes.set_title(name)
    return figure


def mosaic(images: NDArray[Any], shape: tuple[int, int], columns: int) -> NDArray[np.float64]:
    """Images side by side, with transparent gaps: RGBA of shape (height, width, 4)."""
    pixels = np.asarray(images, np.float64).reshape(-1, *shape, 1)
    colours = np.where(np.isnan(pixels), MISSING, np.clip(pixels, 0.0, 1.0))
    opaque = np.concatenate([colours, np.ones_like(pixels)], axis=-1)
    return tiled(opaque, columns, gap=max(1, shape[1] // 16))


def atoms_mosaic(atoms: NDArray[Any], shape: tuple[int, int]) -> NDArray[np.float64]:
    """Atoms side by side, each from black to white."""
    return mosaic(stretched(turned_bright(atoms)), shape, 10)


def sharp_png(pixels: NDArray[Any]) -> bytes:
    """The image as a PNG file, enlarged so that its pixels stay sharp."""
    return png(enlarged(pixels, SHARP_WIDTH))


def render(figure: Figure, kind: str) -> bytes:
    """The figure as an SVG or PNG file, on white."""
    file = io.BytesIO()
    with rc_context({**SETTINGS, "svg.hashsalt": "omfb"}):
        figure.savefig(file, format=kind, dpi=200, facecolor="white", metadata=_dateless(kind))
    return file.getvalue()


def inline_svg(figure: Figure, salt: str) -> str:
    """The figure as an element of a page, in the page's colours; `salt` makes its ids unique.

    Its legend is left out: the page shows `legend_entries` as text, which wraps where it is narrow.
    """
    file = io.StringIO()
    legends = figure.legends[:]
    figure.legends.clear()
    try:
        with rc_context({**SETTINGS, "svg.hashsalt": "omfb"}):
            figure.savefig(file, format="svg", transparent=True, metadata=_dateless("svg"))
    finally:
        figure.legends.extend(legends)
    svg = file.getvalue()
    svg = re.sub(r'( id="|url\(#|href="#)', rf"\g<1>{salt}-", svg[svg.index("<svg") :])
    return svg.replace(INK, "currentColor")


def legend_entries(figure: Figure) -> list[tuple[str, str, str]]:
    """Name, colour and line style ("solid", "dashed" or "dotted", as in CSS) of each curve."""
    styles = {"-": "solid", "--": "dashed", ":": "dotted"}
    entries = []
    for legend in figure.legends:
        lines: list[Any] = legend.legend_handles
        for line, text in zip(lines, legend.get_texts(), strict=True):
            entries.append((text.get_text(), line.get_color(), styles[line.get_linestyle()]))
    return entries


def _dateless(kind: str) -> dict[str, Any]:
    """Metadata without a date, so that the same run gives the same file."""
    return {"Date": None} if kind == "svg" else {}


def _finish(axes: Axes) -> None:
    axes.grid(True, alpha=0.15, color=INK, linewidth=0.8)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
