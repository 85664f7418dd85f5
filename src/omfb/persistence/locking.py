"""Locks: only one process at a time works on a file."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .atomic import remove_leftovers

# A process that ends at this moment leaves a lock on a file that is gone: retry for a while.
SECONDS = 0.2


class LockedError(ValueError):
    """Another process is working on the file."""


@contextmanager
def locked(path: str | os.PathLike[str]) -> Iterator[None]:
    """Hold the lock of a file; the system releases it when the process ends in any way.

    The lock is on a hidden file beside it, because each save replaces the file itself. A symbolic
    link in place of the hidden file is not followed.
    """
    from filelock import FileLock, Timeout

    target = Path(os.path.realpath(path))
    side = target.with_name(f".{target.name}.omfb-lock")
    if not target.parent.is_dir():  # some versions of filelock would make it
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    lock = FileLock(side, timeout=SECONDS)
    try:
        lock.acquire(poll_interval=SECONDS / 4)
    except Timeout:
        raise LockedError(
            f"{path}: {_holder(side)} is working on this file. Wait for it, or give another file."
        ) from None
    try:
        _sign(side)
        remove_leftovers(path)
        yield
    finally:
        # Removed while held: a process that opened it meanwhile notices that the file is gone.
        with suppress(OSError):
            side.unlink()
        lock.release()


def _sign(side: Path) -> None:
    """Write the process id into the lock file, for messages."""
    with suppress(OSError):  # on Windows, a locked file cannot be written to
        descriptor = os.open(side, os.O_WRONLY | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0))
        with os.fdopen(descriptor, "w") as stream:
            stream.write(str(os.getpid()))


def _holder(side: Path) -> str:
    try:
        holder = side.read_text(errors="replace")[:20].strip()
    except OSError:
        holder = ""
    return f"process {holder}" if holder.isdigit() else "another process"
