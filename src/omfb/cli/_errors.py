"""Errors as one line and an exit code: 0 all went well, 1 the data, 2 the usage."""

import functools
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, NoReturn

import typer

DATA, USAGE, INTERRUPTED = 1, 2, 130


class UsageError(Exception):
    """The command was not given what it needs."""


class StoppedError(Exception):
    """The user asked to stop, and nothing is half done."""


def say(message: str) -> None:
    """A line on stderr."""
    print(message, file=sys.stderr, flush=True)


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command end with one line for each error it may meet, and never a traceback."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_stdout()
        except UsageError as error:
            _fail(str(error), USAGE)
        except StoppedError as stopped:
            _fail(str(stopped), INTERRUPTED)
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)
        except OSError as error:
            _fail(_system_error(error), DATA)
        except MemoryError as error:
            _fail(f"out of memory ({error})", DATA)
        except ValueError as error:  # of the data, the model file or a checkpoint
            _fail(str(error), DATA)

    return run


def _fail(message: str, code: int) -> NoReturn:
    say("omfb: " + " ".join(message.split()))
    raise typer.Exit(code)


def _system_error(error: OSError) -> str:
    if error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return str(error)


def _drop_stdout() -> None:
    """Nobody reads any more: end as if all had been read, also when Python flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


class StopSignal:
    """Turns Ctrl-C and SIGTERM into a flag that is looked at between blocks."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignal":
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self._before[number] = signal.signal(number, self._note)
            except ValueError:  # not in the main thread: nobody can press Ctrl-C there
                return self
        return self

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.requested:  # asked twice: at once
            raise KeyboardInterrupt
        self.requested = True

    def check(self) -> None:
        """Raise `StoppedError` if asked to stop."""
        if self.requested:
            raise StoppedError("interrupted")
