"""`save` and `load` of the estimators: a fitted model as a header and tensors, and back."""

import math
import os
from dataclasses import asdict
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ..core.state import Info, Rule, State
from ..estimators.parameters import check_init, check_parameters
from ..persistence import ModelFileError, read_model, write_model
from ..persistence.modelfile import Tensors
from .fit_stream import Place

# Of a State, by their names.
COUNTERS = ("n_seen", "drift", "since", "entries")
NUMBERS = ("least_ridge", "residual", "prior")
_FLOATS = (np.dtype(np.float32), np.dtype(np.float64))


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
        write_model(path, *parts_of(self))

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
        return load_parts(cls, path)[0]


def parts_of(model: Any, place: Place | None = None) -> tuple[dict[str, Any], Tensors]:
    """The header and the tensors of a fitted model, with where its fit is if it is unfinished."""
    state: State = model._state
    tensors = {"C": state.C, "G": state.G, "S": state.S}
    if state.code is not None:
        tensors["code"] = state.code
    names = getattr(model, "feature_names_in_", None)
    parameters = {name: _plain(value) for name, value in model.get_params(deep=False).items()}
    if not isinstance(model.init, str):
        parameters["init"] = None
        tensors["init"] = np.asarray(model.init, dtype=np.float64)
    header = {
        "class": type(model).__name__,
        "parameters": parameters,
        "feature_names": None if names is None else [str(name) for name in names],
        "rule": {name: _plain(value) for name, value in asdict(state.rule).items()},
        "counters": {
            **{name: int(getattr(state, name)) for name in COUNTERS},
            "n_iter": getattr(model, "n_iter_", None),
        },
        "scale": float(state.scale),
        **{name: float(getattr(state, name)) for name in NUMBERS},
        "energies": [float(value) for value in model._totals],
        "seed": int(model._seed) if model._head is not None else None,
        "head": _add_head(model._head, tensors),
        "training": None if place is None else _training(place, tensors),
    }
    return header, tensors


def load_parts(cls: Any, path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any], Tensors]:
    """A model from a file, and the header and tensors that it was made of."""
    header, tensors = read_model(path)
    try:
        return _model(cls, header, tensors), header, tensors
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ModelFileError(
            f"{path}: not a model that omfb can have written ({reason})."
        ) from error


def place_of(header: dict[str, Any], tensors: Tensors) -> Place | None:
    """Where the fit of a checkpoint is; None for a model whose fit has ended."""
    training = header.get("training")
    if training is None:
        return None
    try:
        key = np.asarray(training["random"]["key"], dtype=np.uint32)
        _demand(key.shape == (624,), "its random state has the wrong length")
        random = {
            "bit_generator": "MT19937",
            "state": {"key": key, "pos": int(training["random"]["pos"])},
            "has_gauss": int(training["random"]["has_gauss"]),
            "gauss": float(training["random"]["gauss"]),
        }
        before = training["error_before"]
        return Place(
            int(training["pass"]),
            random,
            training["position"],
            tensors["unseen"].astype(bool),
            error_before=math.inf if before is None else float(before),
            finished=bool(training["finished"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ModelFileError(f"a checkpoint that omfb cannot have written ({error}).") from error


def _training(place: Place, tensors: Tensors) -> dict[str, Any]:
    tensors["unseen"] = place.unseen.astype(np.uint8)
    state = place.random["state"]
    return {
        "pass": place.number,
        "position": place.position,
        "error_before": place.error_before if math.isfinite(place.error_before) else None,
        "finished": place.finished,
        "random": {
            "key": state["key"].tolist(),
            "pos": int(state["pos"]),
            "has_gauss": int(place.random["has_gauss"]),
            "gauss": float(place.random["gauss"]),
        },
    }


def _model(cls: Any, header: dict[str, Any], tensors: Tensors) -> Any:
    """The model that the parts are of, each part checked against the others."""
    parameters = dict(header["parameters"])
    if parameters.get("init", "") is None:
        parameters["init"] = tensors["init"]
    model = cls(**parameters)
    check_parameters(model)
    state = _state(header, tensors)
    n_features, r = state.C.shape
    _demand(r == model.n_components, "its dictionary has another number of components")
    check_init(model.init, r, n_features)
    model._state = state
    residual, energy = header["energies"]
    model._totals = Info(_number(residual), _number(energy))
    model._head = _head(header["head"], tensors, n_features, state.C.dtype)
    if model._head is not None:
        model._seed = _count(header["seed"])
    model.n_features_in_ = n_features
    names = header["feature_names"]
    if names is not None:
        _demand(
            len(names) == n_features and all(type(name) is str for name in names),
            "its feature names do not fit its dictionary",
        )
        model.feature_names_in_ = np.array(names, dtype=object)
    if header["counters"]["n_iter"] is not None:
        model.n_iter_ = _count(header["counters"]["n_iter"])
    return model


def _state(header: dict[str, Any], tensors: Tensors) -> State:
    C, G, S, code = tensors["C"], tensors["G"], tensors["S"], tensors.get("code")
    _demand(C.ndim == 2 and C.dtype in _FLOATS and C.size > 0, "its dictionary is no matrix")
    r = C.shape[1]
    for matrix in (G, S):
        _demand(matrix.shape == (r, r) and matrix.dtype == np.float64, "its parts do not fit")
        _demand(bool((np.diagonal(matrix) >= 0.0).all()), "a negative square")
    _demand(code is None or (code.shape == (r,) and code.dtype == np.float64), "a code of no size")
    scale = _number(header["scale"])
    _demand(scale > 0.0 and math.frexp(scale)[0] == 0.5, "a scale that is no power of two")
    counters = {name: _count(header["counters"][name]) for name in COUNTERS}
    _demand(counters["since"] <= counters["n_seen"], "more rows than it has seen")
    _demand(counters["entries"] <= counters["since"] * len(C), "more entries than its rows have")
    rule = Rule(**header["rule"])
    check_parameters(_RuleOnly(rule))
    numbers: dict[str, Any] = {name: _number(header[name]) for name in NUMBERS}
    _demand(min(numbers.values()) >= 0.0, "a number below zero")
    return State(rule=rule, C=C, G=G, S=S, code=code, scale=scale, **counters, **numbers)


class _RuleOnly:
    """A rule that can be checked as the parameters of a model are."""

    n_components, max_iter, tol, shuffle, init = 1, 1, 0.0, False, "data"

    def __init__(self, rule: Rule) -> None:
        self.__dict__.update(asdict(rule))


def _add_head(head: Any, tensors: Tensors) -> str | None:
    """Add the rows of a young stream to the tensors; return how they are kept."""
    if head is None:
        return None
    if scipy.sparse.issparse(head):
        tensors["head_data"] = head.data
        tensors["head_indices"] = head.indices.astype(np.int64)
        tensors["head_indptr"] = head.indptr.astype(np.int64)
        return "sparse"
    tensors["head"] = head
    return "dense"


def _head(kind: str | None, tensors: Tensors, n_features: int, dtype: np.dtype[Any]) -> Any:
    if kind is None:
        return None
    if kind == "dense":
        rows: NDArray[Any] = tensors["head"]
        _demand(rows.ndim == 2 and rows.shape[1] == n_features, "its first rows do not fit")
        _demand(rows.dtype in _FLOATS and not np.isinf(rows).any(), "its first rows are no numbers")
        return rows
    _demand(kind == "sparse", "its first rows are of no known kind")
    data, indptr = tensors["head_data"], tensors["head_indptr"]
    _demand(data.dtype in _FLOATS and indptr.ndim == 1 and len(indptr) > 0, "no first rows")
    shape = (len(indptr) - 1, n_features)
    matrix = scipy.sparse.csr_matrix((data, tensors["head_indices"], indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def _plain(value: Any) -> Any:
    """A parameter as JSON can hold it."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.random.RandomState):
        return None  # its state has moved on; a fit from here on is not a repetition of the last
    if isinstance(value, np.ndarray | list | tuple):
        return None
    return value


def _count(value: Any) -> int:
    _demand(type(value) is int and value >= 0, "a counter that is no count")
    return int(value)


def _number(value: Any) -> float:
    _demand(type(value) in (int, float) and math.isfinite(value), "a number that is none")
    return float(value)


def _demand(holds: bool, reason: str) -> None:
    if not holds:
        raise ValueError(reason)
