"""`omfb forecast --report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import UsageError, printable, refuse_other_files
from ._models import Model
from ._options import PIPE
from ._report import check_matplotlib
from ._writing import bytes_to, is_pipe

if TYPE_CHECKING:
    from numpy.typing import NDArray

# How files of each kind begin.
BEGINNINGS = {".html": b"<!doctype html>", ".png": b"\x89PNG", ".svg": b"<?xml"}


def check_report(report: str | None, output: str) -> None:
    """Refuse a report that cannot be written, before anything is."""
    if report is None:
        return
    if report == PIPE and is_pipe(output):
        raise UsageError("--report - and the rows cannot both be printed: name a file for one")
    ending = Path(report).suffix.lower()
    if report != PIPE:
        refuse_other_files(report, "report", BEGINNINGS.get(ending, b"column"))
    if ending in BEGINNINGS:
        check_matplotlib()


def write_report(
    report: str, model: Model, path: Path, sides: "list[NDArray[Any]]",
    times: "NDArray[Any] | None", level: float,
) -> None:  # fmt: skip
    """Write the last rows and the forecast: mean, low and high.

    Parameters
    ----------
    report : str
        The file; its ending says what it is.
    model : Model
    path : Path
        Where the model is from.
    sides : list of ndarray of shape (steps, n_features)
    times : ndarray of shape (steps,) or None
        When rows will come.
    level : float
    """
    import numpy as np

    from ..learner.predictor import known_features
    from ..report import forecast as reports

    learner = model.learner
    before, given = learner.last_rows, learner.last_times
    assert before is not None
    n, steps = len(before), len(sides[0])
    at, ahead = np.arange(1 - n, 1), np.arange(1, steps + 1)
    if times is not None and given is not None:
        at, ahead = ((1e6 * each).round().astype("datetime64[us]") for each in (given, times))
    names = learner.feature_names or [f"x{i}" for i in range(learner.n_features)]
    shown = [j for j in range(len(names)) if j not in known_features(learner.config)]
    mean, low, high = (np.asarray(side, np.float64)[:, shown] for side in sides)
    found = reports.Continued(
        [printable(names[j]) for j in shown], np.asarray(before, np.float64)[:, shown], at, ahead,
        mean, low, high, level, printable(path.name),
    )  # fmt: skip
    ending = Path(report).suffix.lower().removeprefix(".")
    if ending in reports.PICTURES:
        content = reports.picture(found, ending)
    elif ending == "html":
        content = reports.html(found).encode()
    else:
        content = reports.text(found).encode()
    with bytes_to(report, path) as stream:
        stream.write(content)
