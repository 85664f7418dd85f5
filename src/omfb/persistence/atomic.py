"""Files that are there as a whole or not at all."""

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def replaced(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Give a new file beside `path` to write; put it in place of `path` if all went well.

    The new file is flushed to the disk before it gets its name, and its name after. So at any
    moment, whatever happens, `path` is the old file or the new one. On an error the new file is
    removed and the old one is as it was.
    """
    target = Path(os.path.realpath(path))
    new = _name_beside(target)
    try:
        _create(new, target, path)
        if target.exists():
            new.chmod(target.stat().st_mode & 0o7777)
        yield new
        _flush(new)
        os.replace(new, target)
    except BaseException:
        with suppress(OSError):
            new.unlink()
        raise
    with suppress(OSError):  # some file systems have folders that cannot be flushed
        _flush(target.parent)


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise now the OSError that `replaced` would raise for this path after hours of work."""
    target = Path(os.path.realpath(path))
    new = _name_beside(target)
    try:
        _create(new, target, path)
    finally:
        with suppress(OSError):
            new.unlink()


def _name_beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")


def _create(new: Path, target: Path, path: str | os.PathLike[str]) -> None:
    """Make the new empty file; errors are about `path`, the name that the user gave."""
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
    """Remove what killed processes left beside `path`. Hold its lock."""
    target = Path(os.path.realpath(path))
    for file in target.parent.glob(f".{glob_escaped(target.name)}.????????.tmp"):
        with suppress(OSError):
            file.unlink()


def glob_escaped(name: str) -> str:
    """The name as a pattern for itself only."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in name)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
