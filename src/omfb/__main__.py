"""`python -m omfb` and the `omfb` command."""

import contextlib
import os
import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from .cli import app
        from .cli._errors import INTERRUPTED
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("omfb: the command line needs typer and rich: pip install 'omfb[cli]'")
    try:
        app()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            # Threads that read ahead may be amid anything: taking the interpreter apart around
            # them can abort the process instead.
            for stream in (sys.stdout, sys.stderr):
                with contextlib.suppress(AttributeError, OSError, ValueError):  # closed or None
                    stream.flush()
            os._exit(INTERRUPTED)
        raise


if __name__ == "__main__":
    main()
