"""Errors as one line and an exit code: 0 all went well, 1 the data, 2 the usage."""

import functools
import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import typer

DATA, USAGE, INTERRUPTED = 1, 2, 130
# SIGHUP is what a closing terminal sends; Windows has none.
SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]
# The name with which a message about a parameter begins.
PARAMETER = re.compile(r"^[a-z][a-z0-9_]*(?= (must|has|contains) )")
STANDARD = {0: "standard input", 1: "standard output"}


class UsageError(Exception):
    """The command was not given what it needs."""


class StoppedError(Exception):
    """The user asked to stop, and nothing is half done."""


def say(message: str) -> None:
    """Print a line on stderr, if that is open."""
    if sys.stderr is not None:
        print(printable(message), file=sys.stderr, flush=True)


def printable(text: str) -> str:
    """The text with control characters escaped: a terminal would obey them."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def option(parameter: str) -> str:
    """What the command line calls a parameter of the library."""
    name, _, value = parameter.partition("=")
    if name == "header":
        return "--header/--no-header"
    return f"--no-{name}" if value == "False" else f"--{name}"


def guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Let a command end with one line for each error it may meet, and never a traceback."""

    @functools.wraps(command)
    def run(*arguments: Any, **options: Any) -> None:
        try:
            command(*arguments, **options)
            if sys.stdout is not None:
                sys.stdout.flush()
        except BrokenPipeError:
            drop_stdout()
        except UsageError as error:
            _fail(str(error), USAGE)
        except StoppedError as stopped:
            _fail(str(stopped), INTERRUPTED)
        except KeyboardInterrupt:
            _fail("interrupted", INTERRUPTED)
        except OSError as error:
            _fail(system_error(error), DATA)
        except MemoryError as error:
            _fail(f"out of memory ({error})", DATA)
        except ValueError as error:  # of the data, the model file or a checkpoint
            _fail(*_message_and_code(error))

    return run


def _message_and_code(error: ValueError) -> tuple[str, int]:
    """The message in the words of the command line, and the exit code."""
    from ..formats import FormatError

    return in_options(error), USAGE if isinstance(error, FormatError) else DATA


def in_options(error: Exception) -> str:
    """What an error says, in the words of the command line."""
    from ..streams.base import HintedError

    return error.shown(option) if isinstance(error, HintedError) else str(error)


@contextmanager
def usage_errors() -> Iterator[None]:
    """Turn errors about parameters, with which their messages begin, into errors of usage."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise UsageError(
            PARAMETER.sub(lambda name: option_of(name[0]), in_options(error))
        ) from None


def option_of(parameter: str) -> str:
    """The option that sets a parameter of the library."""
    special = {
        "random_state": "--seed", "positive_code": "--positive", "positive_dict": "--positive",
        "n": "-n",
    }  # fmt: skip
    return special.get(parameter, f"--{parameter.replace('_', '-')}")


def _fail(message: str, code: int) -> NoReturn:
    say("omfb: " + " ".join(message.split()))
    raise typer.Exit(code)


def system_error(error: OSError) -> str:
    """What the system says, with the name of the file."""
    if error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror[0].lower()}{error.strerror[1:]}"
    return error.strerror or str(error)


def drop_stdout() -> None:
    """The reader has gone: end as if all had been read, also when Python flushes at exit."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (OSError, ValueError, AttributeError):
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115


def refuse_overwriting(inputs: list[Any], outputs: list[Any]) -> None:
    """Refuse to write to a file that is read, or to one file twice; pipes and None do not count.

    Names may differ: links lead to the same file, and so does what the shell does to ``-``.
    """
    read = [0 if str(path) == "-" else path for path in inputs if path is not None]
    written = [1 if str(path) == "-" else path for path in outputs if path is not None]
    for at, output in enumerate(written):
        for other in [*read, *written[:at]]:
            both_files = os.path.isfile(output) and os.path.isfile(other)
            if both_files and os.path.samefile(output, other):
                one, two = (STANDARD.get(path, path) for path in (output, other))
                raise UsageError(f"{one}: would be overwritten, but it is {two}, in use here")
    named = [os.path.realpath(path) for path in outputs if path is not None and str(path) != "-"]
    for name in named:
        if named.count(name) > 1 and not _is_device(name):
            raise UsageError(f"{name}: cannot be written for two purposes at once")


def refuse_other_files(path: Any, kind: str, beginning: bytes) -> None:
    """Refuse to write to a folder, or to a file that does not begin as its kind does."""
    if os.path.isdir(path):
        raise UsageError(f"{path}: is a directory; name a file for the {kind}")
    if os.path.isfile(path) and os.path.getsize(path) > 0:
        with open(path, "rb") as stream:
            if stream.read(len(beginning)) != beginning:
                raise UsageError(f"{path}: is no {kind}, so it is left alone; name another file")


def refuse_replacing(path: Path, force: bool) -> None:
    """Refuse to write a model in place of a file that is not one, unless forced."""
    from ..persistence.modelfile import is_model_file

    if not force and path.is_file() and path.stat().st_size > 0 and not is_model_file(path):
        raise UsageError(f"{path}: exists and is not a model; name another file, or add --force")


def _is_device(path: str) -> bool:
    return os.path.exists(path) and not os.path.isfile(path)


class StopSignal:
    """Turns Ctrl-C, SIGTERM and SIGHUP into a flag that is looked at between blocks."""

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> "StopSignal":
        for number in SIGNALS:
            ignored = signal.getsignal(number) is signal.SIG_IGN
            if ignored and number not in (signal.SIGINT, signal.SIGTERM):  # by nohup
                continue
            try:
                self._before[number] = signal.signal(number, self._note)
            except ValueError:  # only the main thread receives signals
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
