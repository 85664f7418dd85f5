"""A model from a file, and data that fit it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from ._options import ReadingOptions, open_data


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
    model: Any, names: list[str] | None, data: str, reading: ReadingOptions, quiet: bool = False,
    on_idle: Any = None,
) -> Any:  # fmt: skip
    """The data, their columns found by the names of the model's features."""
    width = model.n_features_in_
    source = open_data(
        data, reading, model_features=names, model_width=width, on_idle=on_idle, quiet=quiet
    )
    check_width(source, model.n_features_in_, "features")
    return source


def check_width(source: Any, expected: int, of_what: str) -> None:
    """Refuse data of another width than the model's."""
    from ..streams import DataError

    if source.n_features != expected:
        raise DataError(
            f"{source.name}: {source.n_features} columns, but the model has {expected} {of_what}. "
            f"Choose the right ones.", "columns",
        )  # fmt: skip


def blocks_of(source: Any) -> Any:
    """The blocks of a source, in order and finite."""
    for rows, _ in source.in_order():
        yield rows
