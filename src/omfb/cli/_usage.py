"""Errors in how a command is called, in one line as all others."""

import sys
from typing import Any

from typer.core import TyperGroup

from ._errors import USAGE, say


class OneLineErrors(TyperGroup):
    """Commands whose usage errors are one line, not a frame of six."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """See `TyperGroup.main`."""
        try:
            sys.exit(super().main(*arguments, **{**options, "standalone_mode": False}))
        except Exception as error:
            # The class of these errors has no public name that all versions of Typer share.
            if not hasattr(error, "format_message"):
                raise
            context = getattr(error, "ctx", None)
            command = context.command_path if context is not None else "omfb"
            message = " ".join(error.format_message().split()).rstrip(".")
            say(f"omfb: {message}. Try: {command} --help")
            sys.exit(USAGE)
