"""`omfb.merge`: one model of several that learned apart."""

from collections.abc import Sequence
from copy import copy
from typing import Any

from ..core.evidence import MergeError
from ..learner.merge import merge_learners


def merge(models: Sequence[Any], start: Any) -> Any:
    """One model that has learned what several have, each from rows of its own.

    For sites that cannot share their rows, or rows that are learned from in parallel: fit a
    start, give each site a copy that goes on by `partial_fit`, and merge what they bring back.
    The result is near to what one model would be that had seen all rows in turns: what rows
    tell adds up, and the start counts once. The order of the models does not matter, but for
    rounding.

    It is valid if all models are of one start, with the same parameters, and remember
    (``memory=1``, the default). Merge often while a start is young: parts that learn from many
    times the rows of their start turn away from each other, and their codes no longer mean the
    same.

    Parameters
    ----------
    models : sequence of OMFB or OMFBImputer
        Copies of the start that have learned more rows.
    start : OMFB or OMFBImputer
        The model that they went on from; at least some 400 rows old.

    Returns
    -------
    model : OMFB or OMFBImputer
        As the start; none of the given models changes.

    Raises
    ------
    ValueError
        If they share no start, or forget.

    Examples
    --------
    >>> from copy import copy
    >>> import numpy as np
    >>> import omfb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 3)) @ rng.standard_normal((3, 20))
    >>> start = omfb.OMFB(3, random_state=0).fit(X[:1000])
    >>> sites = [copy(start).partial_fit(rows) for rows in (X[1000:2000], X[2000:])]
    >>> model = omfb.merge(sites, start)
    >>> model.n_samples_seen_ == start.n_samples_seen_ + 2000
    True
    """
    try:
        learner = merge_learners(start.learner_, [model.learner_ for model in models])
    except MergeError as error:
        raise ValueError(f"models cannot be merged: {error}.") from error
    return copy(start).adopt(learner)
