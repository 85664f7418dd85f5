"""The report of a forecast: the last rows and what is to come, as a page, a picture or text.

Only `text` works without matplotlib.
"""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Columns that are drawn, at most.
DRAWN = 6
# Rows that are drawn before those to come: twice as many as these, at least so many.
LEAST_PAST = 48
PICTURES = ("svg", "png")


@dataclass(frozen=True, slots=True)
class Continued:
    """The end of a table, and its forecast.

    Attributes
    ----------
    names : list of str
    before : ndarray of shape (n_before, n_columns)
        The last rows; NaN is missing.
    at, ahead : ndarray of shape (n_before,), (steps,)
        When these rows came and those will: times, or numbers from 1 for the next row.
    mean, low, high : ndarray of shape (steps, n_columns)
    level : float
        The probability of the intervals.
    model : str
        Where the model is from.
    """

    names: list[str]
    before: NDArray[np.float64]
    at: NDArray[Any]
    ahead: NDArray[Any]
    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    level: float
    model: str

    @property
    def interval(self) -> str:
        """What the intervals are called."""
        return f"{100 * self.level:g} % interval"

    def rows(self) -> list[dict[str, str]]:
        """A row for each column: its last known value, the first and the last one to come."""
        steps = len(self.mean)
        made = []
        for j, name in enumerate(self.names):
            known = self.before[:, j][~np.isnan(self.before[:, j])]
            row = {"column": name, "last": f"{known[-1]:.4g}" if len(known) else "-"}
            for step in dict.fromkeys((1, steps)):
                ends = f"{self.low[step - 1, j]:.4g} to {self.high[step - 1, j]:.4g}"
                row[f"ahead {step}"] = f"{self.mean[step - 1, j]:.4g}"
                row[f"{self.interval}, ahead {step}"] = ends
            made.append(row)
        return made


def text(found: Continued) -> str:
    """A line for each column."""
    rows = found.rows()
    table = [list(rows[0]), *(list(row.values()) for row in rows)]
    sizes = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = (
        "  ".join(
            cell.rjust(size) if at else cell.ljust(size)
            for at, (cell, size) in enumerate(zip(line, sizes, strict=True))
        )
        for line in table
    )
    return "".join(line.rstrip() + "\n" for line in lines)


def picture(found: Continued, kind: str) -> bytes:
    """The figure as an SVG or PNG file."""
    from .drawing import render

    return render(_figure(found), kind)


def html(found: Continued) -> str:
    """A page that needs no other file."""
    from .environment import environment
    from .page import chart, page_of, table

    shown, steps = min(len(found.names), DRAWN), len(found.mean)
    some = "" if shown == len(found.names) else f", the first {shown} of {len(found.names)} columns"
    drawn = chart(
        _figure(found), "forecast",
        f"The last rows and {steps} to come with their {found.interval}, of columns "
        f"{', '.join(found.names[:shown])}",
    )  # fmt: skip
    section = f"""<section id="columns">
<h2>Every column</h2>
<p>The last value that was known, and the first and the last one to come.</p>
{table(found.rows())}
</section>"""
    return page_of(
        heading="Forecast",
        subtitle=f"{steps} rows ahead of {escape(found.model)}{escape(some)}",
        hero=f'<section class="hero">{drawn}</section>',
        sections=section,
        environment=environment(),
    )


def _figure(found: Continued) -> Any:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    from ..plots._axes import row_axis, shortened
    from ..plots.series import draw_forecast
    from .drawing import INK, OBSERVED, SETTINGS

    shown = min(len(found.names), DRAWN)
    past = slice(-max(2 * len(found.mean), LEAST_PAST), None)
    with rc_context(SETTINGS):
        figure = Figure(figsize=(9.6, 1.4 + 1.7 * shown), layout="constrained")
        panels = figure.subplots(shown, sharex=True, squeeze=False)[:, 0]
        for j, axes in enumerate(panels):
            draw_forecast(
                axes, found.at[past], found.before[past, j], found.ahead, found.mean[:, j],
                found.low[:, j], found.high[:, j], found.interval,
            )  # fmt: skip
            axes.lines[0].set_color(OBSERVED)
            axes.set_ylabel(shortened(found.names[j]))
            axes.grid(True, alpha=0.15, color=INK, linewidth=0.8)
            axes.margins(x=0.01)
        last = panels[-1]
        row_axis(last, found.at, "time" if found.at.dtype.kind == "M" else "rows ahead")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3)
    return figure
