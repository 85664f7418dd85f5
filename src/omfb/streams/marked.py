"""A source in whose rows some numbers stand for missing values."""

from collections.abc import Callable, Iterator
from typing import Any

from .base import Block, Source
from .wrapped import WrappedSource


class MarkedSource(WrappedSource):
    """The rows of another source with NaN in place of some numbers.

    Parameters
    ----------
    source : Source
    mark : callable
        Replaces the numbers in a block of rows.
    numbers : JSON value
        The numbers, for the fingerprint.
    """

    def __init__(self, source: Source, mark: Callable[[Any], Any], numbers: Any) -> None:
        super().__init__(source)
        self._mark, self._numbers = mark, numbers

    def _changed(self, block: Block) -> Iterator[Block]:
        yield block._replace(rows=self._mark(block.rows))

    def fingerprint(self) -> dict[str, Any]:
        """See `Source.fingerprint`."""
        return {**super().fingerprint(), "missing": self._numbers}
