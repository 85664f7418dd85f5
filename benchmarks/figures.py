"""Figures of the benchmarks: panels of lines, ours in front."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Line = tuple[Sequence[float], Sequence[float]]


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    x: str
    y: str
    lines: dict[str, Line]
    log_x: bool = True
    log_y: bool = True
    levels: dict[str, float] = field(default_factory=dict)  # horizontal lines, named
    marks: Sequence[float] = ()  # vertical lines
    top: float | None = None
    wide: bool = False


def _pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "omfb"  # the same figure is the same file
    return pyplot


def draw(path: Path, panels: Sequence[Panel], ours: str = "omfb") -> None:
    """Write the panels as SVG, three in a row; lines whose name starts with `ours` are thick."""
    pyplot = _pyplot()
    names = list(dict.fromkeys(name for panel in panels for name in panel.lines))
    columns = min(len(panels), 3)
    rows = -(-len(panels) // columns)
    width = 4.6 * columns * (2 if any(panel.wide for panel in panels) else 1)
    figure, grid = pyplot.subplots(
        rows, columns, figsize=(width, 4.6 * rows), squeeze=False, layout="constrained"
    )
    axes, spare = grid.flat[: len(panels)], grid.flat[len(panels) :]
    for axis in spare:
        axis.remove()
    colours = pyplot.colormaps["tab20"].colors
    for panel, axis in zip(panels, axes, strict=True):
        for name, (xs, ys) in panel.lines.items():
            own = name.startswith(ours)
            axis.plot(
                xs, ys, marker="o", markersize=4 if len(xs) < 60 else 0, label=name,
                color=colours[names.index(name) % 20], linewidth=2.4 if own else 1.2,
                zorder=3 if own else 2,
            )  # fmt: skip
        _finish(panel, axis)
    handles = {}
    for axis in axes:
        handles |= dict(zip(*reversed(axis.get_legend_handles_labels()), strict=True))
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4,
                  fontsize=8, frameon=False)  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)


def _finish(panel: Panel, axis) -> None:
    axis.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    if panel.log_x:
        axis.set_xscale("log")
    if panel.log_y:
        axis.set_yscale("log")
    low, high = axis.get_ylim()
    if panel.log_y and high < 10 * low:  # a flat line should look flat
        middle = (low * high) ** 0.5
        axis.set_ylim(middle / 10**0.5, middle * 10**0.5)
    axis.xaxis.set_minor_formatter("")
    for name, level in panel.levels.items():
        axis.axhline(level, color="0.5", linestyle=":", linewidth=1)
        axis.annotate(name, (1, level), xycoords=("axes fraction", "data"), fontsize=7,
                      color="0.4", ha="right", va="bottom")  # fmt: skip
    for mark in panel.marks:
        axis.axvline(mark, color="0.7", linestyle="--", linewidth=1)
    if panel.top is not None:
        axis.set_ylim(top=panel.top)
    axis.grid(alpha=0.25)


def draw_ratios(path: Path, ratios: dict[str, dict[str, float]], most: float = 2.5) -> None:
    """A line for each panel: the error of each method as a multiple of omfb's."""
    pyplot = _pyplot()
    figure, axis = pyplot.subplots(figsize=(8, 1.5 + 0.3 * len(ratios)), layout="constrained")
    methods = list(dict.fromkeys(name for panel in ratios.values() for name in panel))
    for number, name in enumerate(methods):
        shown = {y: panel[name] for y, panel in enumerate(ratios.values())
                 if panel.get(name, most) < most}  # fmt: skip
        marker = "osD^vP*Xh<>p8"[number % 13]
        axis.scatter(shown.values(), shown.keys(), marker=marker, label=name, alpha=0.8, zorder=2)
    axis.axvline(1.0, color="black", linewidth=1)
    axis.set_yticks(range(len(ratios)), list(ratios))
    axis.invert_yaxis()
    axis.set(xscale="log", ylabel="panel", xlabel="RMSE on hidden entries / omfb's with nothing set"
             f"\n(below 1 is ahead of omfb; above {most:g} is not shown)")  # fmt: skip
    ticks = [0.8, 0.9, 1.0, 1.2, 1.5, 2.0]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.xaxis.set_minor_formatter("")
    axis.grid(alpha=0.25)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    pyplot.close(figure)
