"""Plots of models and of what they fill. They need matplotlib: ``pip install 'omfb[plot]'``.

Each takes a fitted model and the rows, knows their names and dates, and returns the matplotlib
Axes. A new figure is one of pyplot where a notebook or a program uses pyplot, and is shown as such;
elsewhere it is on its own, so that nothing has to be closed. ``ax.figure.savefig("name.png")``
writes it to a file.
"""

from .history import error_history
from .maps import missing, residuals
from .series import filled, forecast
from .structure import components, spectrum

__all__ = [
    "components",
    "error_history",
    "filled",
    "forecast",
    "missing",
    "residuals",
    "spectrum",
]
