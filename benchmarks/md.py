"""Numbers and tables in Markdown."""

from collections.abc import Iterator, Sequence
from typing import Any


def number(value: float | None, digits: int = 3) -> str:
    """A number with so many digits."""
    if value is None:
        return "never"
    if 0 < value < 1e-3:
        return "< 0.001"
    return f"{value:.{digits}g}" if value < 10**digits else f"{value:.0f}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table; the first column is words, the others are numbers."""
    yield "| " + " | ".join(head) + " |"
    yield "|---" + "|---:" * (len(head) - 1) + "|"
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def settings_of(chosen: dict[str, Any]) -> str:
    """Settings in words."""
    shown = (f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}" for k, v in chosen.items())
    return ", ".join(shown) or "defaults"
