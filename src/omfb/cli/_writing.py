"""Where commands write to: files, which are replaced as a whole or not at all, and pipes."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ._errors import UsageError
from ._options import PIPE, standard_output


@contextmanager
def bytes_to(output: str, like: Any = None) -> Iterator[Any]:
    """A binary stream to the output, compressed if its name says so.

    A new file gets the permissions of the file `like`, which it is made from.
    """
    from ..formats.compression import compressed, compression_of

    with _plain_bytes_to(output, like) as stream:
        if output == PIPE or compression_of(output) is None:
            yield stream
        else:
            with closing(compressed(stream, output)) as packed:
                yield packed


@contextmanager
def _plain_bytes_to(output: str, like: Any) -> Iterator[Any]:
    from ..persistence import replaced

    if output == PIPE:
        stream = standard_output()
        yield stream
        stream.flush()
    elif Path(output).exists() and not Path(output).is_file():  # a named pipe or device
        with open(output, "wb") as stream:
            yield stream
    else:
        with replaced(output, like) as new, new.open("wb") as stream:
            yield stream


def is_pipe(output: str) -> bool:
    """Whether the output is standard output, or a pipe or device whose name has no ending."""
    path = Path(output)
    special = path.exists() and not path.is_file() and not path.is_dir()
    return output == PIPE or (special and not path.suffix)


def output_format(output: str, piped: str = "csv") -> Any:
    """The format to write, told by the extension; to a pipe, the one that is given."""
    from ..formats.registry import endings, format_named, format_of
    from ..streams import DataError

    if is_pipe(output):
        return format_named(piped)
    try:
        return format_of(output)
    except DataError:
        raise UsageError(f"{output}: use one of these extensions: {' '.join(endings())}") from None


@contextmanager
def table_to(
    output: str, names: list[str], dtype: Any, like: Any = None, time: Any = None
) -> Iterator[Any]:
    """A writer of rows of numbers, after a `TimeColumn` if given; see `bytes_to`."""
    format = output_format(output)
    more = () if time is None else (time,)
    # Closed after an error, too: pyarrow complains aloud of a writer that is left open.
    with (
        bytes_to(output, like) as stream,
        closing(format.writer(stream, names, dtype, *more)) as writer,
    ):
        yield writer
