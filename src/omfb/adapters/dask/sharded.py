"""A dictionary that is sharded over a cluster: a state whose C is a Dask array.

Dask collections are coded and scored lazily and by slices of the features: only sums over them, r
numbers for each row, are brought together. Arrays are computed at once.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from ...core.broyden.engine import BroydenEngine
from ...core.broyden.penalties import Quadratic, penalty_of
from ...core.broyden.sharded import without_features
from ...core.broyden.smooth_codes import chain_one
from ...core.broyden.state import State
from ...core.engine import Numbers, Rows, Times
from ...core.evidence import Evidence
from ...core.info import Info
from ...core.linalg.rows import Matrix
from ...core.scoring import FOLDS, folds
from ...learner.learner import Learner
from .futures import local_array

# Share of the free memory that a dictionary may take when it is gathered.
MEMORY_SHARE = 0.5


def is_dask(X: Any) -> bool:
    """Whether X is a Dask array or dataframe; Dask is not imported to know it."""
    return type(X).__module__.partition(".")[0] == "dask"


def is_sharded(learner: Learner) -> bool:
    """Whether the dictionary of a learner is sharded over a cluster."""
    return isinstance(learner.engine, ShardedBroyden)


def sharded(slices: Sequence[Any], widths: Sequence[int], r: int, dtype: np.dtype[Any]) -> Any:
    """The dictionary whose slices are the results of futures, as a Dask array."""
    import dask.array as da

    name = f"dictionary-{slices[0].key}"
    graph = {(name, at, 0): each for at, each in enumerate(slices)}
    return da.Array(graph, name, chunks=(tuple(widths), (r,)), dtype=dtype)


def slices_of(C: Any) -> list[Any]:
    """The futures of the slices of a sharded dictionary."""
    return [C.dask[C.name, at, 0] for at in range(C.numblocks[0])]


# -- answers ----------------------------------------------------------------------------------


def codes_of(state: State, X: Any) -> Any:
    """Codes of the rows of a Dask array, as a Dask array."""
    import dask.array as da

    sums = da.matmul(_laid(state, X), state.C)
    small, dtype = without_features(state), state.C.dtype
    return sums.map_blocks(solved, small, dtype=dtype, meta=np.empty((0, 0), dtype))


def rows_of(state: State, codes: Any) -> Any:
    """Rows from codes, both Dask arrays; the rows are cut along their columns as the dictionary."""
    kind = state.C.dtype.type
    rows = codes.astype(kind) @ state.C.T
    return rows if state.scale == 1.0 else rows * kind(state.scale)


def energies_of(state: State, X: Any) -> list[Any]:
    """Energies of held-out entries and of their errors, of each chunk of rows (delayed).

    As `score_held_out_features`, but for rounding: with b, n and G over the held-out features, the
    residual energy of a row is n − 2 bᵀx + xᵀ G x.
    """
    import dask.array as da
    from dask import delayed

    C: Any = state.C
    m, r = C.shape
    n_folds = min(FOLDS, m)
    X = _laid(state, X)
    fold = da.from_delayed(delayed(folds)(m), (m,), np.int64).rechunk(C.chunks[:1])
    parts = da.blockwise(
        hidden_addends, "ijk", X, "ij", C, "jl", fold, "j", n_folds=n_folds,
        new_axes={"k": 2 * r + 1}, adjust_chunks={"j": 1}, concatenate=True, dtype=np.float64,
    )  # fmt: skip
    sums = parts.sum(axis=1)
    pieces = zip(C.to_delayed()[:, 0], fold.to_delayed(), strict=True)
    grams = delayed(sum)([delayed(fold_grams)(*piece, n_folds) for piece in pieces])
    small = delayed(without_features(state), traverse=False)
    return [delayed(energies)(small, part, grams) for part in sums.to_delayed()[:, 0]]


def solved(sums: NDArray[Any], state: State) -> NDArray[Any]:
    """Codes from Cᵀy of each row."""
    return _codes(state, state.G, sums).astype(state.C.dtype, copy=False)


def hidden_addends(
    Y: NDArray[Any], C: NDArray[Any], fold: NDArray[np.int64], n_folds: int
) -> Matrix:
    """What a slice adds: Cᵀy over the observed and over the held-out features, yᵀy over these."""
    hidden = fold == (np.arange(len(Y)) % n_folds)[:, None]
    Y, C = Y.astype(np.float64), C.astype(np.float64)
    away = np.where(hidden, Y, 0.0)
    squares = np.square(away).sum(axis=1, keepdims=True)
    return np.hstack([np.where(hidden, 0.0, Y) @ C, away @ C, squares])[:, None, :]


def fold_grams(C: NDArray[Any], fold: NDArray[np.int64], n_folds: int) -> Matrix:
    """CᵀC over the features of each part."""
    parts = (C[fold == number].astype(np.float64) for number in range(n_folds))
    return np.array([part.T @ part for part in parts])


def energies(state: State, sums: Matrix, grams: Matrix) -> Info:
    """Energies of held-out entries of rows."""
    r = state.C.shape[1]
    total = Info(0.0, 0.0)
    for number, gram in enumerate(grams):
        shown, hidden, squares = np.split(sums[number :: len(grams)], [r, 2 * r], axis=1)
        X = _codes(state, state.G - gram, shown)
        residuals = squares[:, 0] - 2 * (hidden * X).sum(axis=1) + ((X @ gram) * X).sum(axis=1)
        total = total.plus(Info(float(np.maximum(residuals, 0.0).sum()), float(squares.sum())))
    return total


def _codes(state: State, G: Matrix, sums: NDArray[Any]) -> Matrix:
    if not np.isfinite(sums).all():
        raise ValueError(
            "X contains missing or infinite entries, or overflows: a dictionary that is sharded "
            "over workers codes complete rows. To code others, save the model and load it: then "
            "its dictionary is in one place."
        )
    penalty, P = penalty_of(state), sums.astype(np.float64)
    if isinstance(penalty, Quadratic) and penalty.smooth > 0.0 and len(P):
        return chain_one(penalty, G[None], P, None)
    return penalty.codes(G, P)


def _laid(state: State, X: Any) -> Any:
    """The rows in the state's type and units, cut along their columns as the dictionary is."""
    import dask.array as da

    C: Any = state.C
    m, widths, kind = len(C), C.chunks[0], C.dtype.type
    if X.ndim != 2 or X.shape[1] != m:
        raise ValueError(
            f"X has {X.shape[-1]} features, but the model has {m}. Give an array of shape "
            f"(n_samples, {m})."
        )
    if not is_dask(X):
        X = da.from_array(X, chunks=(-1, widths))
    elif hasattr(X, "to_dask_array"):
        X = X.to_dask_array()
    X = X.rechunk({1: widths}).astype(kind)
    return X if state.scale == 1.0 else X * kind(1.0 / state.scale)


class ShardedBroyden(BroydenEngine):
    """The paper's algorithm with a sharded dictionary: it codes rows, and learns no more."""

    def encode(self, state: State, rows: Rows) -> Matrix:
        """See `Engine.encode`."""
        return np.asarray(codes_of(state, rows))

    def decode(self, state: State, codes: Matrix) -> Matrix:
        """See `Engine.decode`."""
        import dask.array as da

        return np.asarray(rows_of(state, da.from_array(codes)))

    def score_held_out(self, state: State, rows: Rows) -> Info:
        """See `Engine.score_held_out`."""
        return energies_of(state, rows)[0].compute().sound()

    def components(self, state: State) -> Any:
        """See `Engine.components`: a Dask array."""
        return state.C.T * state.C.dtype.type(state.scale)

    def to_local(self, state: State) -> State:
        """See `Engine.to_local`: gathered, if there is enough memory."""
        import psutil

        size = state.C.nbytes
        if size > MEMORY_SHARE * psutil.virtual_memory().available:
            raise ValueError(
                f"The dictionary is sharded over the workers and has {size / 1e9:.1f} GB, more "
                f"than fits into memory here. Let the workers write it: "
                f"dask.array.to_npy_stack(folder, model.components_, axis=1)."
            )
        return replace(state, C=local_array(state.C))

    def predict(self, state: State, rows: Rows, *, std: bool, times: Times = None) -> NoReturn:
        """See `Engine.predict`."""
        raise needs_one_place("To fill rows")

    def step(self, state: State, rows: Rows, *, reuse: bool, numbers: Numbers = None) -> NoReturn:
        """See `Engine.step`."""
        raise needs_one_place("To continue learning")

    def evidence(self, start: State, part: State) -> Evidence:
        """See `Engine.evidence`."""
        raise needs_one_place("To merge models")


def needs_one_place(what: str) -> ValueError:
    """The error of what a sharded dictionary cannot do."""
    return ValueError(
        f"{what}, the dictionary must be in one place, and it is sharded over the workers of a "
        f"cluster. Save the model and load it, or fit to X.rechunk({{1: -1}})."
    )


SHARDED = ShardedBroyden()
