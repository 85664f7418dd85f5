"""Give something hostile to a model, in one of the ways that users have."""

import copy
from typing import Any

import numpy as np
import scipy.sparse

from .models import content, demand_sound, fitted, fresh
from .trial import ACCEPTED, CHANGED, NOT_FINITE, REFUSED, attempt, demand, demand_finite

READING = ("transform", "complete", "score", "interval", "sample", "score_samples", "deviations")


def use(rng: np.random.Generator, X: Any, fit_share: float = 0.08) -> list[str]:
    """Learn from X, or use it; judge what came of it."""
    choice = rng.random()
    if choice < fit_share:
        model = fresh(rng)
        return learn(model, "fit" if rng.random() < 0.5 else "partial_fit", X)
    model = fitted(rng)
    if choice < 0.4:
        return learn(model, "partial_fit", X)
    return read(model, READING[rng.integers(len(READING))], X)


def learn(model: Any, method: str, X: Any) -> list[str]:
    """What is refused changes nothing; what is learned leaves a sound model. X stays as it is."""
    before, given = content(model), kept(X)
    outcome, _ = attempt(lambda: getattr(model, method)(X))
    demand(same(X, given), CHANGED, f"{method} has changed X")
    if outcome is not ACCEPTED:
        demand(content(model) == before, CHANGED, f"{method} was refused, and changed the model")
    elif model.__sklearn_is_fitted__():
        demand_sound(model)
    return [outcome]


def read(model: Any, method: str, X: Any) -> list[str]:
    """Reading changes neither model nor X, gives finite numbers, and leaves what is observed."""
    if not hasattr(model, "interval" if method == "deviations" else method):
        return [REFUSED]  # the paper's algorithm has no uncertainty
    _ = model.components_  # a young stream makes its state when somebody asks for it
    before, given = content(model), kept(X)
    if method == "deviations":
        outcome, made = attempt(lambda: model.complete(X, return_std=True))
    else:
        outcome, made = attempt(lambda: getattr(model, method)(X))
    demand(content(model) == before, CHANGED, f"{method} has changed the model")
    demand(same(X, given), CHANGED, f"{method} has changed X")
    if outcome is ACCEPTED:
        names = model.learner_.feature_names
        if hasattr(made, "columns") and names and set(names) <= set(made.columns):
            made = made[names]  # other columns pass as they are
        demand_finite(made, f"what {method} gives", unbounded=method in ("interval", "deviations"))
        if method == "complete" and type(X) is np.ndarray and X.dtype == model.learner_.dtype:
            observed = ~np.isnan(X)
            demand(np.array_equal(made[observed], X[observed]), NOT_FINITE, "observed cells")
    return [outcome]


def kept(X: Any) -> Any:
    """A copy to compare with; None of what cannot be copied."""
    try:
        return copy.deepcopy(X)
    except TypeError:
        return None


def same(X: Any, given: Any) -> bool:
    """Whether X is what it was, bit by bit where it has bits."""
    if given is None or type(X) is not type(given):
        return True
    if isinstance(X, np.ndarray) and X.dtype != object:
        return X.tobytes() == given.tobytes() and X.shape == given.shape
    if scipy.sparse.issparse(X):
        return _parts(X) == _parts(given)
    return repr(X) == repr(given)


def _parts(matrix: Any) -> dict[str, bytes]:
    """The arrays that a sparse matrix is made of."""
    return {
        name: repr(part.tolist()).encode() if part.dtype == object else part.tobytes()
        for name, part in vars(matrix).items()
        if isinstance(part, np.ndarray)
    }
