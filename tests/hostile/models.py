"""Good models to try things on: of each engine, young and old, and of each type."""

import copy
import functools
import pickle
from typing import Any

import numpy as np

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.learner.learner import Learner
from omfb.learner.records import parts_of, snapshot_of

from ..making import given
from .trial import ACCEPTED, CHANGED, attempt, demand, demand_finite, strict

WIDTH = 6


@functools.cache
def good_rows() -> np.ndarray:
    """Rows with missing entries; more than a head."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 2)) @ rng.normal(size=(2, WIDTH))
    X += 3.0 + 0.1 * rng.normal(size=X.shape)
    X[rng.random(X.shape) < 0.2] = np.nan
    X.flags.writeable = False
    return X


PARAMETERS: dict[str, dict[str, Any]] = {
    "nothing set": {},
    "in time": {"temporal": True},
    "forgetting": {"forget_factor": 0.9, "batch_size": 3},
    "paper": {"forget_factor": 0},
    "rule": given(),
    "rule, shrinking mini-batches": given(shrink=2.0, batch_size=4),
    "rule, smooth": given(smooth=0.5, shuffle=False),
}


@functools.cache
def fitted_models() -> list[Any]:
    """Fitted ones; to be copied before they learn."""
    X, models = good_rows(), []
    for parameters in PARAMETERS.values():
        for estimator in (OMFB, OMFBImputer):
            models.append(estimator(3, random_state=0, **parameters).fit(X))
            models.append(estimator(3, random_state=0, **parameters).partial_fit(X[:5]))
        models.append(
            OnlineFactorAnalysis(3, random_state=0, **parameters).fit(X[:60].astype(np.float32))
        )
    return models


def fitted(rng: np.random.Generator) -> Any:
    """A copy of one of them."""
    models = fitted_models()
    return copy.deepcopy(models[rng.integers(len(models))])


def fresh(rng: np.random.Generator) -> Any:
    """A model that has not learned yet."""
    estimator = (OMFB, OMFBImputer)[rng.integers(2)]
    names = list(PARAMETERS)
    parameters = PARAMETERS[names[rng.integers(len(names))]]
    return estimator(int(rng.integers(1, 4)), random_state=0, **parameters)


def content(model: Any) -> bytes:
    """All that a model is, to compare bit by bit."""
    return pickle.dumps(model)


def demand_sound(model: Any) -> None:
    """The model must fill good rows with finite numbers, and survive a file."""
    width = model.n_features_in_
    rows = np.resize(good_rows(), (4, width)).astype(model.learner_.dtype)
    learner = model.learner_
    with strict():
        demand_finite(model.components_, "components_")
        demand_finite(model.prequential_error_, "prequential_error_")
        loaded = Learner.from_snapshot(snapshot_of(parts_of(learner.snapshot())))
    # A model of data of quite another size may refuse these rows.
    outcome, filled = attempt(lambda: learner.fill(rows))
    again, loaded_filled = attempt(lambda: loaded.fill(rows))
    demand(outcome == again, CHANGED, "once loaded, the model refuses other rows")
    if outcome is ACCEPTED:
        demand_finite(filled, "what the model fills in afterwards")
        demand(np.array_equal(filled, loaded_filled), CHANGED, "once loaded, it fills otherwise")
