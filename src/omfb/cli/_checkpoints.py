"""Checkpoints in the words of the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import UsageError

if TYPE_CHECKING:
    from ..learner.checkpoints import Checkpoints

ADVICE = {
    "exists": "Add --resume to continue, or delete it",
    "finished": "Use it as a model",
    "parameters": "Give the same options as before, or another --checkpoint",
    "data": "Give the same data, or another --checkpoint",
}


# How often a checkpoint is written.
EVERY = "30s"


@contextmanager
def checkpoint_errors() -> Iterator[None]:
    """Turn what is wrong with a checkpoint into an error of usage that names the options."""
    from ..learner.checkpoints import CheckpointError

    try:
        yield
    except CheckpointError as error:
        raise UsageError(f"{error.problem}. {ADVICE[error.kind]}") from None


def checked_every(checkpoint: Path | None, resume: bool, every: str | None) -> str:
    """How often to write the checkpoint; options that do nothing together are refused."""
    from ..learner.checkpoints import interval

    if resume and checkpoint is None:
        raise UsageError("--resume needs --checkpoint FILE, the file to continue from")
    if every is None:
        return EVERY
    if checkpoint is None:
        raise UsageError("--every says how often to write --checkpoint FILE: add that")
    try:
        interval(every)
    except ValueError:
        raise UsageError(
            f"--every must be like 30s, 5m, 1h or 10000rows, not {every[:80]!r}"
        ) from None
    return every


@contextmanager
def held(
    checkpoint: Path | None, resume: bool, every: str | None, header: dict[str, Any]
) -> Iterator["Checkpoints"]:
    """Hold the checkpoint of a filter for this process."""
    from ..learner.checkpoints import Checkpoints

    every = checked_every(checkpoint, resume, every)
    with checkpoint_errors(), Checkpoints(checkpoint, every, header, resume=resume) as saver:
        yield saver
