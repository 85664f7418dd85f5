"""Text files compressed with gzip or zstd."""

import gzip
import io
import lzma
import os
import zlib
from pathlib import Path
from typing import Any

from ..streams.base import DataError

# Numbers as text shrink to a fifth, rarely to a fiftieth. A file beyond this ratio is malicious, or
# so repetitive that unpacking it first is no loss.
LARGEST_RATIO = 200
# Output up to this size is always allowed.
ALWAYS_ALLOWED = 1 << 28
# What readers raise for a damaged file.
FAULTS = (EOFError, OSError, zlib.error, lzma.LZMAError)


def allowed_size(path: str | os.PathLike[str]) -> int:
    """Largest allowed size of the decompressed content."""
    return ALWAYS_ALLOWED + LARGEST_RATIO * Path(path).stat().st_size


def bomb(path: str | os.PathLike[str]) -> DataError:
    """The error for a file that expands to more than allowed."""
    return DataError(
        f"{path}: expands to more than {LARGEST_RATIO} times its size. "
        f"If that is right, unpack it first."
    )


def compression_of(path: str | os.PathLike[str]) -> str | None:
    """The compression that a file name says: gzip, zstd or None."""
    return {".gz": "gzip", ".zst": "zstd"}.get(Path(path).suffix.lower())


def open_compressed(path: Path) -> Any:
    """A binary stream of the content, with a limit on its size."""
    path.open("rb").close()  # its errors are clearer than pyarrow's
    if compression_of(path) == "gzip":
        return _Bounded(gzip.open(path, "rb"), path)
    return _Bounded(io.BufferedReader(_pyarrow(path).input_stream(str(path), "zstd")), path)


def compressed(stream: Any, path: str | os.PathLike[str]) -> Any:
    """A stream that compresses into another, by the extension of the path; close it."""
    if compression_of(path) == "gzip":
        return gzip.GzipFile("", "wb", 6, stream, mtime=0)
    return _pyarrow(path).CompressedOutputStream(_KeptOpen(stream), "zstd")


def _pyarrow(path: Any) -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise DataError(f"{path}: .zst needs pyarrow: pip install 'omfb[files]'") from error
    if not pyarrow.Codec.is_available("zstd"):
        raise DataError(f"{path}: this pyarrow has no zstd. Use .gz.")
    return pyarrow


class _Bounded:
    """A reader that raises an error beyond the allowed size."""

    def __init__(self, stream: Any, path: Path) -> None:
        self._stream, self._path = stream, path
        self._left = allowed_size(path)

    def read(self, size: int) -> bytes:
        try:
            data: bytes = self._stream.read(size)
        except FAULTS as error:
            raise DataError(f"{self._path}: not a complete compressed file ({error}).") from error
        self._left -= len(data)
        if self._left < 0:
            raise bomb(self._path)
        return data

    def close(self) -> None:
        self._stream.close()


class _KeptOpen(io.RawIOBase):
    """Passes bytes on to a stream that it does not close."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._stream.write(data)
        return len(data)
