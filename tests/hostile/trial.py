"""One trial: something hostile is tried, and what came of it is judged.

A trial is a function of a random generator and an empty folder, so a seed repeats it. It returns
how each of its inputs ended: ACCEPTED or REFUSED. A promise that was broken is raised as `Broken`;
whatever else is raised is broken, too.
"""

import linecache
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

ACCEPTED, REFUSED = "accepted", "refused cleanly"
TRACEBACK, FOREIGN, NOT_FINITE = "tracebacks", "foreign exceptions", "non-finite results"
CHANGED, HANG, MEMORY = "state changed", "hangs", "memory above the bound"
WRONG = "wrong answers"
BAD = (TRACEBACK, FOREIGN, NOT_FINITE, WRONG, CHANGED, HANG, MEMORY)

Trial = Callable[[np.random.Generator, Path], list[str]]


class Broken(Exception):  # noqa: N818
    """A promise that was not kept.

    Attributes
    ----------
    how : str
        One of BAD.
    """

    def __init__(self, how: str, what: str) -> None:
        super().__init__(what)
        self.how = how


def attempt(call: Callable[[], Any]) -> tuple[str, Any]:
    """Call it: ACCEPTED and what it gives, or REFUSED and the error, if that was raised on purpose.

    An error that compiled code raises amid the work is of a type that would be fine, but nobody has
    written it for the user.
    """
    try:
        with strict():
            return ACCEPTED, call()
    except (ValueError, TypeError) as error:
        if not _on_purpose(error.__traceback__):
            raise
        return REFUSED, error


@contextmanager
def strict() -> Iterator[None]:
    """Warnings of NumPy about numbers are errors; what omfb itself warns of is fine."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        yield


def _on_purpose(trace: TracebackType | None) -> bool:
    """Whether the innermost frame is a `raise` of omfb, or within scikit-learn's checks."""
    name, line = "", 0
    while trace is not None:
        name, line = trace.tb_frame.f_code.co_filename, trace.tb_lineno
        if "/sklearn/" in name:
            return True
        trace = trace.tb_next
    return "/omfb/" in name and linecache.getline(name, line).lstrip().startswith("raise")


def demand(holds: bool, how: str, what: str) -> None:
    """Raise `Broken` unless it holds."""
    if not holds:
        raise Broken(how, what)


def demand_finite(values: Any, what: str, *, unbounded: bool = False) -> None:
    """All numbers in it, arrays and frames in tuples included, must be finite.

    `unbounded` allows infinity, but not NaN: intervals where nothing is known are infinite.
    """
    if isinstance(values, tuple | list):
        for value in values:
            demand_finite(value, what, unbounded=unbounded)
        return
    if hasattr(values, "select_dtypes"):
        values = values.select_dtypes("number").to_numpy(float)
    values = np.asarray(values)
    if values.dtype.kind == "f":
        fine = ~np.isnan(values) if unbounded else np.isfinite(values)
        demand(bool(fine.all()), NOT_FINITE, what)
