"""When to write a checkpoint, and what it says besides the model."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from ._errors import UsageError
from ._options import parse_every

# A checkpoint that takes long is written less often, so that it never costs more than 2 %.
LONGEST_SHARE = 0.02


class Checkpoints:
    """Writes the model to a file every now and then; does nothing without a file.

    Parameters
    ----------
    path : Path or None
    every : str
        "30s" or "10000rows".
    extra : dict
        What the header says besides the model.
    """

    def __init__(self, path: Path | None, every: str, extra: dict[str, Any]) -> None:
        self.path = path
        self._seconds, self._rows = parse_every(every)
        self._extra = extra
        self._due = time.monotonic() + (self._seconds or 0.0)
        self._rows_then = 0

    def is_due(self, n_rows: int) -> bool:
        """Whether it is time, n_rows having been learned from, some of them since the last."""
        if self.path is None or n_rows == self._rows_then:
            return False
        if self._rows is not None:
            return n_rows - self._rows_then >= self._rows
        return time.monotonic() >= self._due

    def save(self, model: Any, names: list[str] | None, place: Any = None, **more: Any) -> None:
        """Write the model, and where its fit or its pipe is."""
        from ..learner.snapshot import parts_of
        from ..persistence import write_model

        if self.path is None:
            return
        began = time.monotonic()
        header, tensors = parts_of(model, place)
        header["feature_names"] = names
        write_model(self.path, {**header, **self._extra, **more}, tensors)
        now = time.monotonic()
        self._due = now + max(self._seconds or 0.0, (now - began) / LONGEST_SHARE)
        self._rows_then = model.n_samples_seen_


@contextmanager
def held(path: Path | None, resume: bool) -> Iterator[bool]:
    """Hold the checkpoint for this process; True if there is one to go on from."""
    from ..persistence import locked

    if path is None:
        if resume:
            raise UsageError("--resume needs --checkpoint FILE, the file to go on from")
        with nullcontext():
            yield False
        return
    with locked(path):
        there = os.path.exists(path)
        if there and not resume:
            raise UsageError(
                f"{path}: a checkpoint is there already. Add --resume to go on, or delete it"
            )
        yield there
