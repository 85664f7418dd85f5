"""A model from a file, and data that fit it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._options import ReadingOptions, open_data

if TYPE_CHECKING:
    from ..learner.learner import Learner


def load_model(path: Path) -> "Learner":
    """The learner of a model file or checkpoint, under the rule that its parameters say."""
    return learner_of(load_estimator(path))


def learner_of(model: Any) -> "Learner":
    """The learner of an estimator, under the rule that its parameters say."""
    from ..estimators.parameters import plan_of

    learner: Learner = model.learner_
    plan = plan_of(model, found=learner.rule)
    return learner.under(plan.rule) if plan.engine is learner.engine else learner


def load_estimator(path: Path) -> Any:
    """The estimator of a model file, of the class that the file tells."""
    from ..estimators.imputer import OMFBImputer
    from ..estimators.omfb import OMFB
    from ..persistence import read_model

    fills = read_model(path)[0].get("class") == OMFBImputer.__name__
    return (OMFBImputer if fills else OMFB).load(path)


def allowed_by(model: Any) -> Callable[[Any], Any]:
    """What makes filled values such as an estimator allows."""
    from ..estimators.imputer import OMFBImputer, within_bounds

    return (
        partial(within_bounds, model) if isinstance(model, OMFBImputer) else lambda values: values
    )


def without_outliers(learner: "Learner") -> "Learner":
    """The learner, taking no entry for an outlier from now on."""
    from ..core.factor.state import Model
    from ..learner.learner import Learner

    now = learner.now
    if not isinstance(now.state, Model):
        return learner
    settings = replace(now.state.settings, outliers=False)
    state = learner.engine.with_rule(now.state, settings)
    snapshot = replace(learner.snapshot(), rule=settings, now=replace(now, state=state))
    return Learner.from_snapshot(snapshot)


def header_of(path: Path) -> dict[str, Any]:
    """What a model file says of the estimator: what is written from its learner says the same."""
    from ..persistence import read_model

    header = read_model(path)[0]
    return {name: header[name] for name in ("class", "parameters", "n_iter") if name in header}


def open_for(
    learner: "Learner", data: str, reading: ReadingOptions, quiet: bool = False,
    on_idle: Callable[[], None] | None = None,
) -> Any:  # fmt: skip
    """The data, their columns found by the names of the model's features."""
    width = learner.n_features
    source = open_data(
        data, reading, model_features=learner.feature_names, model_width=width, on_idle=on_idle,
        quiet=quiet,
    )  # fmt: skip
    check_width(source, width, "features")
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
