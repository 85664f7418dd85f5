"""What all estimators share: they check what users give, and wrap a `Learner`."""

import os
from abc import abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..adapters.dask.by_features import FeatureSource
from ..adapters.dask.by_rows import RoundSource
from ..adapters.dask.futures import current_client
from ..adapters.dask.lazy import LIKE, is_dask, lazily, lazy_score
from ..core.checks import checked_count
from ..core.engine import Init
from ..core.engines import AnyConfig, AnyEngine
from ..core.info import Info
from ..formats import is_stream, open_stream
from ..learner.fit_stream import fit_stream, learn_block
from ..learner.learner import Learner
from ..learner.progress import shown_progress
from ..streams import Source
from ..streams.arrays import ArraySource, WeightedSource
from ..streams.frames import checked_frame, has_columns
from ..streams.row_times import RowTimes
from .callbacks import CallbackSupportMixin, Passes, with_callbacks
from .columns import columns_of
from .config_cache import ConfigCache
from .diagnostics import Findings, diagnostics
from .error_trace import ErrorTrace, trace_of, traced
from .files import file_header, load_parts, read_estimator, write_estimator
from .frames import is_frame, like_frame
from .named_rows import NamedRowsMixin
from .parameters import check_fit_parameters
from .rows import (
    are_named_rows,
    as_table,
    has_names,
    is_row,
    like_row,
)
from .table import TableWatch
from .time_index import time_index_of, time_index_of_column
from .times import Times, column_problems, has_times, ordered_times, times_of
from .validation import Checked, first_rows, next_rows
from .warn import warn
from .weights import Weights


def _index_of(source: Source, times: RowTimes | None) -> Any:
    """What is known of the times of a source, if they are in order."""
    if source.time_column is None or times is None:
        return source.time_index
    if times.fault is not None:
        return None
    return time_index_of_column(source.time_column, source.zoned, times.last)


class BaseFactorizer(CallbackSupportMixin, TransformerMixin, NamedRowsMixin):  # type: ignore[misc]
    """All of an estimator except its parameters and `transform`. Fitted, it holds a `Learner`.

    A subclass names its `_engine` and builds its config in `_config`.
    """

    _engine: ClassVar[AnyEngine]
    _learner: Learner
    _configs: ConfigCache

    n_components: int | None
    max_iter: int | None
    tol: float
    shuffle: bool | str
    random_state: int | np.random.RandomState | None
    verbose: int

    # -- parameters -------------------------------------------------------------------------

    @abstractmethod
    def _config(self, temporal: bool) -> AnyConfig:
        """The config that the parameters describe; each is checked.

        Parameters
        ----------
        temporal : bool
            Whether the index of the rows says that they are consecutive in time.
        """

    def _continued(self, config: AnyConfig, fitted: AnyConfig) -> AnyConfig:
        """A config, with what a fitted model cannot change any more as it is."""
        return config

    def _init(self, n_features: int) -> Init:
        """The first dictionary, or how it is made."""
        return "data"

    def checked_config(self, temporal: bool = False) -> AnyConfig:
        """The config that the parameters describe, all parameters being checked.

        Raises
        ------
        TypeError, ValueError
            For the first parameter that cannot be used.
        """
        config = self._config(temporal)
        check_fit_parameters(
            max_iter=self.max_iter, tol=self.tol, shuffle=self.shuffle,
            random_state=self.random_state, verbose=self.verbose,
        )  # fmt: skip
        return config

    def n_passes(self, source: Source) -> int:
        """How many passes `fit` makes over a source."""
        return int(self.max_iter or 1)

    def current_config(self) -> AnyConfig:
        """The config under which a fitted model continues; built again if a parameter changed."""
        fitted = self.learner_.config
        values = (getattr(self, name) for name in self._parameter_names())
        configs = self.__dict__.get("_configs") or ConfigCache()  # callbacks have none
        return configs.get(
            (*values, fitted), lambda: self._continued(self.checked_config(), fitted)
        )

    @classmethod
    @cache
    def _parameter_names(cls) -> tuple[str, ...]:
        return tuple(cls._get_param_names())

    # -- learning ---------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        every: str = "30s",
        n_tasks: int | None = None,
    ) -> Self:
        """Learn the dictionary by passes over X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), path, or stream
            NaN is missing, and so are absent entries of a sparse matrix. float32 stays float32.
            A path (CSV, NDJSON, NumPy, Parquet or Arrow file), a Dask array, an iterator of rows
            or blocks, or an `omfb.streams.Source` is read block by block, in constant memory.
            If there is a `distributed.Client`, its cluster learns from a Dask collection: by rows,
            if nothing is forgotten (``forget_factor=1``), or, by `OMFB`, by features from a Dask
            array of complete rows that is cut along its columns.
        y : ignored
        checkpoint : path or None, default=None
            File to save the model to during the fit.
        resume : bool, default=False
            Continue from the checkpoint, if it exists: the fit ends with the very same model as one
            that was never interrupted.
        every : str, default="30s"
            How often to write the checkpoint: "30s", "5m", "1h" or "10000rows".
        n_tasks : int or None, default=None
            How many tasks of a cluster learn by rows at the same time; None is 32. The result
            depends on it, on the chunks and on the seed, not on the number of workers.

        Returns
        -------
        self
        """
        return self._fit(X, n_tasks, checkpoint=checkpoint, resume=resume, every=every)

    @with_callbacks  # type: ignore[untyped-decorator, unused-ignore]
    def _fit(
        self, X: Any, n_tasks: int | None, weights: Weights | None = None, **options: Any
    ) -> Self:
        temporal = has_times(X)
        config = self.checked_config(temporal)
        self._check_order(X, first=True)
        if weights is None:
            source = self._cluster_source(X, config, n_tasks) or self._source(X)
        else:
            source = self._weighted_source(X, weights)
        if not is_stream(X) or is_dask(X):
            source.times, source.time_index = times_of(X), time_index_of(X)
        n_passes = self.n_passes(source)
        passes = Passes(self, n_passes, X)
        with shown_progress(n_passes, self.verbose) as on_block:
            findings = self.fit_source(
                source, temporal=temporal, passes=passes, on_block=on_block, **options
            )
        times = source.row_times() if source.time_column is not None and self._in_time else None
        for message in (
            *column_problems(times, source.time_column),
            *diagnostics(findings, self.learner_.feature_names),
        ):
            warn(message)
        return self

    def fit_source(
        self, source: Source, *, temporal: bool = False, passes: Passes | None = None,
        **options: Any,
    ) -> Findings:  # fmt: skip
        """Learn from a source; return what was found in its rows.

        `fit` calls it once X is a source, and so does `omfb fit`.

        Parameters
        ----------
        source : Source
        temporal : bool
            Whether its rows are consecutive in time, if the parameter does not say.
        passes : Passes or None
            Notified of each pass.
        **options
            For `omfb.learner.fit_stream.fit_stream`: checkpoint, resume, every, on_block.
        """
        config = self.checked_config(temporal)
        in_time = bool(getattr(config, "temporal", False))
        times = source.row_times() if in_time or source.times is not None else None
        config = self._for_rows(
            config, _index_of(source, times), source.feature_names, source.n_features
        )
        facts = self._facts(source.column_names, None if times is None else times.last)
        watch = self._watch(source)
        rng = check_random_state(self.random_state)
        learner = self._new_learner(config, source.n_features, rng, source.feature_names)
        if passes is not None:
            passes.watch(learner)
        trace = ErrorTrace()
        on_block = traced(learner, trace, options.pop("on_block", None))
        end = fit_stream(
            learner, source, max_iter=self.n_passes(source), tol=float(self.tol),
            shuffle=self.shuffle, rng=rng, passes=passes, header=file_header(self, facts),
            learn=source.learn if isinstance(source, RoundSource | FeatureSource) else learn_block,
            on_block=on_block, watch=watch, **options,
        )  # fmt: skip
        if times is not None and not source.rereadable:  # a pipe: now all of them have come
            last = source.row_times()
            facts = self._facts(source.column_names, None if last is None else last.last)
        self.adopt(learner, end.number, {**self._with_watched(facts, watch), "_trace": trace})
        return Findings(end.unseen, () if watch is None else watch.suspects())

    def adopt(
        self, learner: Learner, n_iter: int | None = None, facts: dict[str, Any] | None = None
    ) -> Self:
        """Become the fitted model that a learner is; `facts` are further attributes."""
        # One call: whatever interrupts, the model is the old or the new one.
        fitted: dict[str, Any] = {"_learner": learner, "_configs": ConfigCache()}
        fitted |= {"_trace": ErrorTrace(), **(facts or {})}
        if n_iter is not None:
            fitted["n_iter_"] = n_iter
        self.__dict__.update(fitted)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the next rows of a stream, in the order given; one row is enough.

        The model does not depend on how a stream is cut into calls (with ``batch_size > 1``, if it
        is cut at multiples of that). An error leaves the model as it was. Several threads may
        call it, and use the model at the same time.

        Rows that are given again are new rows: they hold out other entries than before, and what
        the model has learned already it predicts too well. For several passes, call `fit`, where
        each row holds out the same entries in all of them.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or one row
            NaN is missing, and so are absent entries of a sparse matrix. One row may be an array of
            shape (n_features,) or, by name, a dict, a pandas Series or a record; absent keys are
            missing entries. A list of dicts is several rows.
        y : ignored

        Returns
        -------
        self
        """
        return self._learn(X)

    def _learn(self, X: Any, weights: Weights | None = None) -> Self:
        learner = self.__dict__.get("_learner")
        if learner is None:
            return self._start(X, weights)
        config = self.current_config()
        self._check_order(X)
        before = learner.snapshot()
        try:
            rows = self._any_rows(learner, X, learn=True)
            given = rows
            if weights is not None:
                given = weights.of(rows, learner.feature_names, columns_of(X))
            codes = learner.learn(given, config, ordered_times(X))
        except BaseException:
            if learner.names is not before.names:  # features were added
                learner.restore(before)
            raise
        if codes is not None:
            trace_of(self).note(learner.learned)
        self._after_learning(X, rows)
        return self

    def _start(self, X: Any, weights: Weights | None) -> Self:
        config = self.checked_config(has_times(X))
        self._check_order(X, first=True)
        first = self._first_named_rows(X) if has_names(X) else self._first_rows(as_table(X))
        names, width = first.feature_names, first.rows.shape[1]
        config = self._for_rows(config, time_index_of(X), names, width)
        rng = check_random_state(self.random_state)
        learner = self._new_learner(config, first.rows.shape[1], rng, first.feature_names)
        rows = first.rows
        if weights is not None:
            rows = weights.of(rows, first.feature_names, columns_of(X))
        codes = learner.learn(rows, times=ordered_times(X))
        facts = self._first_facts(X, first.rows)
        for name, value in {"_configs": ConfigCache(), **facts}.items():
            self.__dict__.setdefault(name, value)
        # Another thread may have been first meanwhile: then these rows come after its own.
        if self.__dict__.setdefault("_learner", learner) is not learner:
            self._learn(X, weights)
        elif codes is not None:
            trace_of(self).note(learner.learned)
        return self

    # -- using ------------------------------------------------------------------------------

    def complete(self, X: Any) -> Any:
        """Fill what is missing in X; observed entries stay as they are, bit for bit.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or one row
            One row as `partial_fit` takes it.

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features), or a frame or row if X is one
            A Dask collection if X is one, computed when it is needed.
        """
        if is_dask(X):
            return lazily(self, "complete", X, LIKE)
        return self._like(X, self._filled(X))

    def score(self, X: Any, y: Any = None) -> float:
        """How well entries of X are predicted from the rest of their row.

        Each row holds out an eighth of the features and is filled from the others. 1 is all of
        the variation about the mean (about zero, if nothing is centred), 0 no better than the mean.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
            Of a Dask collection, a Dask array of no dimension: `float` computes it.
        """
        if is_dask(X):
            return lazy_score(self, X)
        return self.score_held_out(X).score

    def score_held_out(self, X: Any) -> Info:
        """The energies that `score` is made of: those of several blocks of rows add up.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        learner = self.learner_
        return learner.score_held_out(self._rows(learner, X), self.current_config())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file, all or nothing: an error leaves the old file.

        The file holds all that is needed to continue learning, in a documented format (safetensors
        with a JSON header), and no code.

        Parameters
        ----------
        path : str or path
            By convention ending in ``.omfb``.
        """
        check_is_fitted(self)
        self.checked_config()
        write_estimator(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read a model from a file; safe with files from untrusted sources.

        Parameters
        ----------
        path : str or path

        Returns
        -------
        model : estimator of this class
            `OnlineFactorAnalysis` and `OMFBImputer` can load each other's models.

        Raises
        ------
        ModelFileError
            If the file is not a complete model file of this algorithm; it is a ValueError.
        """
        return read_estimator(path, lambda parts: load_parts(cls, parts, cls._engine.name))

    # -- inside -----------------------------------------------------------------------------

    @property
    def _in_time(self) -> bool:
        return bool(getattr(self.learner_.config, "temporal", False))

    def _new_learner(
        self, config: AnyConfig, n_features: int, rng: np.random.RandomState,
        names: list[str] | None,
    ) -> Learner:  # fmt: skip
        init = self._init(n_features)
        n_components = self.n_components if isinstance(init, str) else len(init)
        return Learner(
            self._engine.name,
            n_components,
            config,
            init=init,
            seed=int(rng.randint(2**31)),
            feature_names=names,
        )

    def _check_order(self, X: Any, *, first: bool = False) -> None:
        """Warn if the order of the rows is not what it seems to be.

        `first` says that a model begins with them.
        """

    def _after_learning(self, X: Any, rows: Any) -> None:
        """Note what rows that were learned from say besides their values."""

    def _watch(self, source: Source) -> TableWatch | None:
        """Looks at the rows of a fit, besides the learner."""
        return None

    def _with_watched(self, facts: dict[str, Any], watch: TableWatch | None) -> dict[str, Any]:
        """The attributes of a fitted model, with what was found in its rows."""
        return facts

    def _for_rows(
        self, config: AnyConfig, index: Any, names: Sequence[str] | None, n_features: int
    ) -> AnyConfig:
        """The config of rows with an index of times, if they have one, and these features."""
        return config

    def _cluster_source(self, X: Any, config: AnyConfig, n_tasks: int | None) -> Source | None:
        """X as a source that a cluster learns from; None if it is to be read block by block."""
        client = current_client() if is_dask(X) else None
        if n_tasks is not None:
            n_tasks = checked_count("n_tasks", n_tasks, "how many learn at the same time")
            if client is None:
                raise ValueError(
                    "n_tasks needs a Dask collection and a cluster: pip install 'omfb[dask]', and "
                    "make a distributed.Client first."
                )
        return None if client is None else self._distributed(X, config, client, n_tasks)

    def _distributed(
        self, X: Any, config: AnyConfig, client: Any, n_tasks: int | None
    ) -> Source | None:
        """A Dask collection as rounds of a cluster, if models can be merged."""
        if not self._engine.is_mergeable(config):
            return None
        return RoundSource.of_collection(self._numeric(X), client, n_tasks)

    def _numeric(self, X: Any) -> Any:
        """The columns of a Dask collection that are learned from."""
        return checked_frame(X) if has_columns(X) else X

    def _first_rows(self, X: Any) -> Checked:
        return first_rows(X, type(self).__name__)

    def _source(self, X: Any) -> Source:
        """X as a stream; arrays are checked by scikit-learn."""
        if is_stream(X):
            return open_stream(X)
        first = self._first_rows(X)
        source = ArraySource(first.rows)
        source.feature_names = first.feature_names
        return source

    def _weighted_source(self, X: Any, weights: Weights) -> Source:
        first = self._first_rows(X)
        source = WeightedSource(weights.of(first.rows, first.feature_names, columns_of(X)))
        source.feature_names = first.feature_names
        return source

    def _rows(self, learner: Learner, X: Any) -> Any:
        """X as the learner takes rows; a plain array of the right shape needs no more checks."""
        if (
            type(X) is np.ndarray
            and X.dtype == learner.dtype
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == learner.n_features
            and learner.feature_names is None
        ):
            return X
        return next_rows(self, X)

    def _filled(self, X: Any) -> NDArray[Any]:
        learner = self.learner_
        return learner.fill(self._any_rows(learner, X), self.current_config())

    def _like(self, X: Any, filled: NDArray[Any], *, keep_types: bool = True) -> Any:
        """Predicted rows in the form of X, with what X observes as it is."""
        names = self.learner_.feature_names
        if is_row(X):
            return like_row(X, filled[0], names)
        if are_named_rows(X):
            return [like_row(row, each, names) for row, each in zip(X, filled, strict=True)]
        return self._like_frame(X, filled, keep_types) if is_frame(X) else filled

    def _like_frame(self, X: Any, filled: NDArray[Any], keep_types: bool) -> Any:
        return like_frame(X, filled, list(range(len(X.columns))), keep_types=keep_types)

    def _facts(self, columns: Sequence[Any] | None, times: Times) -> dict[str, Any]:
        """Attributes, besides the learner, that a table with these columns gives a fitted model."""
        return {}

    def _first_facts(self, X: Any, rows: Any) -> dict[str, Any]:
        """The same of the first rows of a stream."""
        return self._facts(columns_of(X), times_of(X))

    def facts_header(self, facts: dict[str, Any]) -> dict[str, Any]:
        """These attributes, or those of a fitted model, as the header of a file holds them."""
        return {}

    def facts_tensors(self) -> dict[str, NDArray[Any]]:
        """Those attributes that are arrays, as a file holds them."""
        return {}

    @classmethod
    def read_facts(
        cls, header: dict[str, Any], tensors: dict[str, NDArray[Any]], n_features: int
    ) -> dict[str, Any]:
        """These attributes from a file; a ValueError if they cannot be."""
        return {}

    def __copy__(self) -> Self:
        """A copy that learns independently."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        if "_learner" in other.__dict__:
            other.adopt(Learner.from_snapshot(self._learner.snapshot_to_share()))
        return other

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
