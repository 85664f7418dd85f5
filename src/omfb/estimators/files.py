"""Model files of the estimators."""

import os
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..learner.learner import Learner
from ..learner.lineage import checked
from ..learner.records import FAULTS, Parts, not_written_by_omfb, parts_of, snapshot_of
from ..persistence import ModelFileError, read_model, write_model
from ..persistence.records import plain
from .covariates import checked_covariates
from .parameters import checked_seasons, init_array
from .sentinels import MissingValues, of_json

BOUNDS = ("min_value", "max_value")
TABLE = ("remainder", "missing_values", "add_indicator", "keep_empty_features")
IMPUTER_ONLY = (*BOUNDS, "integers", *TABLE)


class Estimator(Protocol):
    """What a model file needs to know of an estimator."""

    @property
    def learner_(self) -> Learner:
        """The fitted learner."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, by name."""

    def checked_config(self, temporal: bool = False) -> Any:
        """Refuse parameters that cannot be used."""

    def adopt(
        self, learner: Learner, n_iter: int | None = None, facts: dict[str, Any] | None = None
    ) -> Self:
        """Become the fitted model that a learner is; `facts` are further attributes."""

    def facts_header(self, facts: dict[str, Any]) -> dict[str, Any]:
        """Further attributes of a fitted model, as the header of a file holds them."""

    def facts_tensors(self) -> dict[str, NDArray[Any]]:
        """Those attributes that are arrays, as a file holds them."""

    @classmethod
    def read_facts(
        cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]], n_features: int
    ) -> dict[str, Any]:
        """These attributes from a file."""


Loaded = TypeVar("Loaded", bound=Estimator)


def write_estimator(
    model: Estimator, path: str | os.PathLike[str], *, like: Any = None, **more: Any
) -> None:
    """Write a fitted model to a file; `more` goes into its header.

    A new file gets the permissions of the file `like`.
    """
    learner = model.learner_
    snapshot = learner.snapshot_to_share()
    parts = parts_of(snapshot)
    header = {**more, **file_header(model), **parts.header, "lineage": list(snapshot.lineage)}
    given = model.get_params(deep=False).get("init", "data")
    if not isinstance(given, str):
        init = init_array(given)
        if isinstance(learner.init, str) or not np.array_equal(init, learner.init):
            parts.tensors["parameters.init"] = init
    write_model(path, header, {**parts.tensors, **model.facts_tensors()}, like)


def read_estimator(path: str | os.PathLike[str], load: Callable[[Parts], Loaded]) -> Loaded:
    """Read a file; its name goes before the messages of errors."""
    parts = Parts(*read_model(path))
    try:
        return load(parts)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error


def load_parts(cls: type[Loaded], parts: Parts, algorithm: str) -> Loaded:
    """The fitted estimator that the parts of a file hold."""
    header = parts.header
    try:
        lineage = checked(header.get("lineage", []))
    except FAULTS as error:
        raise not_written_by_omfb(error) from error
    learner = Learner.from_snapshot(replace(snapshot_of(parts), lineage=lineage))
    if learner.engine.name != algorithm:
        raise ModelFileError(
            f"a model of {str(header.get('class'))[:40]}, whose algorithm is another one: load it "
            f"by that class."
        )
    try:
        parameters = dict(header["parameters"])
        if parameters.get("init", "") is None:
            parameters["init"] = parts.tensors.get("parameters.init", learner.init)
        if isinstance(parameters.get("seasons"), list):
            listed = parameters["seasons"]
            parameters["seasons"] = [x if x.endswith("s") else float(x) for x in listed]
        for name in BOUNDS:
            if name in parameters:
                parameters[name] = _numbers(parameters[name])
        if "missing_values" in parameters:
            parameters["missing_values"] = of_json(parameters["missing_values"])
        known = cls().get_params()
        kept = {k: v for k, v in parameters.items() if k in known or k not in IMPUTER_ONLY}
        model = cls(**kept)
        model.checked_config()
        n_iter = header["n_iter"]
        if not (n_iter is None or (type(n_iter) is int and n_iter >= 0)):
            raise ValueError("n_iter is not a number of passes")
        facts = cls.read_facts(header, parts.tensors, learner.n_features)
    except FAULTS as error:
        raise not_written_by_omfb(error) from error
    return model.adopt(learner, n_iter, facts)


def file_header(model: Estimator, facts: dict[str, Any] | None = None) -> dict[str, Any]:
    """What a file holds of an estimator besides its learner, with the given facts or its own."""
    return {
        "class": type(model).__name__,
        "parameters": {
            name: _parameter(name, value) for name, value in model.get_params(deep=False).items()
        },
        "n_iter": getattr(model, "n_iter_", None),
        "training": None,
        **model.facts_header({} if facts is None else facts),
    }


def _parameter(name: str, value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.random.RandomState):
        return None  # it has moved on: another fit would not repeat the last one
    if name == "init" and not isinstance(value, str):
        return None  # a tensor
    if name in BOUNDS and value is not None:
        return _bounds(name, value)
    if name == "missing_values":
        return MissingValues.of(value).as_json()
    if name == "covariates":
        return list(checked_covariates(value)) or None
    if name == "seasons" and not (value is None or isinstance(value, str)):
        return (checked_seasons(value) or "").split()
    if isinstance(value, np.generic):
        return plain(value, name)
    if value is None or type(value) in (bool, int, float, str):
        return plain(value, name)
    return float(value)  # another type of number, such as Fraction


def _bounds(name: str, value: Any) -> Any:
    """Checked bounds as JSON can hold them: infinity, where there is none, as text."""
    bounds = np.asarray(value, np.float64)
    listed = [plain(x, name) if np.isfinite(x) else str(x) for x in bounds.ravel().tolist()]
    return listed if bounds.ndim else listed[0]


def _numbers(listed: Any) -> Any:
    """Bounds as they were given, from how a file holds them."""
    if isinstance(listed, list):
        return [float(value) for value in listed]
    return float(listed) if isinstance(listed, str) else listed
