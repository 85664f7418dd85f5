"""Warnings about data that may not be what the user meant."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .sentinels import Suspect, parameter, report


class Findings(NamedTuple):
    """What a fit found in its data.

    Attributes
    ----------
    unseen : ndarray of shape (n_features,)
        Features that were never observed.
    suspects : sequence of Suspect
        Numbers that look like codes for missing values.
    """

    unseen: NDArray[np.bool_]
    suspects: Sequence[Suspect] = ()


def diagnostics(
    findings: Findings, names: list[str] | None,
    hint: Callable[[list[str]], str] = parameter,
) -> list[str]:  # fmt: skip
    """Messages about the data of a fit.

    Parameters
    ----------
    findings : Findings
    names : list of str or None
    hint : callable
        Says how the user declares values as missing.
    """
    messages = (
        _unobserved(findings.unseen, names),
        _ratings(names),
        report(findings.suspects, names, hint),
    )
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
    shown = ", ".join(str(i) if names is None else repr(names[i]) for i in which[:10])
    more = f" and {len(which) - 10} more" if len(which) > 10 else ""
    return (
        f"Never observed: feature {shown}{more}. Nothing was learned about them: values that are "
        f"filled in there mean nothing, and their intervals are infinite. Drop them, or add rows "
        f"that observe them."
    )
