"""What a fit has found, as a table below the diagram that notebooks show of an estimator."""

from html import escape
from typing import Any


def found_table(model: Any) -> str:
    """HTML of what a fitted model has found; nothing if it is not fitted, or too young."""
    learner = model.__dict__.get("_learner")
    learned = None if learner is None else learner.snapshot().learned
    if learned is None or learned.state is None:
        return ""
    facts = {**learner.engine.describe(learned.state), "running error": learned.totals.error}
    lines = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th>"
        f"<td style='text-align:left'>{escape(_shown(value))}</td></tr>"
        for name, value in facts.items()
        if value is not None
    )
    return (
        f"<details open><summary>what the fit has found</summary><table>{lines}</table></details>"
    )


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value[:6])) + (", …" if len(value) > 6 else "")
    return str(value)
