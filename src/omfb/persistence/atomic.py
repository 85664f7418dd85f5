"""Atomic replacement: a file is written completely or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

# No room for what is written: the disk is full, or a limit is reached.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextmanager
def replaced(
    path: str | os.PathLike[str], like: str | os.PathLike[str] | None = None
) -> Iterator[Path]:
    """Yield a new file beside `path` to write to, and move it to `path` if no error is raised.

    The new file is flushed to disk before it is renamed, and the folder afterwards. So `path` is
    the old file or the new one at any moment. On an error the new file is removed and the old one
    is unchanged.

    Parameters
    ----------
    path : path
        The file to replace; its permissions, and its owner where allowed, are kept.
    like : path or None, default=None
        A file whose permissions the new one gets if `path` does not exist: what is computed from
        a private file stays private.
    """
    target = Path(os.path.realpath(path))
    new = _name_beside(target)
    try:
        _create(new, target, path)
        if target.exists():
            _imitate(new, target.stat())
        elif like is not None and os.path.isfile(like):
            new.chmod(os.stat(like).st_mode & 0o666)
        yield new
        _flush(new)
        os.replace(new, target)
    except BaseException as error:
        with suppress(OSError):
            new.unlink()
        # What a write raises has no name: the reader of an input raises other numbers.
        if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
            error.filename = os.fspath(path)
        raise
    with suppress(OSError):  # some file systems have folders that cannot be flushed
        _flush(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise the OSError that `replaced` would raise for this path, before hours of work."""
    target = Path(os.path.realpath(path))
    new = _name_beside(target)
    try:
        _create(new, target, path)
    finally:
        with suppress(OSError):
            new.unlink()


def _imitate(new: Path, old: os.stat_result) -> None:
    """Give a new file the owner, where allowed, and the permissions of the old one."""
    if hasattr(os, "chown"):
        with suppress(OSError):  # only root may give files away
            os.chown(new, old.st_uid, old.st_gid)
    new.chmod(old.st_mode & 0o7777)


def _name_beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")


def _create(new: Path, target: Path, path: str | os.PathLike[str]) -> None:
    """Create the new file, empty; errors name `path`, as the user wrote it."""
    try:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if target.exists() and not target.is_file():  # root may replace even /dev/null
            raise FileExistsError(errno.EEXIST, "Is a pipe or device; name a file")
        with new.open("xb"):
            pass
    except OSError as error:
        error.filename = os.fspath(path)
        raise


def remove_leftovers(path: str | os.PathLike[str]) -> None:
    """Remove temporary files that killed processes left beside `path`. Hold its lock."""
    target = Path(os.path.realpath(path))
    for file in target.parent.glob(f".{glob_escaped(target.name)}.????????.tmp"):
        with suppress(OSError):
            file.unlink()


def glob_escaped(name: str) -> str:
    """The name as a glob pattern that matches only itself."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
