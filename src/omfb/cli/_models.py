"""A model from a file, and data that fit it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._options import open_data

if TYPE_CHECKING:
    from ..learner.learner import Learner


def load_model(path: Path) -> "Learner":
    """The learner of a model file or checkpoint, under the rule that its parameters say."""
    from ..estimators.omfb import OMFB
    from ..estimators.parameters import rule_of

    model = OMFB.load(path)
    return model.learner_.under(rule_of(model))


def header_of(path: Path) -> dict[str, Any]:
    """What a model file says of the estimator: what is written from its learner says the same."""
    from ..persistence import read_model

    header = read_model(path)[0]
    return {name: header[name] for name in ("class", "parameters", "n_iter")}


def open_for(
    learner: "Learner", data: str, columns: str | None, header: bool | None, kind: str | None
) -> Any:
    """The data, their columns found by the names of the model's features."""
    wanted = learner.feature_names if columns is None else None
    source = open_data(data, columns=columns, header=header, kind=kind, wanted=wanted)
    check_width(source, learner.n_features, "features")
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
