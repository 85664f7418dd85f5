"""What the demo shows: filled series, a map of what is missing, photographs. Needs matplotlib."""

from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ..plots._axes import date_ticks
from ..plots.series import draw_filled
from ..report.drawing import INK, OBSERVED, SETTINGS
from . import air

# The station and variables whose series are shown: chosen before they were looked at.
STATION = "Dongsi"
SHOWN = {"PM2.5": "PM2.5 in µg/m³", "O3": "O₃ in µg/m³", "TEMP": "temperature in °C"}
AROUND = 48  # hours before and after a day on which the station was off
# Readable on white and on black.
BY_ITSELF, HIDDEN = "#8a929c", "#e8590c"
HOURS_PER_PIXEL = 4
MISSING = (0.36, 0.45, 0.78)
DETAIL = np.s_[90:154, 120:216]


def series_figure(table: air.Table, filled: air.Filled) -> Figure:
    """Days around an outage: what was seen, what was filled, its interval, and the truth."""
    columns = {name: table.names.index(f"{name} {STATION}") for name in SHOWN}
    off = np.flatnonzero(table.hidden[air.OUTAGES][:, columns["TEMP"]])[0]
    hours = slice(max(0, off - AROUND), off + 24 + AROUND)
    with rc_context(SETTINGS):
        figure = Figure(figsize=(9.6, 6.2), layout="constrained")
        panels = figure.subplots(len(SHOWN), sharex=True)
        for axes, (name, column) in zip(panels, columns.items(), strict=True):
            hidden = table.all_hidden[hours, column]
            draw_filled(
                axes, table.times[hours], table.seen[hours, column], filled.values[hours, column],
                filled.low[hours, column], filled.high[hours, column], "90 % interval",
            )  # fmt: skip
            truth = np.where(hidden, table.truth[hours, column], np.nan)
            axes.plot(
                table.times[hours], truth, color=INK, linestyle=":", linewidth=1.2, marker=".",
                markersize=4, label="truth, held out",
            )  # fmt: skip
            axes.lines[0].set_color(OBSERVED)
            axes.set_ylabel(SHOWN[name])
            axes.grid(True, alpha=0.15, color=INK, linewidth=0.8)
        date_ticks(panels[-1].xaxis)
        panels[0].set_title(f"{STATION}, {str(table.times[off])[:10]}: off for 24 hours")
        panels[-1].set_xlabel("time")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4)
    return figure


def missing_figure(table: air.Table) -> Figure:
    """Which entries of the table are missing, by themselves or on purpose."""
    kinds = np.where(table.all_hidden, 2, np.where(np.isnan(table.truth), 1, 0))
    edges = np.arange(0, len(kinds), HOURS_PER_PIXEL)
    shown = np.maximum.reduceat(kinds, edges, axis=0)
    stations = list(dict.fromkeys(name.split()[-1] for name in table.names))
    each = len(table.names) // len(stations)
    with rc_context(SETTINGS):
        figure = Figure(figsize=(9.6, 4.6), layout="constrained")
        axes = figure.subplots()
        colours = ListedColormap([(0.0, 0.0, 0.0, 0.0), BY_ITSELF, HIDDEN])
        start, end = (
            float(np.datetime64(t, "s").astype(float)) / 86400 for t in table.times[[0, -1]]
        )
        axes.imshow(
            shown.T, cmap=colours, vmin=0, vmax=2, aspect="auto", interpolation="nearest",
            extent=(start, end, len(table.names) - 0.5, -0.5),
        )  # fmt: skip
        date_ticks(axes.xaxis)
        axes.set_yticks(np.arange(len(stations)) * each + (each - 1) / 2, stations)
        axes.tick_params(axis="y", length=0)
        for line in range(each, len(table.names), each):
            axes.axhline(line - 0.5, color=INK, alpha=0.15, linewidth=0.6)
        axes.set_xlabel("time")
        axes.set_ylabel(f"station, {each} variables each")
        handles = [Patch(color=BY_ITSELF), Patch(color=HIDDEN)]
        figure.legend(
            handles, ["missing in the source", "held out"],
            loc="outside lower center", ncols=2,
        )  # fmt: skip
    return figure


def photograph_figure(pictures: dict[str, NDArray[Any]]) -> Figure:
    """Photographs side by side, two in a line."""
    with rc_context(SETTINGS):
        figure = Figure(figsize=(9.6, 3.4 * -(-len(pictures) // 2)), layout="constrained")
        panels = figure.subplots(-(-len(pictures) // 2), 2, squeeze=False).ravel()
        for axes, (caption, picture) in zip(panels, pictures.items(), strict=False):
            axes.imshow(coloured(picture), interpolation="nearest")
            axes.set_title(caption)
        for axes in panels:
            axes.set_axis_off()
    return figure


def coloured(picture: NDArray[Any]) -> NDArray[np.float64]:
    """The picture as RGBA; what is missing has a colour of its own."""
    colours = np.where(np.isnan(picture), MISSING, picture)
    return np.concatenate([colours, np.ones_like(colours[..., :1])], axis=-1)
