"""A snapshot as a header and tensors, as model files and checkpoints hold it, and back."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..core.checks import LARGEST_COUNT
from ..core.engine import Init
from ..core.engines import ENGINES
from ..core.info import Info
from ..core.require import require
from ..persistence import ModelFileError
from ..persistence.modelfile import Tensors
from ..persistence.records import flatten, plain, unflatten
from .row_blocks import together
from .snapshot import Learned, Snapshot

FLOATS = (np.dtype(np.float32), np.dtype(np.float64))
LARGEST_SEED = 2**64 - 1
# What reading a header that means nothing can raise.
FAULTS = (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError)


@dataclass(frozen=True, slots=True)
class Parts:
    """What a file holds: a header that JSON can hold, and arrays by their names."""

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
        "head": _head_parts(learned.head, tensors),
    }
    if learned.last:
        tensors["head.last"] = together(learned.last)
    return Parts(header, tensors)


def snapshot_of(parts: Parts) -> Snapshot:
    """The snapshot that the parts are of, each part checked against the others.

    Raises
    ------
    ModelFileError
        If they are of none.
    """
    try:
        return _snapshot(parts.header, parts.tensors)
    except FAULTS as error:
        raise not_written_by_omfb(error) from error


def not_written_by_omfb(error: Exception) -> ModelFileError:
    """The error that says so, with the reason in one line."""
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
    else:  # of a young stream the first rows are all that is known
        config = unflatten(engine.config_type, header["config"], tensors, "config")
        require(header["head"] in ("dense", "sparse"), "neither a state nor first rows")
        dense = header["head"] == "dense"
        n_features = int(tensors["head"].shape[1] if dense else tensors["head.shape"][1])
    n_components = about["n_components"]
    known = n_components is None or type(n_components) is int
    most = LARGEST_COUNT if known and n_components is not None else 1
    require(known and 1 <= (n_components or 1) <= most, "a number of components that is none")
    if n_components is not None and state is not None:
        require(engine.n_components(state) <= n_components, "its dictionary has another size")
    init = tensors["learner.init"] if about["init"] is None else about["init"]
    require(isinstance(init, np.ndarray) or init in ("data", "random"), "no such start")
    names = about["feature_names"]
    if names is not None:
        fit = len(names) == n_features and all(type(name) is str for name in names)
        require(fit and type(names) is list, "its feature names do not fit its dictionary")
    seed = about["seed"]
    require(type(seed) is int and 0 <= seed <= LARGEST_SEED, "a seed that is none")
    totals = unflatten(_Energies, header["totals"], tensors, "totals")
    require(min(totals.residual, totals.energy) >= 0.0, "energies below zero")
    info = Info(totals.residual, totals.energy)
    require(math.isfinite(info.error), "an error beyond all numbers")
    learned = Learned(
        state,
        info,
        _head(header["head"], tensors, n_features),
        _last(tensors, n_features),
    )
    return Snapshot(n_components, config, init, seed, names, engine, learned)


@dataclass(frozen=True)
class _Energies:
    residual: float
    energy: float


def _head_parts(head: Any, tensors: Tensors) -> str | None:
    """Add the rows of a young stream to the tensors; return how they are kept."""
    if head is None:
        return None
    if scipy.sparse.issparse(head):
        tensors["head.data"] = head.data
        tensors["head.indices"] = head.indices.astype(np.int64)
        tensors["head.indptr"] = head.indptr.astype(np.int64)
        tensors["head.shape"] = np.array(head.shape, np.int64)
        return "sparse"
    tensors["head"] = head
    return "dense"


def _head(kind: Any, tensors: Tensors, n_features: int) -> Any:
    if kind is None:
        return None
    if kind == "dense":
        rows: NDArray[Any] = tensors["head"]
        require(rows.ndim == 2 and rows.shape[1] == n_features, "its first rows do not fit")
        require(rows.dtype in FLOATS and not np.isinf(rows).any(), "its first rows are no numbers")
        return rows
    require(kind == "sparse", "its first rows are of no known kind")
    data, indptr = tensors["head.data"], tensors["head.indptr"]
    require(data.dtype in FLOATS and indptr.ndim == 1 and len(indptr) > 0, "no first rows")
    shape = (len(indptr) - 1, n_features)
    matrix = scipy.sparse.csr_matrix((data, tensors["head.indices"], indptr), shape=shape)
    matrix.check_format(full_check=True)
    return matrix


def _last(tensors: Tensors, n_features: int) -> tuple[Any, ...]:
    rows = tensors.get("head.last")
    if rows is None:
        return ()
    require(rows.ndim == 2 and rows.shape[1] == n_features, "its last rows do not fit")
    require(rows.dtype in FLOATS and not np.isinf(rows).any(), "its last rows are no numbers")
    return (rows,)


def _names_or_none(names: list[str] | None) -> list[str] | None:
    return None if names is None else [str(name) for name in names]
