"""`save` and `load` of the estimators."""

import os
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core.broyden.config import NUMBERS as RULE_NUMBERS
from ..core.broyden.engine import BROYDEN
from ..learner.learner import Learner
from ..learner.records import FAULTS, Parts, not_written_by_omfb, parts_of, snapshot_of
from ..persistence import ModelFileError, read_model, write_model
from ..persistence.records import plain
from .parameters import check_parameters, init_array

NUMBERS = (*RULE_NUMBERS, "tol")
OF_IMPUTERS = ("min_value", "max_value", "integers")
BOUNDS = OF_IMPUTERS[:2]


class SavedMixin:
    """Models to files and back."""

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, all or nothing: an error leaves the old file.

        The file holds all that is needed to go on learning, in a documented format (safetensors
        with a JSON header), and no code.

        Parameters
        ----------
        path : str or path
            By convention ending in ``.omfb``.
        """
        check_is_fitted(self)
        check_parameters(self)
        learner = self.learner_  # type: ignore[attr-defined]
        parts = parts_of(learner.snapshot())
        header = {**file_header(self), **parts.header}
        init = self.init  # type: ignore[attr-defined]
        if not isinstance(init, str):
            init = init_array(init)
            if isinstance(learner.init, str) or not np.array_equal(init, learner.init):
                parts.tensors["parameters.init"] = init
        write_model(path, header, parts.tensors)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model from a file; safe with files from anyone.

        A model saved by `OMFB` can be loaded as an `OMFBImputer` and the other way round.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        model : OMFB or OMFBImputer

        Raises
        ------
        ModelFileError
            If the file is no whole model file; it is a ValueError.
        """
        parts = Parts(*read_model(path))
        try:
            return _loaded(cls, parts)
        except ModelFileError as error:
            raise ModelFileError(f"{path}: {error}") from error


def file_header(model: Any) -> dict[str, Any]:
    """What a file says of an estimator besides what its learner is."""
    return {
        "class": type(model).__name__,
        "parameters": {
            name: _parameter(name, value) for name, value in model.get_params(deep=False).items()
        },
        "n_iter": getattr(model, "n_iter_", None),
        "training": None,
    }


def _parameter(name: str, value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.random.RandomState):
        return None  # its state has moved on; a fit from here on is not a repetition of the last
    if name == "init" and not isinstance(value, str):
        return None  # a tensor
    if name in BOUNDS and value is not None:
        return _bounds(name, value)
    if value is not None and name in NUMBERS and type(value) not in (int, float):
        return float(value)
    return plain(value, name)


def _bounds(name: str, value: Any) -> Any:
    """Bounds as JSON can hold them: infinity, where there is none, as text."""
    try:
        bounds = np.asarray(value, np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number or an array of them, got {value!r}.") from error
    if np.isnan(bounds).any():
        raise ValueError(f"{name} contains NaN: use -inf or inf where there is no bound.")
    if bounds.ndim > 1:
        raise ValueError(f"{name} must be a number or one for each feature.")
    listed = [plain(x, name) if np.isfinite(x) else str(x) for x in bounds.ravel().tolist()]
    return listed if bounds.ndim else listed[0]


def _numbers(listed: Any) -> Any:
    """Bounds as they were given, from how a file holds them."""
    if isinstance(listed, list):
        return [float(value) for value in listed]
    return float(listed) if isinstance(listed, str) else listed


def _loaded(cls: Any, parts: Parts) -> Any:
    learner = Learner.from_snapshot(snapshot_of(parts))
    header = parts.header
    try:
        parameters = dict(header["parameters"])
        if parameters.get("init", "") is None:
            parameters["init"] = parts.tensors.get("parameters.init", learner.init)
        if learner.engine is BROYDEN and "center" not in parameters:  # 0.1 knew nothing else
            parameters |= {"center": False, "scale": False}
        for name in BOUNDS:
            if name in parameters:
                parameters[name] = _numbers(parameters[name])
        known = cls().get_params()
        model = cls(**{k: v for k, v in parameters.items() if k in known or k not in OF_IMPUTERS})
        check_parameters(model)
        n_iter = header["n_iter"]
        if not (n_iter is None or (type(n_iter) is int and n_iter >= 0)):
            raise ValueError("a number of passes that is none")
    except FAULTS as error:
        raise not_written_by_omfb(error) from error
    return model.adopt(learner, n_iter)
