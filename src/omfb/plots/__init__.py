"""Plots of fitted models and filled data. They need matplotlib: ``pip install 'omfb[plot]'``.

Every function draws into the matplotlib Axes `ax`, or into a new figure that is not registered with
pyplot, and returns the Axes. In a notebook ``ax.figure`` shows the figure;
``ax.figure.savefig("name.png")`` writes it to a file.
"""

from .charts import atoms, error_history, filled_series, missing_map, spectrum

__all__ = ["atoms", "error_history", "filled_series", "missing_map", "spectrum"]
