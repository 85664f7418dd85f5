"""The paper's figures. Needs matplotlib."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import NullFormatter
from numpy.typing import NDArray

from ..plots.mosaic import enlarged, stretched, tiled, turned_bright
from ..report.drawing import INK, SETTINGS, SHARP_WIDTH
from ..report.outcome import Outcome
from .experiments import faces_missing, faces_online
from .experiments.images import Images

# What is missing in an image.
MISSING = (0.36, 0.45, 0.78)
# Readable on white and on black, also by those who cannot tell red from green.
STYLES = {
    faces_online.OURS: ("#e8590c", "-"),
    faces_online.PAPER: ("#3b82f6", "-"),
    faces_missing.MULTIPLICATIVE: ("#12a150", "-"),
    faces_online.SGMF_DATA: ("#a855f7", "-"),
    faces_online.SGMF_RANDOM: ("#a855f7", (0, (4, 2))),
    faces_online.PCA: ("#0d9aa5", (0, (6, 1.5))),
    faces_online.DICTIONARY: ("#b08a2e", (0, (1.5, 1))),
}
LEVEL = ("#8a929c", (0, (5, 3)))


def figures_of(outcome: Outcome, images: Images) -> dict[str, Figure]:
    """The figures of an experiment, by the name of their files."""
    figures: dict[str, Figure] = {}
    if outcome.experiment == faces_online.NAME:
        figures["faces-online"] = _error_figure(outcome, len(images.rows))
    else:
        figures["faces-missing-snr"] = _snr_figure(outcome)
        pictures = {_caption(outcome, name): rows for name, rows in outcome.pictures.items()}
        figures["faces-missing"] = pictures_figure(pictures, images.shape)
    atoms = {name: outcome.atoms[name] for name in shown_atoms(outcome)}
    figures[f"{outcome.experiment}-atoms"] = atoms_figure(atoms, images.shape)
    return figures


def shown_atoms(outcome: Outcome) -> list[str]:
    """Methods whose atoms are shown: ours first, then the paper's."""
    shown = (faces_online.OURS, faces_online.PAPER, faces_missing.MULTIPLICATIVE)
    return [name for name in shown if name in outcome.atoms]


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


def _caption(outcome: Outcome, name: str) -> str:
    """The name, and its SNR on the mask that is shown."""
    if name not in outcome.methods(faces_missing.SNR):
        return name
    return f"{name}\n{outcome.values(name, faces_missing.SNR)[0]:.2f} dB"


def _error_figure(outcome: Outcome, n_images: int) -> Figure:
    curves = {}
    for name in faces_online.METHODS:
        errors = outcome.curve(name, faces_online.ERROR)
        seconds = outcome.curve(name, faces_online.SECONDS)
        curves[name] = Curve(
            seconds=[seconds[passes][0] for passes in errors],
            rows=[passes * n_images for passes in errors],
            errors=[values[0] for values in errors.values()],
        )
    (optimum,) = outcome.values(faces_online.OPTIMUM, faces_online.ERROR)
    return error_figure(curves, optimum)


def _snr_figure(outcome: Outcome) -> Figure:
    names = (faces_missing.OURS, faces_missing.MULTIPLICATIVE, faces_missing.PAPER)
    curves = {name: outcome.curve(name, faces_missing.SNR) for name in names}
    mean = outcome.values(faces_missing.MEAN_IMAGE, faces_missing.SNR)
    return snr_figure(curves, {faces_missing.MEAN_IMAGE: sum(mean) / len(mean)})


def _finish(axes: Axes) -> None:
    axes.grid(True, alpha=0.15, color=INK, linewidth=0.8)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())
