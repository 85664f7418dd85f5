"""The protocol of a stream: blocks of rows, each with a position that one can return to."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import UnusableError
from ..core.finite import find_infinity as find_infinity
from ..core.finite import infinity_problem
from .digest import content_digest

# A block is about this large: many kernel blocks, and a small part of memory.
BLOCK_BYTES = 1 << 22
# Of wide rows, as many, but no more than so many times the bytes.
WIDE_ROWS = 128
WIDE_BLOCKS = 24

Position = Any
"""Where in a pass a stream is, as JSON can hold it; None is the beginning."""
Blocks = Generator[tuple[Any, Position], None, None]
"""Blocks of a pass, each with the position after it; to be closed by whoever stops early."""


class HintedError(ValueError):
    """Something that cannot be used, and the parameter that helps.

    Parameters
    ----------
    message : str
    parameter : str or None
        A name, or a name and its value (``"shuffle=False"``), for a hint at the end of the
        message. The command line names its own option there instead.
    """

    def __init__(self, message: str, parameter: str | None = None) -> None:
        super().__init__(message)
        self.parameter = parameter

    def __str__(self) -> str:
        return self.shown(lambda parameter: parameter if "=" in parameter else f"{parameter}=")

    def shown(self, hint: Callable[[str], str]) -> str:
        """The message, its hint in the words of whoever shows it: `columns=` or `--columns`."""
        return with_hint(str(self.args[0]), self.parameter, hint)


class DataError(HintedError):
    """Something in the data that cannot be used: the message names file, row and column."""


class SourceLostError(OSError):
    """A source that gives no more rows, though it has some: what was learned is worth keeping."""


class Note(NamedTuple):
    """What was taken for what where the data left room for doubt, and who can say otherwise."""

    message: str
    parameter: str | None = None

    def shown(self, hint: Callable[[str], str]) -> str:
        """See `HintedError.shown`."""
        return with_hint(self.message, self.parameter, hint)


def with_hint(message: str, parameter: str | None, hint: Callable[[str], str]) -> str:
    """A message with the parameter that helps, if there is one."""
    if parameter is None:
        return message
    return f"{message.removesuffix('.')} ({hint(parameter)})."


class Source(ABC):
    """Rows to learn from, in blocks of constant memory.

    Attributes
    ----------
    name : str
        For messages: the file, or what it is.
    n_features : int
    feature_names : list of str or None
    dtype : numpy.dtype
        float32 or float64.
    n_rows : int or None
        None where only reading tells.
    share : float
        Of the entries that are observed, if that can be told without reading all of them; else 1.
    rereadable : bool
        Whether there can be a second pass.
    read_ahead : bool
        Whether the next block is worth reading while this one is learned from.
    path : Path or None
        The file that the rows are read from.
    notes : sequence of Note
        What was taken for what where the data left room for doubt.
    on_idle : callable or None
        Called every now and then while no rows come; it may raise to end the wait.
    """

    name: str
    n_features: int
    feature_names: list[str] | None = None
    dtype: np.dtype[Any] = np.dtype(np.float64)
    n_rows: int | None = None
    share: float = 1.0
    rereadable: bool = True
    read_ahead: bool = False
    path: Path | None = None
    notes: Sequence[Note] = ()
    on_idle: Callable[[], None] | None = None

    @abstractmethod
    def blocks(
        self,
        length: int,
        shuffle: bool | str,
        rng: np.random.RandomState,
        position: Position = None,
    ) -> Blocks:
        """Yield the blocks of one pass, and after each the position to go on from.

        All blocks but the last of a pass have `length` rows. What the order needs is drawn from
        `rng` before the first block, and no more: a pass begun again with the generator in the
        same state and a position goes on as if it had not been interrupted.
        """

    @abstractmethod
    def fraction(self, position: Position) -> float | None:
        """About which share of a pass is done at a position; None where nobody knows."""

    def fingerprint(self) -> dict[str, Any]:
        """What must be the same for a position to mean the same rows.

        The content goes in by a digest: of all of it where that is little, of parts spread over
        it where it is much.
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
        """Refuse, by a ValueError, what cannot be a position of this stream."""
        fits = position is None or (type(position) is int and position >= 0)
        if not fits or (self.n_rows is not None and (position or 0) > self.n_rows):
            raise ValueError("its position is outside of the data")

    def row_number(self, block_length: int, position: Position, at: int) -> int | None:
        """Which row (from 0) of the source was at `at` in the block that ended at a position.

        None where that is not known; such sources check rows before they give them.
        """
        return None

    def idle(self) -> None:
        """Let whoever waits for rows do something meanwhile."""
        if self.on_idle is not None:
            self.on_idle()

    def check_finite_rows(self, rows: Any, first_row: int | None) -> None:
        """Refuse infinity in rows of which the first has the number `first_row` (from 0)."""
        where = find_infinity(rows)
        if where is not None:
            number = None if first_row is None else first_row + where[0]
            raise self.infinity_error(number, where[1])

    def infinity_error(self, row: int | None, column: int) -> DataError:
        """See `infinity_error`."""
        return infinity_error(self.name, self.feature_names, row, column)

    def some_rows(self, n_rows: int) -> Any:
        """All rows in their order if they are no more than asked for.

        Otherwise rows from all over the source, as far as it can give them in random order.
        """
        first = self._first(n_rows + 1, shuffle=False)
        return first if first.shape[0] <= n_rows else self._first(n_rows, shuffle=True)

    def _first(self, n_rows: int, *, shuffle: bool) -> Any:
        length = min(rows_per_block(self.n_features, self.dtype, 1), n_rows)
        taken: list[Any] = []
        for block, _ in self.blocks(length, shuffle, np.random.RandomState(0)):
            taken.append(block)
            if sum(part.shape[0] for part in taken) >= n_rows:
                break
        return _together(taken)[:n_rows]

    def last_rows(self, n_rows: int) -> Any:
        """The last rows of the source, in their order."""
        length = rows_per_block(self.n_features, self.dtype, 1)
        taken: list[Any] = []
        for block, _ in self.blocks(length, False, np.random.RandomState(0)):
            taken.append(block)
            while sum(part.shape[0] for part in taken[1:]) >= n_rows:
                del taken[0]
        return _together(taken)[-n_rows:]

    def close(self) -> None:
        """Let go of files."""
        return


def _together(blocks: list[Any]) -> Any:
    if len(blocks) == 1:
        return blocks[0]
    sparse = scipy.sparse.issparse(blocks[0])
    return scipy.sparse.vstack(blocks, format="csr") if sparse else np.concatenate(blocks)


def observed_features(X: Any) -> NDArray[np.bool_]:
    """Which features some row of X observes."""
    if scipy.sparse.issparse(X):
        seen = np.zeros(X.shape[1], dtype=bool)
        seen[X.indices[~np.isnan(X.data)]] = True
        return seen
    if not np.isnan(X[0]).any():
        return np.ones(X.shape[1], dtype=bool)
    seen_anywhere: NDArray[np.bool_] = ~np.isnan(X).all(axis=0)
    return seen_anywhere


def uniform_error(name: str, instead: str) -> ValueError:
    """The error about rows that cannot be drawn one by one."""
    return ValueError(
        f"shuffle='uniform' draws single rows, which {name} cannot give. Use {instead}."
    )


def infinity_error(name: str, names: list[str] | None, row: int | None, column: int) -> DataError:
    """The error about infinity at a row (from 0, None if unknown) and a column (from 0)."""
    return DataError(f"{name} {infinity_problem(row, column, names)}")


@contextmanager
def errors_about(source: Source, rows: Any = None, position: Position = None) -> Iterator[None]:
    """Let errors of the model, which are about X, name the source, and infinity its row.

    Parameters
    ----------
    source : Source
    rows : block or None
        The rows that the model is given, if they may be looked at.
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
    """Let the errors by which a reader refuses a damaged file name the file."""
    try:
        yield
    except DataError:
        raise
    except faults as error:
        reason = " ".join(str(error).split())[:120]
        raise DataError(f"{path}: not a whole {kind} file ({reason}).") from error


def rows_per_block(n_features: int, dtype: np.dtype[Any], multiple: int) -> int:
    """How many rows make a block, at least `multiple` and a multiple of it.

    Where rows are wide, a block is larger than others: each block costs some passes over the
    dictionary, which many rows must share.
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
    # Few rows at a time, so that what is written stays in the cache: ten times as fast.
    for start in range(0, len(rows), 64):
        rows[start : start + 64] = stacked[:, start : start + 64].T
    return rows
