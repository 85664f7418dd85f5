"""Lines of a pipe, as soon as they arrive."""

import io
import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

from ..streams.base import DataError

# A longer line is not a row of numbers but a file of another kind.
LONGEST_LINE = 1 << 28
# How long a signal, a due checkpoint or a row may have to wait for a silent pipe.
IDLE_SECONDS = 0.2
# Bytes of one read, and the number of such parts in the queue.
PART_BYTES, PARTS_AHEAD = 1 << 18, 4


class LineReader:
    """Lines of a pipe or of any binary stream.

    Streams with a file descriptor are read by a thread: a system call that waits for data would
    block signals, and on Windows there is no other way to wait with a timeout.

    Parameters
    ----------
    stream : binary stream, or path of a named pipe
    name : str
        For messages.

    Attributes
    ----------
    idle : callable
        Called from time to time while no data arrive.
    """

    def __init__(self, stream: Any, name: str = "standard input") -> None:
        self.name = name
        self.idle: Callable[[], None] = _nothing
        self._waiting = bytearray()
        self._ended = False
        self._stream = stream
        self._parts: queue.Queue[Any] | None = None
        if isinstance(stream, os.PathLike) or _has_descriptor(stream):
            self._parts = queue.Queue(PARTS_AHEAD)
            threading.Thread(target=self._read_on, name="omfb reads a pipe", daemon=True).start()

    def line(self) -> bytes:
        """The next line with its ending; empty at the end."""
        searched = 0
        while (end := self._waiting.find(b"\n", searched)) < 0 and not self._ended:
            searched = len(self._waiting)
            self._more()
        return self._taken(end + 1 if end >= 0 else len(self._waiting))

    def chunk(self, size: int) -> bytes:
        """Complete lines of about `size` bytes, or what a slow pipe has sent; b"" at the end.

        So a row that has arrived does not wait for a megabyte of further rows.
        """
        patience = time.monotonic() + IDLE_SECONDS
        searched, whole = 0, False
        while not self._ended:
            whole = whole or self._waiting.find(b"\n", searched) >= 0
            searched = len(self._waiting)
            if whole and (searched >= size or time.monotonic() >= patience):
                return self._taken(self._waiting.rindex(b"\n") + 1)
            self._more()
        return self._taken(len(self._waiting))

    def arrived(self) -> list[bytes]:
        """The complete lines that have arrived; they stay in the reader."""
        whole = self._waiting if self._ended else self._waiting[: self._waiting.rfind(b"\n") + 1]
        return [line + b"\n" for line in bytes(whole).split(b"\n") if line]

    def back(self, line: bytes) -> None:
        """Put a line back, so that it is the next one."""
        self._waiting[:0] = line

    def _taken(self, count: int) -> bytes:
        taken = bytes(self._waiting[:count])
        del self._waiting[:count]
        return taken

    def _more(self) -> None:
        """Wait for data for a while; call `idle` if none arrive."""
        if len(self._waiting) > LONGEST_LINE:
            raise DataError(f"{self.name}: a line of more than {LONGEST_LINE} bytes is not a row.")
        if self._parts is None:
            data = self._stream.read(PART_BYTES)
        else:
            try:
                data = self._parts.get(timeout=IDLE_SECONDS)
            except queue.Empty:
                self.idle()
                return
        if isinstance(data, OSError):
            raise data
        self._ended = not data
        self._waiting += data

    def _read_on(self) -> None:
        assert self._parts is not None
        try:
            if isinstance(self._stream, os.PathLike):
                # Opening also waits for a writer.
                self._stream = open(self._stream, "rb", buffering=0)  # noqa: SIM115
            descriptor = self._stream.fileno()
            while data := os.read(descriptor, PART_BYTES):
                self._parts.put(data)
            self._parts.put(b"")
        except OSError as error:
            self._parts.put(error)


def _has_descriptor(stream: Any) -> bool:
    try:
        stream.fileno()
    except (AttributeError, io.UnsupportedOperation):
        return False
    return True


def _nothing() -> None:
    return
