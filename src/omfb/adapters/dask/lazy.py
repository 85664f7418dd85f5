"""Methods of a model applied to Dask collections: collections again, computed when needed.

The model as it is at the call is applied to each chunk of rows separately. So a temporal model
fills rows from their neighbours in the same chunk only.
"""

from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np

from ...core.info import Info
from ...learner.learner import Learner
from .sharded import codes_of, energies_of, is_dask, is_sharded, needs_one_place, rows_of

__all__ = ["EACH", "LIKE", "Columns", "is_dask", "is_frame", "lazily", "lazy_score"]

LIKE = "like"
"""A result of the shape of X, a frame if X is one."""
EACH = "each"
"""A result with one number for each row."""


BY_FEATURES = {"transform": codes_of, "inverse_transform": rows_of}
"""Methods of a model whose dictionary is sharded over a cluster."""


class Columns(NamedTuple):
    """A result with columns of its own."""

    names: list[str]
    dtype: Any


def is_frame(X: Any) -> bool:
    """Whether a Dask collection is a dataframe."""
    return hasattr(X, "to_dask_array")


class FittedModel(Protocol):
    """An estimator, as far as Dask collections need it."""

    @property
    def learner_(self) -> Learner:
        """The fitted learner."""

    def current_state(self) -> Any:
        """The state of the engine, under the parameters as they are."""

    def score_held_out(self, X: Any) -> Info:
        """Energies of held-out entries and of their errors."""


def lazily(model: FittedModel, method: str, X: Any, *kinds: Any, **options: Any) -> Any:
    """The results of a method on a Dask collection, one collection for each kind.

    Parameters
    ----------
    model : FittedModel
    method : str
    X : dask.array.Array or dask.dataframe.DataFrame
    *kinds : LIKE, EACH or Columns
        What each result is.
    **options
        For the method.
    """
    from dask import delayed

    if is_sharded(model.learner_):
        if method not in BY_FEATURES:
            raise needs_one_place(f"For `{method}`")
        return BY_FEATURES[method](model.current_state(), X)
    frozen = delayed(copy(model), traverse=False)
    call = delayed(_results, pure=False)
    parts = [call(frozen, method, part, kinds, options) for part in _parts(X)]
    results = tuple(
        _collection(X, kind, [part[at] for part in parts], model.learner_.dtype)
        for at, kind in enumerate(kinds)
    )
    return results[0] if len(results) == 1 else results


def lazy_score(model: FittedModel, X: Any) -> Any:
    """The score of a Dask collection, as a Dask array of no dimension."""
    import dask.array as da
    from dask import delayed

    if is_sharded(model.learner_):
        parts = energies_of(model.current_state(), X)
    else:
        frozen = delayed(copy(model), traverse=False)
        parts = [delayed(_scored, pure=False)(frozen, part) for part in _parts(X)]
    return da.from_delayed(delayed(_score)(parts), (), np.float64)


def _parts(X: Any) -> list[Any]:
    """The chunks of rows."""
    if is_frame(X):
        return list(X.to_delayed())
    return list(X.rechunk({1: -1}).to_delayed()[:, 0])


def _results(model: FittedModel, method: str, rows: Any, kinds: Any, options: Any) -> list[Any]:
    results = getattr(model, method)(rows, **options) if len(rows) else _nothing(rows, kinds)
    results = list(results) if len(kinds) > 1 else [results]
    if not hasattr(rows, "columns"):
        return results
    return [_framed(rows, kind, result) for kind, result in zip(kinds, results, strict=True)]


def _nothing(rows: Any, kinds: Any) -> Any:
    """Results for no rows, which no method takes."""
    results = [rows if kind == LIKE else _empty(kind) for kind in kinds]
    return results if len(kinds) > 1 else results[0]


def _empty(kind: Any) -> Any:
    return np.empty(0) if kind == EACH else np.empty((0, len(kind.names)), kind.dtype)


def _framed(rows: Any, kind: Any, result: Any) -> Any:
    """A result for a pandas frame with its index, and its columns or names of its own."""
    import pandas as pd

    if kind == EACH:
        return pd.Series(result, rows.index)
    if kind != LIKE:
        return pd.DataFrame(result, rows.index, kind.names)
    if not isinstance(result, pd.DataFrame):
        result = pd.DataFrame(result, rows.index, rows.columns)
    return result.astype(_types(rows))


def _types(frame: Any) -> dict[Any, Any]:
    """Types that hold what is filled: those of the columns, but floats where they hold integers
    that may be missing."""
    return {
        name: "Float64" if str(kind).startswith(("Int", "UInt")) else kind
        for name, kind in frame.dtypes.items()
    }


def _collection(X: Any, kind: Any, parts: list[Any], dtype: Any) -> Any:
    """The results of the chunks as one collection."""
    if is_frame(X):
        import dask.dataframe as dd
        from dask.dataframe.dispatch import make_meta

        rows = make_meta(X)
        meta = _framed(rows, kind, rows if kind == LIKE else _empty(kind))
        return dd.from_delayed(parts, meta=meta, divisions=X.divisions, verify_meta=False)
    import dask.array as da

    if kind == LIKE:
        shape: tuple[int, ...] = (X.shape[1],)
    else:
        shape, dtype = _empty(kind).shape[1:], _empty(kind).dtype
    pieces = [
        da.from_delayed(part, (length, *shape), dtype)
        for part, length in zip(parts, X.chunks[0], strict=True)
    ]
    return da.concatenate(pieces)


def _scored(model: FittedModel, rows: Any) -> Info:
    return model.score_held_out(rows)


def _score(parts: list[Any]) -> np.float64:
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return np.float64(total.score)
