"""Plots of fitted models and filled data. They need matplotlib: ``pip install 'omfb[plot]'``.

Every function draws into the matplotlib Axes given as `ax`, or into a new figure that pyplot does
not know of, and returns the Axes. In a notebook ``ax.figure`` shows the figure;
``ax.figure.savefig("name.png")`` writes it to a file.
"""

from .. import _moved
from .charts import atoms, error_history, filled_series, missing_map, spectrum

__all__ = ["atoms", "error_history", "filled_series", "missing_map", "spectrum"]


def __getattr__(name: str) -> object:
    _moved.refuse(f"{__name__}.{name}", ImportError)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
