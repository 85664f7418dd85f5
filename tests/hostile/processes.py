"""The real command in forked processes: they cost milliseconds, as all is imported already."""

import os
import signal
import sys
from pathlib import Path
from typing import NamedTuple, NoReturn

from ..commands import SMALL_BLOCKS
from .trial import TRACEBACK, demand

CREATE = os.O_WRONLY | os.O_CREAT | os.O_TRUNC


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: bytes
    err: str


class Command:
    """A command that runs in a folder; what it says goes to files beside the folder."""

    def __init__(
        self, words: list[object], folder: Path, stdin: int | None = None, small: bool = True
    ) -> None:
        self._says = [folder.parent / f"{folder.name}.{name}" for name in ("out", "err")]
        self.pid = os.fork()
        if self.pid == 0:
            _become([str(word) for word in words], folder, stdin, self._says, small)

    def kill(self) -> None:
        """As the system does when memory is short: nothing can be done about it."""
        os.kill(self.pid, signal.SIGKILL)

    def wait(self) -> Ended:
        """Wait for its end."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        # One that was killed at once has said nothing.
        out, err = (path.read_bytes() if path.exists() else b"" for path in self._says)
        for path in self._says:
            path.unlink(missing_ok=True)
        return Ended(code, out, err.decode(errors="replace"))


def run(words: list[object], folder: Path, stdin: int | None = None) -> Ended:
    """Run a command to its end."""
    return Command(words, folder, stdin).wait()


def demand_tidy(ended: Ended) -> None:
    """Zero, or one line of error; and nothing that could steer a terminal."""
    said = ended.err.splitlines()
    shown = ended.err[:300]
    demand(ended.code in (0, 1, 2), TRACEBACK, f"code {ended.code}: {shown}")
    demand("Traceback" not in ended.err and "Warning:" not in ended.err, TRACEBACK, shown)
    demand(ended.err.replace("\n", "").isprintable(), TRACEBACK, f"unprintable: {ended.err!r:.300}")
    if ended.code:
        errors = [line for line in said if line.startswith("omfb: ")]
        demand(bool(errors) and said[-1] == errors[-1], TRACEBACK, f"no line of error: {shown}")


def _become(
    words: list[str], folder: Path, stdin: int | None, says: list[Path], small: bool
) -> NoReturn:
    code = 1
    try:
        os.chdir(folder)
        os.dup2(os.open(os.devnull, os.O_RDONLY) if stdin is None else stdin, 0)
        for number, path in enumerate(says, 1):
            os.dup2(os.open(path, CREATE, 0o666), number)
        sys.stdin, sys.stdout, sys.stderr = (
            os.fdopen(number, mode, closefd=False) for number, mode in enumerate("rww")
        )
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if small:
            exec(SMALL_BLOCKS, {})
        sys.argv = ["omfb", *words]
        from omfb.__main__ import main

        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 0 if ended.code is None else 1
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def pipe_with(data: bytes) -> int:
    """The end of a pipe from which the data can be read; a pipe holds 64 KB without a reader."""
    assert len(data) < 1 << 16
    reader, writer = os.pipe()
    os.write(writer, data)
    os.close(writer)
    return reader
