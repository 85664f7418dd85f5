"""A uniform sample of the rows of a pass, for the end of a fit.

Reservoir sampling: row t of a pass takes one of `size` places while there are free ones, and later
the place u(t) mod (t + 1), if there is such a place, where u(t) is a hash of t. So the sample
depends on the rows and their order only, not on how the pass is cut into blocks or interrupted.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.blocks import dense_with_holes
from ..core.engine import Numbers, Rows
from ..core.splitmix import hashed
from ..core.weighted import stacked


@dataclass(frozen=True, slots=True)
class Changes:
    """What a block changes in a sample. To apply it twice is to apply it once.

    Attributes
    ----------
    places : tuple of int
    rows : ndarray or sparse matrix of shape (len(places), n_features) or None
    numbers : tuple of int
        Numbers of the rows, the same in every pass.
    n_seen : int
        Rows of the pass, those of the block included.
    """

    places: tuple[int, ...] = ()
    rows: Rows = None
    numbers: tuple[int, ...] = ()
    n_seen: int = 0


class RowSample:
    """At most `size` of the rows so far, in their order while they are no more than that.

    Parameters
    ----------
    size : int
    rows : ndarray, sparse matrix or None
        The rows in the sample, if it continues from a checkpoint.
    numbers : sequence of int
        Their numbers.
    n_seen : int
        Rows of the pass so far.
    """

    def __init__(
        self, size: int, rows: Rows = None, numbers: Sequence[int] = (), n_seen: int = 0
    ) -> None:
        self._size, self._numbers, self.n_seen = size, list(numbers), n_seen
        self._rows = [] if rows is None else [rows[at : at + 1] for at in range(rows.shape[0])]

    def __len__(self) -> int:
        return len(self._rows)

    def changes(self, block: Rows, numbers: Numbers = None) -> Changes:
        """What a block of rows will change; nothing is changed yet."""
        count = np.arange(self.n_seen, self.n_seen + block.shape[0])
        numbers = count if numbers is None else numbers
        places = np.where(count < self._size, count, _places(count))
        taken = np.flatnonzero(places < self._size)
        # In the order of places; of rows that take the same place, the last one keeps it.
        _, last = np.unique(places[taken][::-1], return_index=True)
        taken = taken[::-1][last]
        after = int(self.n_seen + block.shape[0])
        chosen = tuple(numbers[taken].tolist())
        return Changes(tuple(places[taken].tolist()), block[taken], chosen, after)

    def apply(self, changes: Changes) -> None:
        """Change the sample."""
        for at, place in enumerate(changes.places):
            row, number = changes.rows[at : at + 1], changes.numbers[at]
            if place < len(self._rows):
                self._rows[place], self._numbers[place] = row, number
            else:
                self._rows.append(row)
                self._numbers.append(number)
        self.n_seen = max(self.n_seen, changes.n_seen)

    def rows(self) -> Rows:
        """The rows of the sample, sparse if all of them are."""
        return stacked(self._rows, _stacked)

    def numbers(self) -> NDArray[np.int64]:
        """Their numbers."""
        return np.array(self._numbers, np.int64)


def _stacked(rows: list[Any]) -> Rows:
    if all(scipy.sparse.issparse(row) for row in rows):
        return scipy.sparse.vstack(rows, format="csr")
    return np.concatenate([dense_with_holes(row) for row in rows])


def _places(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """u(t) mod (t + 1)."""
    places = hashed(numbers) % (numbers.astype(np.uint64) + np.uint64(1))
    return places.astype(np.int64)


NO_CHANGES = Changes()
