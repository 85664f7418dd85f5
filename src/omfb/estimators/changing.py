"""Features that come and go: names that rows bring for the first time, and silent ones."""

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..adapters.dask.lazy import is_dask
from ..core.factor.engine import FactorEngine
from ..core.factor.restrict import FEW_OF, FEWEST_FEATURES
from ..learner.learner import Learner
from ..learner.names import Names
from .base import BaseFactorizer
from .frames import is_frame
from .parameters import checked_drop_after, checked_new_features
from .rows import are_named_rows, as_mappings, entry, is_row, numeric_names
from .validation import first_rows
from .warn import warn
from .weights import Weights

# Silent features are looked for after one in so many of `drop_after` rows.
DROPS = 8


class ChangingFeaturesFactorizer(BaseFactorizer):
    """An estimator to which `partial_fit` adds features, and from which it drops silent ones."""

    _engine: ClassVar[FactorEngine]

    new_features: str | None
    drop_after: int | None

    def _are_few_entries(self, learner: Learner, rows: list[Mapping[Any, Any]]) -> bool:
        m = learner.n_features
        few = m >= FEWEST_FEATURES and FEW_OF * sum(map(len, rows)) <= len(rows) * m
        return few and learner.takes_sparse_rows

    def _any_rows(self, learner: Learner, X: Any, *, learn: bool = False) -> Any:
        if learn and is_frame(X) and not is_dask(X) and learner.names is not None:
            choice = checked_new_features(self.new_features)
            if choice in ("add", "ignore"):
                return self._frame_rows(learner, X, add=choice == "add")
        return super()._any_rows(learner, X, learn=learn)

    def _frame_rows(self, learner: Learner, X: Any, *, add: bool) -> Any:
        """The rows of a frame whose columns are matched by name; those that are absent are missing.

        New ones become features, or are left out.
        """
        found = first_rows(self._frame_features(learner, X), type(self).__name__)
        given, names = found.feature_names, learner.names
        if given is None or names is None:  # names that are no text
            return self._rows(learner, X)
        if len(set(given)) < len(given):
            raise ValueError("X has two columns of the same name. Names must be unique.")
        new = [name for name in given if names.position(name) is None]
        if new and add:
            learner.add_features(new)
            names = learner.names
            assert names is not None
        at = [names.position(name) for name in given]
        rows = np.full((len(found.rows), len(names)), np.nan, found.rows.dtype)
        known = [position is not None for position in at]
        rows[:, [position for position in at if position is not None]] = found.rows[:, known]
        return rows

    def _frame_features(self, learner: Learner, X: Any) -> Any:
        """The columns of a frame that are features, or may become some."""
        return X

    def _new_names(self, unknown: dict[Any, Any], names: Names, learn: bool) -> list[str]:
        choice = checked_new_features(self.new_features)
        if choice == "error":
            return super()._new_names(unknown, names, learn)
        if choice == "ignore" or not learn:  # answers cannot use what was never learned
            return []
        new = numeric_names([unknown], skip_text=self._skips_text)
        if choice is None and not self.learner_.cache.get("told of new features"):
            self.learner_.cache["told of new features"] = True
            warn(
                f"New feature {new[0]!r} was added to the model, and so will others that rows "
                f"bring. new_features='add' says that this is meant, 'error' and 'ignore' prevent "
                f"it."
            )
        return new

    def _learn(self, X: Any, weights: Weights | None = None) -> Self:
        limit = checked_drop_after(self.drop_after)
        if weights is not None and limit is not None:
            raise ValueError("drop_after is not for rows with weights.")
        if weights is not None or (type(X) is np.ndarray and X.dtype.names is None):
            return super()._learn(X, weights)
        part, rest = self._split(X, limit)
        if rest is None:
            return self._learn_part(part, limit)
        before = copy.copy(self.__dict__)
        if "_trace" in before:
            before["_trace"] = copy.deepcopy(before["_trace"])
        snapshot = self._learner.snapshot() if "_learner" in before else None
        try:
            while rest is not None:
                self._learn_part(part, limit)
                part, rest = self._split(rest, limit)
            return self._learn_part(part, limit)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            if snapshot is not None:
                self._learner.restore(snapshot)
            raise

    def _learn_part(self, X: Any, limit: int | None) -> Self:
        """Learn from rows, and drop features if it is time to."""
        super()._learn(X)
        if limit is not None and self._learner.n_seen % _drop_interval(limit) == 0:
            self._drop_silent()
        return self

    def _split(self, X: Any, limit: int | None) -> tuple[Any, Any]:
        """The first rows of X, and the rest of them; None if there is none.

        Features come with the row that brings them, and go after rows of certain numbers, so that
        the model does not depend on how a stream is cut.
        """
        if is_row(X) or not (hasattr(X, "shape") or isinstance(X, list)):
            return X, None
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        count, learner = n, self.__dict__.get("_learner")
        if limit is not None:
            every = _drop_interval(limit)
            count = every - (0 if learner is None else learner.n_seen) % every
        adds = checked_new_features(self.new_features) in ("add", None)
        if adds and learner is not None and learner.names is not None and are_named_rows(X):
            count = min(count, _rows_before_news(X, learner.names))
        if n <= count:
            return X, None
        rows = X.iloc if hasattr(X, "iloc") else X
        return rows[:count], rows[count:]

    def _drop_silent(self) -> None:
        """Drop features that were silent for too long."""
        learner = self._learner
        if learner.is_young or learner.names is None:
            return
        silent = self._engine.silent_features(learner.state)
        if silent.any() and not silent.all():
            kept = np.flatnonzero(~silent)
            learner.drop_features(kept)
            self._keep_features(kept)

    def _keep_features(self, kept: NDArray[np.int64]) -> None:
        """Forget what is known of features that were dropped."""


def _drop_interval(limit: int) -> int:
    """Rows after which silent features are looked for."""
    return max(1, limit // DROPS)


def _rows_before_news(rows: Any, names: Names) -> int:
    """How many rows come before one, but the first, that brings a new name."""
    if len(rows) < 2:
        return len(rows)
    new: set[Any] = set()
    for at, row in enumerate(as_mappings(rows)):
        if names.has_all(row.keys()):
            continue
        more = {name for name in row if names.position(name) is None} - new
        if at > 0 and any(entry(row[name]) is not None for name in more):
            return at
        new |= more
    return len(rows)
