"""Warnings about data that may not be what the user meant."""

import numpy as np
from numpy.typing import NDArray

OUT_OF_ORDER = (
    "The times of X's index are not in ascending order, so rows are not filled from their "
    "neighbours. Sort them by X.sort_index(), or set temporal=False to silence this warning."
)


def diagnostics(unseen: NDArray[np.bool_], names: list[str] | None) -> list[str]:
    """Messages about the data of a fit.

    Parameters
    ----------
    unseen : ndarray of shape (n_features,)
        Features that were never observed.
    names : list of str or None
    """
    messages = (_unobserved(unseen, names), _ratings(names))
    return [message for message in messages if message is not None]


def _ratings(names: list[str] | None) -> str | None:
    """A message about ratings that come one per row: user, item and rating are not features."""
    if names is None or len(names) > 4:
        return None
    if not all(any(word in name.lower() for name in names) for word in ("user", "rating")):
        return None
    return (
        f"Columns {', '.join(names)} look like one rating per row. Make one row per user: a "
        f"sparse matrix, scipy.sparse.coo_array((rating, (user, item))), where absent is unknown."
    )


def _unobserved(unseen: NDArray[np.bool_], names: list[str] | None) -> str | None:
    """A message about features that were never observed; None if all were."""
    which = np.flatnonzero(unseen)
    if len(which) == 0:
        return None
    shown = ", ".join(str(i if names is None else names[i]) for i in which[:10])
    more = f" and {len(which) - 10} more" if len(which) > 10 else ""
    return (
        f"Never observed: feature {shown}{more}. Nothing was learned about them, and the "
        f"values that `complete` fills in there are meaningless. Drop them, or add rows that "
        f"observe them."
    )
