"""Good models to try things on: of each engine, young and old, and of each type."""

import copy
import functools
import pickle
from typing import Any

import numpy as np
from sklearn.base import clone

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.learner.learner import Learner
from omfb.learner.records import parts_of, snapshot_of

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


MODELS: list[Any] = [
    OnlineFactorAnalysis(3, random_state=0),
    OnlineFactorAnalysis(3, temporal=True, scale=True, random_state=0),
    OnlineFactorAnalysis(3, forget_factor=0.9, center=False, random_state=0),
    OMFBImputer(3, random_state=0),
    OMFBImputer(3, temporal=True, noise="isotropic", random_state=0),
    OMFBImputer(3, forget_factor=0.9, robust=False, min_value=0.0, integers=True, random_state=0),
    OMFB(3, random_state=0),
    OMFB(3, forget_factor=1.0, random_state=0),
    OMFB(3, forget_factor=0.9, batch_size=3, random_state=0),
    OMFB(3, forget_factor=1.0, shrink=2.0, batch_size=4, random_state=0),
    OMFB(3, forget_factor=1.0, positive_code=True, positive_dict=True, random_state=0),
    OMFB(3, forget_factor=1.0, absent="zero", random_state=0),
    OMFB(3, alpha=0.1, l1_ratio=0.5, batch_size=4, random_state=0),
    OMFB(3, smooth=0.5, shuffle=False, random_state=0),
]


@functools.cache
def fitted_models() -> list[Any]:
    """Fitted ones; to be copied before they learn."""
    X, models = good_rows(), []
    for model in MODELS:
        models.append(clone(model).fit(X))
        models.append(clone(model).partial_fit(X[:5]))
        models.append(clone(model).fit(X[:60].astype(np.float32)))
    return models


def fitted(rng: np.random.Generator) -> Any:
    """A copy of one of them."""
    models = fitted_models()
    return copy.deepcopy(models[rng.integers(len(models))])


def fresh(rng: np.random.Generator) -> Any:
    """A model that has not learned yet."""
    model = clone(MODELS[rng.integers(len(MODELS))])
    return model.set_params(n_components=int(rng.integers(1, 4)))


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
