"""`omfb.merge`: one model of several that learned separately."""

from collections.abc import Sequence
from copy import copy
from typing import TypeVar

from ..core.evidence import MergeError
from ..learner.merge import merge_learners
from .base import BaseFactorizer

Model = TypeVar("Model", bound=BaseFactorizer)


def merge(models: Sequence[Model], start: Model) -> Model:
    """One model that has learned what several have, each from rows of its own.

    For sites that cannot share their rows, or rows that are learned in parallel: fit a start, give
    each site a copy that continues by `partial_fit`, and merge what they return. The result is
    close to the model that would have seen all rows in turns: evidence adds up, and the start
    counts once. The order of the models does not matter, except for rounding.

    All models must have continued from one start, with the same parameters, and forget nothing
    (``forget_factor=1``). Merge often while a start is young: models that learn from many times
    the rows of their start drift apart, and their codes no longer mean the same.

    Parameters
    ----------
    models : sequence of estimators
        Copies of the start that have learned more rows.
    start : estimator
        The model that they continued from; it must have seen about 400 rows.

    Returns
    -------
    model : estimator
        Of the class of the start; the given models do not change.

    Raises
    ------
    ValueError
        If the models have not continued from the start, or forget.

    Examples
    --------
    >>> from copy import copy
    >>> import numpy as np
    >>> import omfb
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((3000, 3)) @ rng.standard_normal((3, 20))
    >>> start = omfb.OnlineFactorAnalysis(3, random_state=0).fit(X[:1000])
    >>> sites = [copy(start).partial_fit(rows) for rows in (X[1000:2000], X[2000:])]
    >>> model = omfb.merge(sites, start)
    >>> model.n_samples_seen_ == start.n_samples_seen_ + 2000
    True
    """
    if isinstance(models, BaseFactorizer) or not all(
        isinstance(model, BaseFactorizer) for model in (start, *models)
    ):
        raise TypeError(
            "merge takes a list of fitted models and the model that they continued from: "
            "merge([a, b], start)."
        )
    try:
        learner = merge_learners(start.learner_, [model.learner_ for model in models])
    except MergeError as error:
        raise ValueError(f"models cannot be merged: {error}.") from error
    return copy(start).adopt(learner)
