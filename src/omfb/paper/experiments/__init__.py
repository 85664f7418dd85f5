"""The paper's experiments, one file each; `images` are their data."""

from collections.abc import Callable

from ...report.outcome import Outcome
from . import faces_missing, faces_online

EXPERIMENTS: dict[str, Callable[..., Outcome]] = {
    faces_online.NAME: faces_online.run,
    faces_missing.NAME: faces_missing.run,
}

__all__ = ["EXPERIMENTS"]
