"""Rows as streams bring them: mappings by name, records, single rows."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.checks import shown
from ..learner.learner import Learner
from ..learner.names import Names
from .attributes import FittedAttributes
from .rows import NameIndex, as_mappings, as_table, has_names, numeric_names
from .validation import Checked


class NamedRowsMixin(FittedAttributes):
    """Turns rows in any form into those that a learner takes."""

    @abstractmethod
    def _rows(self, learner: Learner, X: Any) -> Any:
        """A table as the learner takes rows."""

    def _any_rows(self, learner: Learner, X: Any, *, learn: bool = False) -> Any:
        """X, a table or one row, as the learner takes rows."""
        if type(X) is np.ndarray and X.ndim == 2:
            return self._rows(learner, X)
        if has_names(X):
            return self._named_rows(learner, as_mappings(X), learn)
        return self._rows(learner, as_table(X))

    def rows_by_name(self, rows: list[Mapping[Any, Any]]) -> NDArray[Any]:
        """Rows by name as an array in the order of the features; the model is not changed.

        Parameters
        ----------
        rows : list of mappings

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            NaN where a key is absent.
        """
        return self._named_rows(self.learner_, rows, learn=False)

    def _named_rows(self, learner: Learner, rows: list[Mapping[Any, Any]], learn: bool) -> Any:
        names = learner.names
        if names is None:
            raise ValueError(
                "X has names, but the model was fitted to rows without names. Give arrays."
            )
        index = learner.cache.get("names")
        if index is None or index.names is not names:
            learner.cache["names"] = index = NameIndex(names)
        if learn and self._are_few_entries(learner, rows):
            array, unknown = index.sparse(rows, learner.dtype)
        else:
            array, unknown = index.array(rows, learner.dtype)
        if unknown:
            new = self._new_names(unknown, names, learn)
            if new:
                learner.add_features(new)
                return self._named_rows(learner, rows, learn)
        return array

    def _are_few_entries(self, learner: Learner, rows: list[Mapping[Any, Any]]) -> bool:
        """Whether rows are to be learned as lists of entries: that costs less if these are few."""
        return False

    def _new_names(self, unknown: dict[Any, Any], names: Names, learn: bool) -> list[str]:
        """Names of features to be added, of entries that are no features of the model."""
        name = next(iter(unknown))
        known = names.listed
        raise ValueError(
            f"X has {shown(name)}, which is no feature of the model: it was fitted to "
            f"{shown(known[0])} and {len(known) - 1} more. Leave it out."
        )

    def _first_named_rows(self, X: Any) -> Checked:
        rows = as_mappings(X)
        names = numeric_names(rows, skip_text=self._skips_text)
        if not names:
            raise ValueError("X has no entry that is a number: there is nothing to learn from.")
        return Checked(NameIndex(Names(names)).array(rows, np.float64)[0], names)

    _skips_text: ClassVar[bool] = False
    """Whether entries that are not numbers are passed through; otherwise they are refused."""
