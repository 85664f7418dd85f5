"""The interface of a stream: blocks of rows, each with a position to resume from."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import UnusableError
from ..core.engine import Numbers
from ..core.finite import find_infinity as find_infinity
from ..core.finite import infinity_problem
from ..core.weighted import stacked
from .digest import content_digest
from .row_times import RowTimes, row_times_of

# Bytes of a block: many kernel blocks, and a small part of memory.
BLOCK_BYTES = 1 << 22
# A block has at least this many wide rows, but at most this many times BLOCK_BYTES.
WIDE_ROWS = 128
WIDE_BLOCKS = 24

Position = Any
"""A place in a pass, as a JSON value; None is the beginning."""


class Block(NamedTuple):
    """Some rows of a pass.

    Attributes
    ----------
    rows : ndarray, sparse matrix, or what a source's `learn` understands
    after : Position
        The position to go on from.
    numbers : ndarray of shape (n_rows,) or None
        A number for each row, the same in every pass; None if all passes are in one order.
    """

    rows: Any
    after: Position
    numbers: Numbers = None


Blocks = Generator[Block, None, None]
"""Blocks of a pass; close it to stop early."""


class HintedError(ValueError):
    """Data that cannot be used, with a hint at the parameter that helps.

    Parameters
    ----------
    message : str
    parameter : str or None
        A name, or a name and its value (``"shuffle=False"``), for a hint at the end of the
        message. The command line shows its own option instead.
    """

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter

    def __str__(self) -> str:
        return self.shown(lambda parameter: parameter if "=" in parameter else f"{parameter}=")

    def shown(self, hint: Callable[[str], str]) -> str:
        """The message with the hint in the caller's notation: ``columns=`` or ``--columns``."""
        return with_hint(str(self.args[0]), self.parameter, hint)


class DataError(HintedError):
    """Data that cannot be used; the message names the file, row and column."""


class SourceLostError(OSError):
    """A source that failed before its end; the model learned so far is worth keeping."""


class Note(NamedTuple):
    """How ambiguous data were read, and the parameter that changes it."""

    message: str
    parameter: str | None = None

    def shown(self, hint: Callable[[str], str]) -> str:
        """See `HintedError.shown`."""
        return with_hint(self.message, self.parameter, hint)


def with_hint(message: str, parameter: str | None, hint: Callable[[str], str]) -> str:
    """A message with a hint at the parameter that helps, if there is one."""
    if parameter is None:
        return message
    return f"{message.removesuffix('.')} ({hint(parameter)})."


class Source(ABC):
    """Rows to learn from, in blocks of bounded size.

    Attributes
    ----------
    name : str
        For messages: the file name, or a description.
    n_features : int
    feature_names : list of str or None
    column_names : sequence
        Names of all known columns of a table, features or not.
    dtype : numpy.dtype
        float32 or float64.
    n_rows : int or None
        None if unknown before the end.
    share : float
        Share of the entries that are observed, if known without reading all of them; otherwise 1.
    is_sparse : bool
        Whether blocks are sparse matrices.
    rereadable : bool
        Whether there can be a second pass.
    worth_prefetching : bool
        Whether the next block is worth reading while this one is learned from.
    path : Path or None
        The file that the rows are read from.
    notes : sequence of Note
        How ambiguous data were read.
    times : ndarray of shape (n_rows,) or None
        When rows came, in seconds since 1970; None if they have no times.
    time_index : TimeIndex or None
        What is known of the index that held the times.
    time_column : str or None
        The column that holds the times, and is no feature.
    zoned : bool
        Whether these times have a time zone.
    on_idle : callable or None
        Called from time to time while no rows arrive; it may raise to end the wait.
    """

    name: str
    n_features: int
    feature_names: list[str] | None = None
    column_names: Sequence[Any] = ()
    dtype: np.dtype[Any] = np.dtype(np.float64)
    n_rows: int | None = None
    share: float = 1.0
    is_sparse: bool = False
    rereadable: bool = True
    worth_prefetching: bool = False
    path: Path | None = None
    notes: Sequence[Note] = ()
    times: NDArray[np.float64] | None = None
    time_index: Any = None
    time_column: str | None = None
    zoned: bool = False
    on_idle: Callable[[], None] | None = None

    @abstractmethod
    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Blocks:
        """Yield the blocks of one pass.

        All blocks but the last of a pass have `length` rows. All random numbers are drawn from
        `rng` before the first block, so a pass that starts again with the generator in the same
        state and a position continues as if it had not been interrupted.
        """

    def row_times(self) -> RowTimes | None:
        """When all rows came, in their order; None if they have no times."""
        return None if self.times is None else row_times_of([self.times])

    @abstractmethod
    def fraction(self, position: Position) -> float | None:
        """Approximate share of a pass that is done at a position; None if unknown."""

    def fingerprint(self) -> dict[str, Any]:
        """Values that must be equal for a position to mean the same rows.

        The content enters as a digest: of everything if it is small, of parts spread over it if
        it is large.
        """
        shape: dict[str, Any] = {
            "n_features": self.n_features,
            "n_rows": self.n_rows,
            "dtype": str(self.dtype),
        }
        if not self.rereadable:
            return shape
        if self.path is not None:
            shape["bytes"] = self.path.stat().st_size
        return {**shape, "content": content_digest(self)}

    def starts(self, count: int) -> list[Position]:
        """Up to `count` positions spread over a pass in order, the beginning among them."""
        n_rows = self.n_rows or 0
        return [n_rows * part // count for part in range(min(count, n_rows))] or [None]

    def check_position(self, position: Position) -> None:
        """Raise a ValueError for a value that is not a position in this stream."""
        fits = position is None or (type(position) is int and position >= 0)
        if not fits or (self.n_rows is not None and (position or 0) > self.n_rows):
            raise ValueError("its position is outside the data")

    def row_number(self, block_length: int, position: Position, at: int) -> int | None:
        """Number (from 0) of the source's row that was row `at` of the block before a position.

        None if unknown; such sources check their rows before they yield them.
        """
        return None

    def idle(self) -> None:
        """Call `on_idle`, if set."""
        if self.on_idle is not None:
            self.on_idle()

    def check_finite_rows(self, rows: Any, first_row: int | None) -> None:
        """Raise a DataError for infinity; `first_row` is the number (from 0) of the first row."""
        where = find_infinity(rows)
        if where is not None:
            number = None if first_row is None else first_row + where[0]
            raise self.infinity_error(number, where[1])

    def infinity_error(self, row: int | None, column: int) -> DataError:
        """See `infinity_error`."""
        return infinity_error(self.name, self.feature_names, row, column)

    def some_rows(self, n_rows: int) -> tuple[Any, Numbers]:
        """All rows in order if there are at most `n_rows`, or a sample; and their numbers.

        Only sources whose rows a fit does not see itself are asked for a sample.
        """
        return self.last_rows(n_rows), None

    def last_rows(self, n_rows: int) -> Any:
        """The last rows of the source, in order."""
        length = rows_per_block(self.n_features, self.dtype, 1)
        taken: list[Any] = []
        for block in self.blocks(length, False, np.random.RandomState(0)):
            taken.append(block.rows)
            while sum(part.shape[0] for part in taken[1:]) >= n_rows:
                del taken[0]
        return _together(taken)[-n_rows:]

    def close(self) -> None:
        """Close files."""
        return


def _together(blocks: list[Any]) -> Any:
    return blocks[0] if len(blocks) == 1 else stacked(blocks, _stacked)


def _stacked(blocks: list[Any]) -> Any:
    sparse = scipy.sparse.issparse(blocks[0])
    return scipy.sparse.vstack(blocks, format="csr") if sparse else np.concatenate(blocks)


def observed_features(X: Any) -> NDArray[np.bool_]:
    """Mask of the features that at least one row of X observes."""
    if scipy.sparse.issparse(X):
        seen = np.zeros(X.shape[1], dtype=bool)
        seen[X.indices[~np.isnan(X.data)]] = True
        return seen
    if not np.isnan(X[0]).any():
        return np.ones(X.shape[1], dtype=bool)
    seen_anywhere: NDArray[np.bool_] = ~np.isnan(X).all(axis=0)
    return seen_anywhere


def uniform_error(name: str, instead: str) -> ValueError:
    """The error for sources from which single rows cannot be drawn."""
    return ValueError(
        f"shuffle='uniform' draws single rows, which {name} cannot give. Use {instead}."
    )


def infinity_error(name: str, names: list[str] | None, row: int | None, column: int) -> DataError:
    """The error about infinity at a row (from 0, None if unknown) and a column (from 0)."""
    return DataError(f"{name} {infinity_problem(row, column, names)}")


@contextmanager
def errors_about(source: Source, rows: Any = None, position: Position = None) -> Iterator[None]:
    """Make errors about X name the source and, for infinity, the row.

    Parameters
    ----------
    source : Source
    rows : block or None
        The rows that the model gets, to search for infinity.
    position : Position
        The position that came with them.
    """
    try:
        yield
    except DataError:
        raise
    except ValueError as error:
        where = None if rows is None else find_infinity(rows)
        if where is not None:
            number = source.row_number(rows.shape[0], position, where[0])
            raise source.infinity_error(number, where[1]) from error
        if isinstance(error, UnusableError):
            raise DataError(f"{source.name} {error.problem}") from error
        raise DataError(f"{source.name}: {error}") from error


@contextmanager
def whole_file(path: Any, kind: str, *faults: type[Exception]) -> Iterator[None]:
    """Turn a reader's errors about a damaged file into a DataError that names the file."""
    try:
        yield
    except DataError:
        raise
    except faults as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: not a complete {kind} file ({reason}).") from error


def rows_per_block(n_features: int, dtype: np.dtype[Any], multiple: int) -> int:
    """Number of rows of a block: a multiple of `multiple`.

    Blocks of wide rows are larger in bytes: each block costs some passes over the dictionary,
    which many rows must share.
    """
    row_bytes = max(n_features, 1) * dtype.itemsize
    rows = max(BLOCK_BYTES // row_bytes, min(WIDE_ROWS, WIDE_BLOCKS * BLOCK_BYTES // row_bytes))
    return multiple * max(1, rows // multiple)


def rows_of(columns: Sequence[NDArray[Any]], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Columns of equal length as rows."""
    stacked = np.empty((len(columns), len(columns[0])), dtype)
    for column, values in zip(stacked, columns, strict=True):
        column[:] = values
    rows = np.empty(stacked.shape[::-1], dtype)
    # Few rows at a time, so that the output stays in the cache: ten times as fast.
    for start in range(0, len(rows), 64):
        rows[start : start + 64] = stacked[:, start : start + 64].T
    return rows
