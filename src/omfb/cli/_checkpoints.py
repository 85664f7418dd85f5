"""Checkpoints in the words of the command line."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import UsageError

if TYPE_CHECKING:
    from ..learner.checkpoints import Checkpoints

ADVICE = {
    "exists": "Add --resume to go on, or delete it",
    "finished": "Use it as a model",
    "parameters": "Give the same options as before, or another --checkpoint",
    "data": "Give the same data, or another --checkpoint",
}


@contextmanager
def usage_errors() -> Iterator[None]:
    """Let what is wrong with a checkpoint be an error of usage, with the options to change."""
    from ..learner.checkpoints import CheckpointError

    try:
        yield
    except CheckpointError as error:
        raise UsageError(f"{error.problem}. {ADVICE[error.kind]}") from None


def check_options(checkpoint: Path | None, resume: bool, every: str) -> None:
    """Refuse options that do not go together."""
    from ..learner.checkpoints import interval

    if resume and checkpoint is None:
        raise UsageError("--resume needs --checkpoint FILE, the file to go on from")
    try:
        interval(every)
    except ValueError:
        raise UsageError(
            f"--every must be like 30s, 5m, 1h or 10000rows, not {every[:80]!r}"
        ) from None


@contextmanager
def held(
    checkpoint: Path | None, resume: bool, every: str, header: dict[str, Any]
) -> Iterator["Checkpoints"]:
    """Hold the checkpoint of a filter for this process."""
    from ..learner.checkpoints import Checkpoints

    check_options(checkpoint, resume, every)
    with usage_errors(), Checkpoints(checkpoint, every, header, resume=resume) as saver:
        yield saver
