"""Model files of `OMFBRecommender`."""

import math
import os
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ..core.conformal import N_BINS
from ..core.linalg.rating_rounds import Entries, Side
from ..core.ratings.state import Config, Scores, State, new_workspace, with_index
from ..core.require import require
from ..learner.records import FAULTS, not_written_by_omfb
from ..persistence import ModelFileError, read_model, write_model
from ..persistence.modelfile import Tensors
from ..persistence.records import plain
from .ids import Ids

CLASS = "OMFBRecommender"
NUMBERS = ("center", "unit", "low", "high")
ROWS = ("mean", "moments", "weight", "shift", "implicit", "implicit_var")
Model = TypeVar("Model")
PRIORS = ("base", "variance", "implicit_prior", "sums")


class Fitted(NamedTuple):
    """A fitted model: its state, the identifiers, and how `fit` went."""

    state_or_none: State | None
    users: Ids
    items: Ids
    n_iter: int | None
    holdout_rmse: float | None

    @property
    def state(self) -> State:
        """The state, which every model has after its first rating."""
        assert self.state_or_none is not None
        return self.state_or_none


class Recommender(Protocol):
    """What a file needs to know of the estimator."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, by name."""


def write_recommender(model: Recommender, fitted: Fitted, path: str | os.PathLike[str]) -> None:
    """Write a fitted model to a file."""
    state = fitted.state
    n_users, n_items, n = state.known.tolist()
    tensors: Tensors = {
        **fitted.users.to_tensors("users", n_users),
        **fitted.items.to_tensors("items", n_items),
        "place": state.place,
        "noise": state.workspace.noise,
        "histogram": state.scores.histogram,
        "stream": state.scores.stream,
        "ratings.user": state.entries.user[:n],
        "ratings.item": state.entries.item[:n],
        "ratings.z": state.entries.z[:n],
    }
    for name, side, count in (("users", state.users, n_users), ("items", state.items, n_items)):
        tensors |= {f"{name}.{part}": getattr(side, part)[:count] for part in ROWS}
        tensors |= {f"{name}.{part}": getattr(side, part) for part in PRIORS}
    header = {
        "class": CLASS,
        "parameters": {
            name: None if isinstance(value, np.random.RandomState) else plain(value, name)
            for name, value in model.get_params(deep=False).items()
        },
        "n_iter": fitted.n_iter,
        "holdout_rmse": fitted.holdout_rmse,
        "ratings": {
            "n_components": state.config.n_components,
            "implicit": state.config.implicit,
            "seed": state.seed,
            "n_rounds": state.n_rounds,
            **{name: getattr(state, name) for name in NUMBERS},
        },
    }
    write_model(path, header, tensors)


def read_recommender(
    path: str | os.PathLike[str], new: Callable[[dict[str, Any]], Model]
) -> tuple[Model, Fitted]:
    """The estimator and what it has learned, from a file; a ModelFileError if it holds none.

    Parameters
    ----------
    path : path
    new : callable
        Makes the estimator of its parameters, and checks these.
    """
    header, tensors = read_model(path)
    if header.get("class") != CLASS:
        raise ModelFileError(
            f"{path}: a model of {str(header.get('class'))[:40]}, not of ratings: load it by that "
            f"class."
        )
    try:
        return new(dict(header["parameters"])), _fitted(header, tensors)
    except FAULTS as error:
        raise ModelFileError(f"{path}: {not_written_by_omfb(error)}") from error


def _fitted(header: dict[str, Any], tensors: Tensors) -> Fitted:
    given = header["ratings"]
    r, implicit = given["n_components"], given["implicit"]
    require(type(r) is int and r >= 1 and type(implicit) is bool, "config")
    for name in ("seed", "n_rounds"):
        require(type(given[name]) is int and 0 <= given[name] < 2**31, name)
    numbers = {name: float(given[name]) for name in NUMBERS}
    require(all(map(math.isfinite, numbers.values())) and numbers["unit"] > 0.0, "units")
    users, items = (Ids.from_tensors(name, tensors) for name in ("users", "items"))
    entries = _entries(tensors, len(users), len(items))
    state = State(
        Config(r, implicit), **numbers, seed=given["seed"], n_rounds=given["n_rounds"],
        known=np.array([len(users), len(items), len(entries.z)], np.int64),
        users=_side("users", len(users), r, tensors), items=_side("items", len(items), r, tensors),
        entries=entries, slots=np.empty(0, np.int64),
        place=_array(tensors, "place", (3,), np.int64),
        workspace=new_workspace(r)._replace(noise=_array(tensors, "noise", (3,))),
        scores=Scores(_array(tensors, "histogram", (N_BINS,)), _array(tensors, "stream", (2,))),
    )  # fmt: skip
    require(0 <= int(state.place[0]) < 4 and int(state.place[1]) >= 0, "place")
    require(state.noise > 0.0, "noise")
    n_iter, rmse = header["n_iter"], header["holdout_rmse"]
    require(n_iter is None or (type(n_iter) is int and n_iter >= 0), "n_iter")
    require(rmse is None or (type(rmse) in (int, float) and rmse >= 0.0), "holdout_rmse")
    return Fitted(with_index(state), users, items, n_iter, rmse)


def _entries(tensors: Tensors, n_users: int, n_items: int) -> Entries:
    n = len(tensors["ratings.z"])
    require(n >= 1, "no ratings")
    user, item = (_array(tensors, f"ratings.{name}", (n,), np.int64) for name in ("user", "item"))
    for numbers, count in ((user, n_users), (item, n_items)):
        require(bool((numbers >= 0).all() and (numbers < count).all()), "ratings of nobody")
    require(len(np.unique(user * n_items + item)) == n, "pairs repeat")
    links = np.empty(n, np.int64), np.empty(n, np.int64)
    return Entries(user, item, _array(tensors, "ratings.z", (n,)), *links)


def _side(name: str, n: int, r: int, tensors: Tensors) -> Side:
    R, f = r + 2, r + 1
    widths = {"mean": (R,), "moments": (R * (R + 1) // 2,), "weight": ()}
    parts = {part: _array(tensors, f"{name}.{part}", (n, *widths.get(part, (f,)))) for part in ROWS}
    priors = {
        part: _array(tensors, f"{name}.{part}", (4, f) if part == "sums" else (f,))
        for part in PRIORS
    }
    positive = (parts["weight"], priors["variance"], priors["implicit_prior"])
    require(all(bool((each > 0.0).all()) for each in positive), f"variances of {name}")
    lists: dict[str, Any] = {"heads": np.full(n, -1, np.int64), "counts": np.zeros(n, np.int64)}
    return Side(**parts, **priors, **lists)


def _array(tensors: Tensors, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> Any:
    array = tensors[name]
    require(array.shape == shape and array.dtype == dtype, name)
    return array
