"""One process at a time on a checkpoint."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .atomic import remove_leftovers

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


class LockedError(ValueError):
    """Another process works on the file."""


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file, which ends with the process however it ends.

    The lock is on a file beside it, as the file itself is replaced at each save. Where the
    system has no such locks, none is taken.
    """
    if fcntl is None:
        yield
        return
    side = Path(f"{os.path.realpath(path)}.lock")
    descriptor = _acquire(side, path)
    try:
        remove_leftovers(path)
        yield
    finally:
        # Removed while held: whoever opened it meanwhile finds below that it is no longer there.
        with suppress(OSError):
            side.unlink()
        os.close(descriptor)


def _acquire(side: Path, path: str | os.PathLike[str]) -> int:
    while True:
        descriptor = os.open(side, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode("ascii", "replace").strip()
            os.close(descriptor)
            who = f"process {holder}" if holder else "another process"
            raise LockedError(
                f"{path}: {who} is working on this checkpoint. Wait for it, or give another FILE."
            ) from None
        try:
            same = os.stat(side).st_ino == os.fstat(descriptor).st_ino
        except FileNotFoundError:
            same = False
        if same:
            os.truncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
            return descriptor
        os.close(descriptor)
