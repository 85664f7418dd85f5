"""A model from a file, and data that fit it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._errors import UsageError, say
from ._estimators import DEFAULT, estimators
from ._options import ReadingOptions, open_data

if TYPE_CHECKING:
    from ..estimators.base import BaseFactorizer
    from ..formats import TableSource
    from ..learner.learner import Learner

# What the header of a model file says of the estimator.
KEPT = ("class", "parameters", "n_iter")


@dataclass(frozen=True, slots=True)
class Model:
    """What a model file or checkpoint holds.

    Attributes
    ----------
    estimator : BaseFactorizer
        Of the class that the file names.
    learner : Learner
        The estimator's learner, under the config that its parameters describe.
    missing : str or None
        What stood for a missing value in the data of the fit, as ``--missing`` takes it.
    """

    estimator: "BaseFactorizer"
    learner: "Learner"
    missing: str | None

    @property
    def allowed(self) -> Callable[[Any], Any]:
        """Makes predicted values such as the estimator's parameters allow them."""
        from ..estimators.predictive import PredictiveFactorizer

        estimator = self.estimator
        if isinstance(estimator, PredictiveFactorizer):
            return estimator.allowed
        return lambda values: values

    def out_of_time(self) -> "Learner":
        """The learner without what rows have to do with those before them."""
        config: Any = self.learner.config
        return self.learner.with_config(replace(config, temporal=False))


def load_model(path: Path, *, robust: bool = True) -> Model:
    """The model of a file.

    Parameters
    ----------
    path : Path
    robust : bool, default=True
        False is to take no entry for an outlier, whatever the model says.
    """
    estimator = load_estimator(path)
    if not robust:
        if "robust" not in estimator.get_params():
            raise UsageError("--no-robust: a model of --estimator omfb takes nothing for outliers")
        estimator.set_params(robust=False)
    learner = estimator.learner_.with_config(estimator.current_config())
    missing = missing_of(header_of(path), estimator.get_params().get("missing_values"))
    return Model(estimator.adopt(learner), learner, missing)


def load_estimator(path: Path) -> "BaseFactorizer":
    """The estimator of a model file, of the class that the file names."""
    classes = estimators()
    by_name = {cls.__name__: cls for cls in classes.values()}
    name = str(header_of(path).get("class"))
    if name == "OMFBRecommender":
        raise UsageError(f"{path}: a model of ratings, which `omfb recommend` and `omfb info` take")
    return by_name.get(name, classes[DEFAULT]).load(path)


def header_of(path: Path) -> dict[str, Any]:
    """What a model file says besides its learner: files that are written from it say the same."""
    from ..persistence import read_model

    header = read_model(path)[0]
    kept = {name: value for name, value in header.items() if name in KEPT}
    missing = _missing(header)
    return {**kept, "reading": {"missing": missing}} if missing else kept


def lineage_of(path: Path) -> tuple[str, ...]:
    """The models that a model file has gone on from, as it was written."""
    from ..persistence import read_model

    return tuple(read_model(path)[0].get("lineage", ()))


def missing_of(header: dict[str, Any], missing_values: Any = None) -> str | None:
    """What ``fit --missing`` was given, by `header_of`, and the model's `missing_values`."""
    from ..estimators.sentinels import MissingValues

    words = list(header["reading"]["missing"]) if "reading" in header else []
    codes = MissingValues.of(missing_values)
    if codes.by_column:
        raise UsageError(
            "the model has missing_values for single columns, which commands do not have: replace "
            "these numbers by empty cells, and save the model without"
        )
    known = {number for word in words if (number := _number(word)) is not None}
    words += [f"{number:g}" for number in codes.everywhere if number not in known]
    return ",".join(words) or None


def _number(word: str) -> float | None:
    try:
        return float(word)
    except ValueError:
        return None


def _missing(header: dict[str, Any]) -> list[str]:
    """The words for a missing value in a model file, or in the fingerprint of a checkpoint."""
    reading, source = header.get("reading"), header.get("source")
    words = reading.get("missing") if isinstance(reading, dict) else None
    if words is None and isinstance(source, dict) and isinstance(source.get("cells"), list):
        words = source["cells"][2:]  # after the marks: see `Reading.cells`
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        return []
    return words


def open_for(
    model: Model, data: str, reading: ReadingOptions, quiet: bool = False,
    on_idle: Callable[[], None] | None = None,
) -> "TableSource":  # fmt: skip
    """The data, their columns found by the names of the model's features."""
    learner = model.learner
    if reading.missing is None and model.missing is not None:
        reading = reading._replace(missing=model.missing)
        if not quiet:
            say(f"omfb: {model.missing} means missing, as in the fit of the model (--missing)")
    width = learner.n_features
    source = open_data(
        data, reading, model_features=learner.feature_names, model_width=width,
        model_times=times_column(learner), on_idle=on_idle, quiet=quiet,
    )  # fmt: skip
    check_width(source, width, "features")
    return source


def times_column(learner: "Learner") -> str | None:
    """The column that held the times of the model's rows, if they had any."""
    index = getattr(learner.config, "index", None)
    return None if index is None else index.name


def check_width(source: "TableSource", expected: int, of_what: str) -> None:
    """Refuse data of another width than the model's."""
    from ..streams import DataError

    if source.n_features != expected:
        raise DataError(
            f"{source.name}: {source.n_features} columns, but the model has {expected} {of_what}. "
            f"Choose the right ones.", "columns",
        )  # fmt: skip


def blocks_of(source: "TableSource") -> Iterator[Any]:
    """The blocks of a source, in order and finite."""
    for rows, _ in source.in_order():
        yield rows
