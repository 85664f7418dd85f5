"""What the estimators warn of: data that may not be what was meant."""

import numpy as np
from numpy.typing import NDArray

OUT_OF_ORDER = (
    "The times of X's index do not rise from row to row, so that rows are not filled from their "
    "neighbours: X.sort_index() lets them be, and in_time=False says that they should not."
)


def doubts(unseen: NDArray[np.bool_], names: list[str] | None) -> list[str]:
    """What to say after a fit that may not be what was meant."""
    return [doubt for doubt in (_unobserved(unseen, names), _ratings(names)) if doubt is not None]


def _ratings(names: list[str] | None) -> str | None:
    """What to say of ratings that come one in a row: who, what and how much are no features."""
    if names is None or len(names) > 4:
        return None
    if not all(any(word in name.lower() for name in names) for word in ("user", "rating")):
        return None
    return (
        f"Columns {', '.join(names)} look like one rating in each row. Make a row of each user: a "
        f"sparse matrix, scipy.sparse.coo_array((rating, (user, item))), where absent is unknown."
    )


def _unobserved(unseen: NDArray[np.bool_], names: list[str] | None) -> str | None:
    """What to say of features that were never observed; None if all were."""
    which = np.flatnonzero(unseen)
    if len(which) == 0:
        return None
    shown = ", ".join(str(i if names is None else names[i]) for i in which[:10])
    more = f" and {len(which) - 10} more" if len(which) > 10 else ""
    return (
        f"Never observed: feature {shown}{more}. Nothing was learned about them, and what "
        f"`complete` fills in there means nothing. Drop them, or bring rows that have them."
    )
