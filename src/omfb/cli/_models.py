"""A model from a file, and data that fit it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ._options import open_data


def load_model(path: Path) -> tuple[Any, list[str] | None]:
    """The model, and the names of its features apart from it.

    Rows come to the model in the order of its features already; without names it takes arrays
    as they are.
    """
    from ..estimators.omfb import OMFB

    model = OMFB.load(path)
    names = model.__dict__.pop("feature_names_in_", None)
    model._state = replace(model._state, rule=model._rule())
    return model, None if names is None else [str(name) for name in names]


def open_for(
    model: Any, names: list[str] | None, data: str, columns: str | None, header: bool | None,
    kind: str | None,
) -> Any:  # fmt: skip
    """The data, their columns found by the names of the model's features."""
    wanted = names if columns is None else None
    source = open_data(data, columns=columns, header=header, kind=kind, wanted=wanted)
    check_width(source, model.n_features_in_, "features")
    return source


def check_width(source: Any, expected: int, of_what: str) -> None:
    """Refuse data of another width than the model's."""
    from ..streams import DataError

    if source.n_features != expected:
        raise DataError(
            f"{source.name}: {source.n_features} columns, but the model has {expected} {of_what}. "
            f"Choose the right ones by --columns."
        )


def blocks_of(source: Any, as_stored: bool = False) -> Any:
    """The blocks of a source, in order and finite; with `as_stored`, arrays in their own type."""
    import numpy as np

    from ..streams import rows_per_block

    length = rows_per_block(source.n_features, source.dtype, 1)
    how = {"as_stored": True} if as_stored and hasattr(source, "stored") else {}
    done = 0
    for rows, _ in source.blocks(length, False, np.random.RandomState(0), **how):
        source.check_finite_rows(rows, done)
        done += rows.shape[0]
        yield rows
