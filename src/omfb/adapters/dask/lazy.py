"""Answers about Dask collections: collections again, of which nothing is computed yet.

Each chunk of rows is answered by itself, by the model as it was when it was asked. So rows in time
know their neighbours in the same chunk only.
"""

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from .sharded import codes_of, energies_of, is_dask, is_spread, needs_one_place, rows_of

__all__ = ["EACH", "LIKE", "Columns", "is_dask", "is_frame", "lazily", "lazy_score"]

LIKE = "like"
"""An answer of the shape of X, a frame if X is one."""
EACH = "each"
"""An answer with one number for each row."""


BY_FEATURES = {"transform": codes_of, "inverse_transform": rows_of}
"""What a dictionary that is spread over a cluster answers, by slices of the features."""


class Columns(NamedTuple):
    """An answer with columns of its own."""

    names: list[str]
    dtype: Any


def is_frame(X: Any) -> bool:
    """Whether a Dask collection is a dataframe."""
    return hasattr(X, "to_dask_array")


def lazily(model: Any, method: str, X: Any, *kinds: Any, **options: Any) -> Any:
    """What a method of a model says of a Dask collection, one collection for each kind.

    Parameters
    ----------
    model : OMFB or OMFBImputer
    method : str
    X : dask.array.Array or dask.dataframe.DataFrame
    *kinds : LIKE, EACH or Columns
        What each answer is.
    **options
        For the method.
    """
    from dask import delayed

    if is_spread(model.learner_):
        if method not in BY_FEATURES:
            raise needs_one_place(f"For `{method}`")
        return BY_FEATURES[method](model.state_in_use(), X)
    frozen = delayed(copy(model), traverse=False)
    call = delayed(_answers, pure=False)
    parts = [call(frozen, method, part, kinds, options) for part in _parts(X)]
    answers = tuple(
        _collection(X, kind, [part[at] for part in parts], model.learner_.dtype)
        for at, kind in enumerate(kinds)
    )
    return answers[0] if len(answers) == 1 else answers


def lazy_score(model: Any, X: Any) -> Any:
    """The score of a Dask collection, as a Dask array of no dimension."""
    import dask.array as da
    from dask import delayed

    if is_spread(model.learner_):
        parts = energies_of(model.state_in_use(), X)
    else:
        frozen = delayed(copy(model), traverse=False)
        parts = [delayed(_judged, pure=False)(frozen, part) for part in _parts(X)]
    return da.from_delayed(delayed(_score)(parts), (), np.float64)


def _parts(X: Any) -> list[Any]:
    """The chunks of rows."""
    if is_frame(X):
        return list(X.to_delayed())
    return list(X.rechunk({1: -1}).to_delayed()[:, 0])


def _answers(model: Any, method: str, rows: Any, kinds: Any, options: Any) -> list[Any]:
    answers = getattr(model, method)(rows, **options) if len(rows) else _nothing(rows, kinds)
    answers = list(answers) if len(kinds) > 1 else [answers]
    if not hasattr(rows, "columns"):
        return answers
    return [_framed(rows, kind, answer) for kind, answer in zip(kinds, answers, strict=True)]


def _nothing(rows: Any, kinds: Any) -> Any:
    """Answers about no rows, which no method takes."""
    answers = [rows if kind == LIKE else _empty(kind) for kind in kinds]
    return answers if len(kinds) > 1 else answers[0]


def _empty(kind: Any) -> Any:
    return np.empty(0) if kind == EACH else np.empty((0, len(kind.names)), kind.dtype)


def _framed(rows: Any, kind: Any, answer: Any) -> Any:
    """An answer about a pandas frame with its index, and its columns or names of its own."""
    import pandas as pd

    if kind == EACH:
        return pd.Series(answer, rows.index)
    if kind != LIKE:
        return pd.DataFrame(answer, rows.index, kind.names)
    if not isinstance(answer, pd.DataFrame):
        answer = pd.DataFrame(answer, rows.index, rows.columns)
    return answer.astype(_types(rows))


def _types(frame: Any) -> dict[Any, Any]:
    """Types that hold what is filled: those of the columns, but floats where they hold integers
    that may be missing."""
    return {
        name: "Float64" if str(kind).startswith(("Int", "UInt")) else kind
        for name, kind in frame.dtypes.items()
    }


def _collection(X: Any, kind: Any, parts: list[Any], dtype: Any) -> Any:
    """The answers about the chunks as one collection."""
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


def _judged(model: Any, rows: Any) -> Any:
    return model.judge(rows)


def _score(parts: list[Any]) -> np.float64:
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return np.float64(total.score)
