"""The paper's experiments, one file each; `images` are their data, `outcome` what they return."""

from collections.abc import Callable

from . import faces_missing, faces_online
from .outcome import Outcome

EXPERIMENTS: dict[str, Callable[..., Outcome]] = {
    faces_online.NAME: faces_online.run,
    faces_missing.NAME: faces_missing.run,
}

__all__ = ["EXPERIMENTS"]
