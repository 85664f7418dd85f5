"""Warnings that show the line of the user's program, whatever lies between."""

import sys
import warnings

# Packages whose frames are passed over.
BETWEEN = frozenset({"omfb", "sklearn", "contextlib"})


def warn(message: str) -> None:
    """Warn at the innermost line that is neither omfb's nor scikit-learn's."""
    level, frame = 1, sys._getframe()  # noqa: SLF001
    while frame.f_back is not None and _package(frame.f_globals) in BETWEEN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UserWarning, stacklevel=level)


def _package(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
