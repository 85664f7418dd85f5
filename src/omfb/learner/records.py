"""Snapshots to headers and tensors, as model files and checkpoints hold them, and back."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.checks import LARGEST_COUNT
from ..core.engine import Init, Rows
from ..core.engines import ENGINES
from ..core.info import Info
from ..core.require import require
from ..core.weighted import WeightedRows, are_weights
from ..persistence import ModelFileError
from ..persistence.modelfile import Tensors
from ..persistence.records import flatten, plain, unflatten
from .names import Names
from .row_blocks import together
from .snapshot import Learned, Snapshot

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
LARGEST_SEED = 2**64 - 1
# What reading a damaged header can raise.
FAULTS = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


@dataclass(frozen=True, slots=True)
class Parts:
    """The content of a file: a header for JSON, and arrays by their names."""

    header: dict[str, Any]
    tensors: Tensors


def parts_of(snapshot: Snapshot) -> Parts:
    """The parts of a snapshot; a ValueError if they could not be read again."""
    learned = snapshot.learned
    if learned is None:
        raise ValueError("Nothing was learned yet: there is nothing to save.")
    state = None if learned.state is None else snapshot.engine.to_local(learned.state)
    try:
        if state is not None:
            snapshot.engine.check(state)
    except ValueError as error:
        raise ValueError(f"The model cannot be saved: {error}. Fit it again.") from error
    tensors: Tensors = {}
    header = {
        "learner": {
            "engine": snapshot.engine.name,
            "n_components": snapshot.n_components,
            "init": init_parts(snapshot.init, "learner.init", tensors),
            "seed": int(snapshot.seed),
            "feature_names": _names_or_none(snapshot.feature_names),
        },
        "config": None if state is not None else flatten(snapshot.config, "config", tensors),
        "state": None if state is None else flatten(state, "state", tensors),
        "totals": {
            "residual": plain(learned.totals.residual, "residual"),
            "energy": plain(learned.totals.energy, "energy"),
        },
        "head": None if learned.head is None else rows_parts(learned.head, "head", tensors),
    }
    if learned.numbers is not None:
        tensors["head.numbers"] = learned.numbers
    if learned.last:
        tensors["head.last"] = together(learned.last)
        if learned.times is not None:
            tensors["head.times"] = learned.times
    return Parts(header, tensors)


def snapshot_of(parts: Parts) -> Snapshot:
    """The snapshot that the parts hold, each part checked against the others.

    Raises
    ------
    ModelFileError
        If no learner can have had it.
    """
    if "learner" not in parts.header and isinstance(parts.header.get("ratings"), dict):
        raise ModelFileError("a model of ratings: load it by OMFBRecommender.")
    try:
        return _snapshot(parts.header, parts.tensors)
    except FAULTS as error:
        raise not_written_by_omfb(error) from error


def not_written_by_omfb(error: Exception) -> ModelFileError:
    """The error of a damaged file, with the reason in one line."""
    reason = " ".join(str(error).split())[:200]
    return ModelFileError(f"not a model that omfb can have written ({reason}).")


def init_parts(init: Init, name: str, tensors: Tensors) -> str | None:
    """The name of a first dictionary; None, and a tensor, if it is given as an array."""
    if isinstance(init, str):
        return init
    tensors[name] = np.asarray(init, dtype=np.float64)
    return None


def _snapshot(header: dict[str, Any], tensors: Tensors) -> Snapshot:
    about = header["learner"]
    engine = ENGINES[about["engine"]]
    state: Any = None
    if header["state"] is not None:
        state = unflatten(engine.state_type, header["state"], tensors, "state")
        engine.check(state)
        n_features, config = len(state.C), state.config
    else:  # a young stream has only its first rows
        config = unflatten(engine.config_type, header["config"], tensors, "config")
        require(header["head"] in ("dense", "sparse"), "neither a state nor first rows")
        dense = header["head"] == "dense"
        n_features = int(tensors["head"].shape[1] if dense else tensors["head.shape"][1])
    n_components = about["n_components"]
    counted = n_components is None or type(n_components) is int
    most = LARGEST_COUNT if counted and n_components is not None else 1
    require(counted and 1 <= (n_components or 1) <= most, "its number of components")
    if n_components is not None and state is not None:
        require(engine.n_components(state) <= n_components, "its dictionary has another size")
    init = tensors["learner.init"] if about["init"] is None else about["init"]
    require(isinstance(init, np.ndarray) or init in ("data", "random"), "its first dictionary")
    names = about["feature_names"]
    if names is not None:
        fit = len(names) == n_features and all(type(name) is str for name in names)
        require(fit and type(names) is list, "its feature names do not fit its dictionary")
    seed = about["seed"]
    require(type(seed) is int and 0 <= seed <= LARGEST_SEED, "its seed")
    totals = unflatten(_Energies, header["totals"], tensors, "totals")
    require(min(totals.residual, totals.energy) >= 0.0, "energies below zero")
    info = Info(totals.residual, totals.energy)
    require(math.isfinite(info.error), "an infinite error")
    head = None if header["head"] is None else rows_of(header["head"], "head", tensors, n_features)
    numbers = None
    if head is not None and "head.numbers" in tensors:
        numbers = row_numbers(tensors, "head.numbers", head.shape[0])
    learned = Learned(state, info, head, _last(tensors, n_features), _times(tensors), numbers)
    known = None if names is None else Names(names)
    return Snapshot(n_components, config, init, seed, known, engine, learned)


@dataclass(frozen=True)
class _Energies:
    residual: float
    energy: float


def rows_parts(rows: Rows, name: str, tensors: Tensors) -> str:
    """Add rows to the tensors; return how they are held."""
    if isinstance(rows, WeightedRows):
        tensors[f"{name}.weights"] = rows.weights
        if rows.precisions is not None:
            sparse = scipy.sparse.issparse(rows.precisions)
            tensors[f"{name}.precisions"] = rows.precisions.data if sparse else rows.precisions
        rows = rows.rows
    if scipy.sparse.issparse(rows):
        tensors[f"{name}.data"] = rows.data
        tensors[f"{name}.indices"] = rows.indices.astype(np.int64)
        tensors[f"{name}.indptr"] = rows.indptr.astype(np.int64)
        tensors[f"{name}.shape"] = np.array(rows.shape, np.int64)
        return "sparse"
    tensors[name] = rows
    return "dense"


def rows_of(kind: Any, name: str, tensors: Tensors, n_features: int) -> Rows:
    """Rows from the tensors; a ValueError if they cannot be rows."""
    rows, weights = _values_of(kind, name, tensors, n_features), tensors.get(f"{name}.weights")
    if weights is None:
        return rows
    sparse = scipy.sparse.issparse(rows)
    require(_are_weights(weights, rows.shape[:1]), f"weights of {name} that are none")
    precisions = tensors.get(f"{name}.precisions")
    if precisions is not None:
        shape = rows.data.shape if sparse else rows.shape
        require(_are_weights(precisions, shape), f"weights of entries of {name} that are none")
        if sparse:
            precisions = scipy.sparse.csr_array((precisions, rows.indices, rows.indptr), rows.shape)
    return WeightedRows(rows, weights, precisions)


def _are_weights(weights: NDArray[Any], shape: tuple[int, ...]) -> bool:
    fits = weights.shape == shape and weights.dtype == np.float64
    return fits and bool((are_weights(weights) & (weights > 0.0)).all())


def _values_of(kind: Any, name: str, tensors: Tensors, n_features: int) -> Rows:
    if kind == "dense":
        rows: NDArray[Any] = tensors[name]
        require(rows.ndim == 2 and rows.shape[1] == n_features, f"{name} does not fit")
        require(rows.dtype in FLOATS and not np.isinf(rows).any(), f"{name} is not finite")
        return rows
    require(kind == "sparse", f"{name} is neither dense nor sparse")
    data, indptr = tensors[f"{name}.data"], tensors[f"{name}.indptr"]
    require(data.dtype in FLOATS and indptr.ndim == 1 and len(indptr) > 0, f"{name} has no rows")
    shape = (len(indptr) - 1, n_features)
    matrix = scipy.sparse.csr_matrix((data, tensors[f"{name}.indices"], indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def row_numbers(tensors: Tensors, name: str, n_rows: int) -> NDArray[np.int64]:
    """The numbers of some rows."""
    numbers: NDArray[np.int64] = tensors[name]
    require(numbers.dtype == np.int64 and numbers.shape == (n_rows,), f"{name} does not fit")
    require(bool((numbers >= 0).all()), f"{name} below zero")
    return numbers


def _last(tensors: Tensors, n_features: int) -> tuple[Any, ...]:
    if "head.last" not in tensors:
        return ()
    return (rows_of("dense", "head.last", tensors, n_features),)


def _times(tensors: Tensors) -> NDArray[np.float64] | None:
    """When the last rows came."""
    times = tensors.get("head.times")
    if times is not None:
        require("head.last" in tensors and times.shape == tensors["head.last"].shape[:1], "times")
        require(times.dtype == np.float64 and bool(np.isfinite(times).all()), "times that are none")
        require(bool((np.diff(times) >= 0.0).all()), "times that go back")
    return times


def _names_or_none(names: list[str] | None) -> list[str] | None:
    return None if names is None else [str(name) for name in names]
