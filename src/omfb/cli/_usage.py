"""Commands whose errors are one line, and whose help says no more than is needed."""

import os
import sys
from typing import Any

from typer.core import TyperCommand, TyperGroup

from ._errors import DATA, INTERRUPTED, USAGE, drop_stdout, say, system_error


class Command(TyperCommand):
    """A command whose flags do not show a type in the help."""

    def get_params(self, ctx: Any) -> Any:
        """See `TyperCommand.get_params`."""
        return _without_type(super().get_params(ctx))


class OneLineErrors(TyperGroup):
    """Commands whose usage errors are one line, not a frame of six."""

    def get_params(self, ctx: Any) -> Any:
        """See `TyperGroup.get_params`."""
        return _without_type(super().get_params(ctx))

    def main(self, args: Any = None, *arguments: Any, **options: Any) -> Any:
        """See `TyperGroup.main`; without arguments it is the help that is asked for."""
        keep_closed_streams_closed()
        args = sys.argv[1:] if args is None else list(args)
        options["standalone_mode"] = False
        try:
            code = super().main(args or ["--help"], *arguments, **options)
            if sys.stdout is not None:
                sys.stdout.flush()
            sys.exit(code)
        except BrokenPipeError:
            drop_stdout()
        except OSError as error:
            drop_stdout()
            say(f"omfb: standard output: {system_error(error)}")
            sys.exit(DATA)
        except Exception as error:
            # The classes of these errors have no public name that all versions of Typer share.
            if type(error).__name__ == "Abort":
                say("omfb: interrupted")
                sys.exit(INTERRUPTED)
            if not hasattr(error, "format_message"):
                raise
            context = getattr(error, "ctx", None)
            command = context.command_path if context is not None else "omfb"
            say(f"omfb: {_sentence(error.format_message())} Try: {command} --help")
            sys.exit(USAGE)


def keep_closed_streams_closed() -> None:
    """Let no file that is opened later get the number of a closed standard stream.

    Else what is meant for stderr would end up in it.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            # The lowest free number is given: this very one, as those below are taken.
            os.open(os.devnull, os.O_RDWR)


def _sentence(message: str) -> str:
    text = " ".join(message.split())
    return text if text.endswith(("?", "!")) else text.rstrip(".") + "."


def _without_type(parameters: Any) -> Any:
    for parameter in parameters:
        if getattr(parameter, "is_flag", False):
            parameter.metavar = ""
    return parameters
