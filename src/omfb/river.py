"""Models for river (https://riverml.xyz): a transformer, an imputer and an anomaly detector.

They need river: ``pip install 'omfb[river]'``. Rows are dicts; keys may come and go, and a key that
is absent, None or NaN is a missing entry.
"""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from .estimators.factor_analysis import OnlineFactorAnalysis
from .estimators.imputer import OMFBImputer
from .estimators.predictive import PredictiveFactorizer

try:
    from river import base
except ImportError as error:  # pragma: no cover
    raise ImportError("omfb.river needs river: pip install 'omfb[river]'.") from error

__all__ = ["AnomalyDetector", "FactorAnalysis", "Imputer"]

Row = Mapping[Any, Any]
# Rows after which the first dictionary is final: until then, each answer makes it anew.
WARM_UP = 100
TEXT = frozenset({str})


class _Model:
    """What the models share: an estimator that learns from dicts."""

    def __init__(
        self,
        n_components: int | None = None,
        forget_factor: float | str = 1.0,
        seed: int | None = None,
    ) -> None:
        self.n_components = n_components
        self.forget_factor = forget_factor
        self.seed = seed
        self._model = self._new_model()

    def _new_model(self) -> PredictiveFactorizer:
        return OnlineFactorAnalysis(
            self.n_components, scale=True, noise="diagonal", forget_factor=self.forget_factor,
            temporal=False, new_features="add", random_state=self.seed,
        )  # fmt: skip

    def learn_one(self, x: Row) -> None:
        """Learn from a row."""
        self._learn([x])

    def learn_many(self, X: Any) -> None:
        """Learn from the rows of a frame."""
        self._learn(_records(X))

    @property
    def _fitted(self) -> bool:
        return "_learner" in self._model.__dict__

    def _learn(self, rows: list[Row]) -> None:
        named = [_by_text(row) for row in rows if row]
        if not named:
            return
        model = self._model
        learner = model.__dict__.get("_learner")
        if learner is None or any(not learner.names.has_all(row.keys()) for row in named):
            # The order of keys must not matter, and it is that of new features.
            named = [dict(sorted(row.items())) for row in named]
        young = learner is None or learner.n_seen < WARM_UP
        model.partial_fit(named if len(named) > 1 else named[0])
        if young and model.n_samples_seen_ >= WARM_UP:
            model.learner_.close_head()


def _by_text(row: Row) -> Row:
    """The row with text for keys, as features have names."""
    if TEXT.issuperset(map(type, row)):
        return row
    return {str(key): value for key, value in row.items()}


def _records(X: Any) -> list[Row]:
    """The rows of a frame as dicts."""
    records: list[Row] = X.to_dict("records")
    return records


class FactorAnalysis(_Model, base.MiniBatchTransformer):  # type: ignore[misc]
    """Online factor analysis: rows of any width become codes of a few numbers.

    Parameters
    ----------
    n_components
        Upper bound on the number of components; None is chosen by the number of features.
    forget_factor
        Weight that the past keeps with each row; "auto" forgets when a change is noticed.
    seed
        Of what is drawn at random.

    Examples
    --------
    >>> from omfb.river import FactorAnalysis
    >>> model = FactorAnalysis(1, seed=0)
    >>> for t in range(50):
    ...     model.learn_one({"a": t % 7, "b": 2 * (t % 7), "c": -(t % 7)})
    >>> list(model.transform_one({"a": 3, "c": -3}))
    ['factor0']
    """

    def transform_one(self, x: Row) -> dict[str, float]:
        """The code of a row; nothing before anything was learned."""
        return self._codes([x])[0]

    def transform_many(self, X: Any) -> Any:
        """The codes of the rows of a frame, as a frame."""
        return type(X)(self._codes(_records(X)), index=X.index)

    def _codes(self, rows: list[Row]) -> list[dict[str, float]]:
        if not self._fitted:
            return [{} for _ in rows]
        array = self._model.rows_by_name([_by_text(row) for row in rows])
        codes = self._model.learner_.encode(array, self._model.current_config())
        return [{f"factor{i}": value for i, value in enumerate(code)} for code in codes.tolist()]


class Imputer(_Model, base.MiniBatchTransformer):  # type: ignore[misc]
    """Fills missing entries of rows from their other entries.

    Entries that are not numbers are passed through.

    Parameters
    ----------
    n_components
        Upper bound on the number of components; None is chosen by the number of features.
    forget_factor
        Weight that the past keeps with each row; "auto" forgets when a change is noticed.
    seed
        Of what is drawn at random.

    Examples
    --------
    >>> from omfb.river import Imputer
    >>> model = Imputer(seed=0)
    >>> for t in range(60):
    ...     model.learn_one({"a": t % 7, "b": 2 * (t % 7) + 1, "c": -(t % 7)})
    >>> round(model.transform_one({"a": 3, "b": None, "c": -3})["b"])
    7
    """

    def _new_model(self) -> PredictiveFactorizer:
        return OMFBImputer(
            self.n_components, forget_factor=self.forget_factor, temporal=False,
            new_features="add", random_state=self.seed,
        )  # fmt: skip

    def transform_one(self, x: Row) -> dict[Any, Any]:
        """The row with its missing entries filled, also those of known features it does not have.

        Before anything was learned, the row as it is.
        """
        return self._filled([x])[0]

    def transform_many(self, X: Any) -> Any:
        """The rows of a frame with their missing entries filled, as a frame."""
        return type(X)(self._filled(_records(X)), index=X.index)

    def _filled(self, rows: list[Row]) -> list[dict[Any, Any]]:
        if not self._fitted:
            return [dict(row) for row in rows]
        filled = self._model.complete([_by_text(row) for row in rows])
        return [_with_keys(row, each) for row, each in zip(rows, filled, strict=True)]


def _with_keys(row: Row, filled: dict[str, Any]) -> dict[Any, Any]:
    """The filled row with the keys of the given one, which come first."""
    if TEXT.issuperset(map(type, row)):
        return filled
    rest = dict(filled)
    given = {key: rest.pop(str(key)) for key in row}
    return {**given, **rest}


class AnomalyDetector(_Model, base.AnomalyDetector):  # type: ignore[misc]
    """Scores rows by how unlikely they are under the factor model.

    The score is the negative log-likelihood of the observed entries, for each of them; before
    anything was learned it is 0.

    Parameters
    ----------
    n_components
        Upper bound on the number of components; None is chosen by the number of features.
    forget_factor
        Weight that the past keeps with each row; "auto" forgets when a change is noticed.
    seed
        Of what is drawn at random.

    Examples
    --------
    >>> from omfb.river import AnomalyDetector
    >>> model = AnomalyDetector(seed=0)
    >>> for t in range(60):
    ...     model.learn_one({"a": t % 7, "b": 2 * (t % 7) + 1, "c": -(t % 7)})
    >>> usual, unusual = ({"a": 3, "b": b, "c": -3} for b in (7, 2))
    >>> model.score_one(unusual) > model.score_one(usual)
    True
    """

    def score_one(self, x: Row) -> float:
        """How unlikely the row is: higher is more so."""
        if not self._fitted:
            return 0.0
        array = self._model.rows_by_name([_by_text(x)])
        n_entries = int(np.count_nonzero(~np.isnan(array)))
        likelihood = self._model.learner_.log_likelihood(array, self._model.current_config())
        score = -float(likelihood[0]) / max(n_entries, 1)
        return score if math.isfinite(score) else 0.0
