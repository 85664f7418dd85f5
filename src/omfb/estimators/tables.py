"""What makes the factor model one for tables: their columns, and codes for missing values."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..adapters.dask.lazy import is_dask
from ..core.blocks import dense_with_holes
from ..core.engines import AnyConfig
from ..formats import is_stream
from ..learner.learner import Learner
from ..learner.names import Names
from ..streams import Source
from ..streams.marked import MarkedSource
from .columns import (
    checked_remainder,
    columns_of,
    feature_positions,
    features_of,
    first_features,
    indicator_name,
    with_columns,
    without_columns,
    without_others,
)
from .frames import is_frame, like_frame
from .predictive import PredictiveFactorizer
from .rows import are_named_rows, as_mapping, entry, is_named_row
from .sentinels import MissingValues
from .table import Table, TableWatch, with_flags
from .times import Times
from .validation import Checked
from .weights import Weights

BOOLEANS = frozenset({bool, np.bool_})


class TableFactorizer(PredictiveFactorizer):
    """The factor model of a table, some of whose columns may hold no numbers."""

    _skips_text: ClassVar[bool] = True
    _table: Table

    integers: bool
    remainder: str
    missing_values: Any
    add_indicator: bool
    keep_empty_features: bool

    # -- facts about the fitted table -------------------------------------------------------

    @property
    def _known_table(self) -> Table:
        """What is known of the table that the model was fitted to."""
        return self.__dict__.get("_table") or Table()

    def _facts(self, columns: Sequence[Any] | None, times: Times) -> dict[str, Any]:
        table = Table(tuple(columns) if columns else None)
        return {**super()._facts(columns, times), "_table": table}

    def _watch(self, source: Source) -> TableWatch | None:
        return TableWatch(source.n_features)

    def _with_watched(self, facts: dict[str, Any], watch: TableWatch | None) -> dict[str, Any]:
        return facts if watch is None else {**facts, "_table": watch.facts(facts["_table"])}

    def _after_learning(self, X: Any, rows: Any) -> None:
        super()._after_learning(X, rows)
        self._table = self._known_table.after(rows)

    def facts_header(self, facts: dict[str, Any]) -> dict[str, Any]:
        """See `BaseFactorizer.facts_header`."""
        table = facts.get("_table", self._known_table)
        return {**super().facts_header(facts), "table": table.header()}

    def facts_tensors(self) -> dict[str, NDArray[Any]]:
        """See `BaseFactorizer.facts_tensors`."""
        table = self._known_table
        if table.limits is None:
            return {}
        return {"table.limits": table.limits_of(self.n_features_in_)}

    @classmethod
    def read_facts(
        cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]], n_features: int
    ) -> dict[str, Any]:
        """See `BaseFactorizer.read_facts`."""
        facts = super().read_facts(header, tensors, n_features)
        if "table" not in header:  # of `OnlineFactorAnalysis`
            return {**facts, "_table": Table()}
        limits = tensors.get("table.limits")
        return {**facts, "_table": Table.of_parts(header["table"], limits, n_features)}

    # -- rows in ----------------------------------------------------------------------------

    def _marked(self, rows: Any, names: list[str] | None) -> Any:
        """Rows with NaN where they hold a code for missing values."""
        codes = MissingValues.of(self.missing_values)
        codes.check(names, rows.shape[1])
        return codes.marked(rows, names)

    def _first_rows(self, X: Any) -> Checked:
        first = super()._first_rows(first_features(X))
        return Checked(self._marked(first.rows, first.feature_names), first.feature_names)

    def _first_named_rows(self, X: Any) -> Checked:
        first = super()._first_named_rows(X)
        return Checked(self._marked(first.rows, first.feature_names), first.feature_names)

    def _first_facts(self, X: Any, rows: Any) -> dict[str, Any]:
        watch = TableWatch(rows.shape[1])
        watch.add(rows)
        return self._with_watched(super()._first_facts(X, rows), watch)

    def _numeric(self, X: Any) -> Any:
        return first_features(X)

    def _source(self, X: Any) -> Source:
        codes = MissingValues.of(self.missing_values)
        if is_dask(X):
            self._check_lazy()
        source = super()._source(first_features(X) if is_dask(X) else X)
        if is_frame(X):
            source.column_names = columns_of(X) or ()
        if not codes or not is_stream(X):
            return source
        names = source.feature_names
        codes.check(names, source.n_features)
        return MarkedSource(source, lambda rows: codes.marked(rows, names), codes.as_json())

    def _weighted_source(self, X: Any, weights: Weights) -> Source:
        source = super()._weighted_source(X, weights)
        if is_frame(X):
            source.column_names = columns_of(X) or ()
        return source

    def _distributed(
        self, X: Any, config: AnyConfig, client: Any, n_tasks: int | None
    ) -> Source | None:
        self._check_lazy()
        source = super()._distributed(X, config, client, n_tasks)
        if source is not None and is_frame(X):
            source.column_names = columns_of(X) or ()
        return source

    def _check_lazy(self) -> None:
        """Refuse parameters that are not for Dask collections."""
        if MissingValues.of(self.missing_values):
            raise ValueError(
                "missing_values is not for Dask collections: replace the numbers by NaN first."
            )
        if self.add_indicator or not self.keep_empty_features:
            raise ValueError(
                "add_indicator=True and keep_empty_features=False are not for Dask collections."
            )

    def _new_names(self, unknown: dict[Any, Any], names: Names, learn: bool) -> list[str]:
        numbers = {name: value for name, value in unknown.items() if entry(value) is not None}
        return super()._new_names(numbers, names, learn) if numbers else []

    def _rows(self, learner: Learner, X: Any) -> Any:
        drop = checked_remainder(self.remainder)
        names, columns = learner.feature_names, self._known_table.columns
        rows = super()._rows(learner, features_of(X, names, columns, drop=drop))
        return self._marked(rows, names)

    def _frame_features(self, learner: Learner, X: Any) -> Any:
        drop = checked_remainder(self.remainder)
        return features_of(X, learner.feature_names, self._known_table.columns, drop=drop)

    def _frame_rows(self, learner: Learner, X: Any, *, add: bool) -> Any:
        return self._marked(super()._frame_rows(learner, X, add=add), learner.feature_names)

    def _keep_features(self, kept: NDArray[np.int64]) -> None:
        self._table = self._known_table.of_features(kept)

    def _are_few_entries(self, learner: Learner, rows: list[Mapping[Any, Any]]) -> bool:
        codes = MissingValues.of(self.missing_values)
        return not codes and super()._are_few_entries(learner, rows)

    def _named_rows(self, learner: Learner, rows: list[Mapping[Any, Any]], learn: bool) -> Any:
        if not all(BOOLEANS.isdisjoint(map(type, row.values())) for row in rows):
            flags = self._known_table.flags(learner.feature_names)
            rows = [with_flags(row, flags) for row in rows]
        array = super()._named_rows(learner, rows, learn)
        if not MissingValues.of(self.missing_values):
            return array
        return self._marked(array, learner.feature_names)

    # -- results out ------------------------------------------------------------------------

    def _passes_through(self, columns: Sequence[Any]) -> bool:
        """Whether `transform` returns further columns besides the features."""
        return self.remainder == "passthrough" and len(columns) > self.n_features_in_

    def _like(self, X: Any, filled: NDArray[Any], *, keep_types: bool = True) -> Any:
        codes = MissingValues.of(self.missing_values)
        if codes and is_named_row(X):
            X = codes.replaced(as_mapping(X))
        elif codes and are_named_rows(X):
            X = [codes.replaced(as_mapping(row)) for row in X]
        return super()._like(X, filled, keep_types=keep_types)

    def _like_frame(self, X: Any, filled: NDArray[Any], keep_types: bool) -> Any:
        names, drop = self.learner_.feature_names, self.remainder == "drop"
        positions = feature_positions(X, names, self._known_table.columns, drop=drop)
        missing = None
        if MissingValues.of(self.missing_values):
            missing = np.isnan(dense_with_holes(self._rows(self.learner_, X)))
        frame = like_frame(X, filled, positions, keep_types=keep_types, missing=missing)
        return without_others(frame, positions) if drop else frame

    def _indicator(self, rows: Any) -> NDArray[np.bool_]:
        """Which entries are missing, of the features that `add_indicator` appends."""
        return np.isnan(dense_with_holes(rows))[:, list(self._known_table.incomplete)]

    def _extended_frame(self, X: Any) -> Any:
        """A frame as `transform` returns it, columns that are passed through included."""
        frame, learner = self.complete(X), self.learner_
        given: list[Any] = learner.feature_names or [*range(learner.n_features)]
        names = np.array(given, dtype=object)
        if not self.keep_empty_features:
            frame = without_columns(frame, list(names[self._unobserved]))
        if self.add_indicator:
            flags = self._indicator(self._rows(learner, X)).astype(learner.dtype)
            titles = [indicator_name(names[at]) for at in self._known_table.incomplete]
            frame = with_columns(frame, titles, flags)
        return frame
