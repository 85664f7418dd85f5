"""`python -m omfb` and the `omfb` command."""

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from .cli import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.exit("omfb: the command line needs typer and rich: pip install 'omfb[cli]'")
    app()


if __name__ == "__main__":
    main()
