"""What both estimators are made of: they check what users give, and wrap a `Learner`."""

import os
import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..adapters.dask.by_features import Features
from ..adapters.dask.by_rows import Rounds
from ..adapters.dask.futures import client_at_hand
from ..adapters.dask.lazy import is_dask, lazy_score
from ..core.checks import checked_count
from ..core.info import Info
from ..formats import is_stream, open_stream
from ..learner.fit_stream import fit_stream, learn_block
from ..learner.learner import Learner
from ..learner.progress import shown_progress
from ..streams import Source
from ..streams.arrays import ArraySource
from ..streams.frames import checked_frame, has_columns
from .callbacks import CallbackSupportMixin, Passes, with_callbacks
from .diagnostics import OUT_OF_ORDER, doubts
from .files import SavedMixin, file_header
from .parameters import Plan, check_init, check_parameters, passes_for, plan_of
from .predictive import BeliefMixin
from .validation import Checked, first_rows, has_times, is_out_of_order, next_rows


class Factorizer(BeliefMixin, SavedMixin, CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """`OMFB` and `OMFBImputer` but for `transform`. Fitted, it holds a `Learner`."""

    _learner: Learner

    wants_scale: ClassVar[bool]
    """Whether features are scaled, with a noise of their own, unless a parameter says otherwise."""

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lam: float | None = None,
        memory: float = 1.0,
        ridge: float | None = None,
        smooth: float | None = None,
        shrink: float | None = None,
        inner_iter: int | None = None,
        batch_size: int | None = None,
        center: bool | None = None,
        scale: bool | None = None,
        noise: str | None = None,
        outliers: bool = True,
        in_time: bool | None = None,
        max_iter: int | None = None,
        tol: float = 0.0,
        shuffle: bool | str = True,
        init: str | NDArray[Any] = "data",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.memory = memory
        self.ridge = ridge
        self.smooth = smooth
        self.shrink = shrink
        self.inner_iter = inner_iter
        self.batch_size = batch_size
        self.center = center
        self.scale = scale
        self.noise = noise
        self.outliers = outliers
        self.in_time = in_time
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.init = init
        self.random_state = random_state
        self.verbose = verbose

    # -- learning ---------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        resume: bool = False,
        every: str = "30s",
        lanes: int | None = None,
    ) -> Self:
        """Learn the dictionary by `max_iter` passes over X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), path, or stream
            NaN is missing, and so is what a sparse matrix does not store. float32 stays float32.
            A path (CSV, NDJSON, NumPy, Parquet or Arrow file), a Dask array, an iterator of rows
            or blocks, or an `omfb.streams.Source` is read block by block, in constant memory.
            A Dask collection is learned from by the cluster of a `distributed.Client`, if there
            is one and nothing is forgotten (``memory=1``). `OMFB` with a rule that is given in
            full (``memory=0``) learns by features from a Dask array that is cut along its columns,
            of complete rows, and spreads its dictionary over the workers.
        y : ignored
        checkpoint : path or None, default=None
            File to keep what is learned in while the fit goes on.
        resume : bool, default=False
            Go on from the checkpoint, if it exists: the fit ends with the very same model as one
            that was never interrupted.
        every : str, default="30s"
            How often to write the checkpoint: "30s", "5m", "1h" or "10000rows".
        lanes : int or None, default=None
            Of a Dask collection on a cluster, how many learn side by side; None is 32. With the
            chunks and the seed it decides the result; the number of workers does not.

        Returns
        -------
        self
        """
        return self._fit(X, lanes, checkpoint=checkpoint, resume=resume, every=every)

    @with_callbacks  # type: ignore[untyped-decorator, unused-ignore]
    def _fit(self, X: Any, lanes: int | None, **how: Any) -> Self:
        in_time = has_times(X)
        plan = check_parameters(self, in_time)
        if self.in_time is None and is_out_of_order(X):
            warnings.warn(OUT_OF_ORDER, UserWarning, stacklevel=4)
        source = self._rounds(X, plan, lanes) or self._source(X)
        max_iter = passes_for(self, plan, source)
        passes = Passes(self, max_iter, X)
        with shown_progress(max_iter, self.verbose) as on_block:
            unseen = self.fit_source(
                source, in_time=in_time, passes=passes, on_block=on_block, **how
            )
        for doubt in doubts(unseen, self.learner_.feature_names):
            warnings.warn(doubt, stacklevel=3)
        return self

    def fit_source(
        self, source: Source, *, in_time: bool = False, passes: Any = None, **how: Any
    ) -> NDArray[np.bool_]:
        """Learn from a source; return which features were never observed.

        What `fit` does once X is a source, and `omfb fit` too.

        Parameters
        ----------
        source : Source
        in_time : bool
            Whether its rows are in time, if the parameter does not say.
        passes : Passes or None
            Told of each pass.
        **how
            For `omfb.learner.fit_stream.fit_stream`: checkpoint, resume, every, on_block.
        """
        plan = check_parameters(self, in_time)
        rng = check_random_state(self.random_state)
        learner = self._new_learner(plan, source.n_features, rng, source.feature_names)
        if passes is not None:
            passes.watch(learner)
        place = fit_stream(
            learner, source, max_iter=passes_for(self, plan, source), tol=float(self.tol),
            shuffle=self.shuffle, rng=rng, passes=passes, header=file_header(self),
            learn=source.learn if isinstance(source, Rounds | Features) else learn_block, **how,
        )  # fmt: skip
        self.adopt(learner, place.number)
        return place.unseen

    def adopt(self, learner: Learner, n_iter: int | None = None) -> Self:
        """Become the fitted model that a learner is."""
        # One call: whatever interrupts, the model is the old or the new one.
        fitted: dict[str, Any] = {"_learner": learner}
        if n_iter is not None:
            fitted["n_iter_"] = n_iter
        self.__dict__.update(fitted)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the next rows of a stream, in the order given; one row is enough.

        However a stream is cut into calls, the model is the same (with ``batch_size > 1``, if it
        is cut at multiples of that). An error leaves the model as it was. Several threads may
        call it, and use the model meanwhile.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            NaN is missing, and so is what a sparse matrix does not store.
        y : ignored

        Returns
        -------
        self
        """
        learner = self.__dict__.get("_learner")
        if learner is None:
            return self._start(X)
        rule = self._plan(learner).rule
        if rule != learner.rule:
            check_parameters(self)
        learner.learn(self._rows(learner, X), rule)
        return self

    def _start(self, X: Any) -> Self:
        plan = check_parameters(self, has_times(X))
        first = self._first_rows(X)
        rng = check_random_state(self.random_state)
        learner = self._new_learner(plan, first.rows.shape[1], rng, first.feature_names)
        learner.learn(first.rows)
        # Another thread may have been first meanwhile: then these rows come after its own.
        if self.__dict__.setdefault("_learner", learner) is not learner:
            self.partial_fit(X)
        return self

    # -- using ------------------------------------------------------------------------------

    def _filled(self, X: Any) -> NDArray[Any]:
        learner = self.learner_
        rows = self._rows(learner, X)
        return self._bounded(learner.fill(rows, self._rule_for(X)), rows)

    def score(self, X: Any, y: Any = None) -> float:
        """How well entries of X are predicted that did not make the codes of their rows.

        Each row hides an eighth of the features and is filled from the others. 1 is all of what
        varies about the mean, 0 no better than the mean (than zero, where nothing is centred).

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
            Of a Dask collection a Dask array of no dimension: `float` computes it.
        """
        if is_dask(X):
            return lazy_score(self, X)
        return self.judge(X).score

    def judge(self, X: Any) -> Info:
        """The energies that `score` is made of: those of several blocks of rows add up.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        """
        learner = self.learner_
        return learner.judge(self._rows(learner, X), self._plan(learner).rule)

    @property
    def learner_(self) -> Learner:
        """The learner that does the work: states, codes and snapshots without scikit-learn."""
        check_is_fitted(self)
        return self._learner

    def state_in_use(self) -> Any:
        """The state of the engine by which rows are coded, under the parameters as they are."""
        learner = self.learner_
        return learner.used(self._plan(learner).rule)

    @property
    def components_(self) -> NDArray[Any]:
        """The dictionary, an atom in a row: (n_components, n_features)."""
        return self.learner_.components

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned from so far, in all passes."""
        return self.learner_.n_seen

    @property
    def prequential_error_(self) -> float:
        """Relative error over the last pass of entries that were hidden from the model.

        Of a rule that is given in full: of each row before the dictionary learned from it.
        """
        return self.learner_.error

    @property
    def n_features_in_(self) -> int:
        """Features of a row."""
        return self.learner_.n_features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, if X had any."""
        names = self.learner_.feature_names
        if names is None:
            raise AttributeError("The rows that the model was fitted to had no names.")
        return np.array(names, dtype=object)

    # -- inside -----------------------------------------------------------------------------

    def _plan(self, learner: Learner) -> Plan:
        """How the parameters say to go on; what only the first rows could tell stays as it is."""
        plan = plan_of(self, found=learner.rule)
        if plan.engine.name != learner.engine.name:
            raise ValueError(
                "These parameters are for another kind of model than the one that was fitted (a "
                "rule that is given in full, as memory=0 is, finds nothing): fit again."
            )
        return plan

    def _rule_for(self, X: Any) -> Any:
        """How rows are filled: from their neighbours, unless an index says that they have none."""
        rule = self._plan(self.learner_).rule
        if getattr(rule, "in_time", False) and is_out_of_order(X):
            warnings.warn(OUT_OF_ORDER, UserWarning, stacklevel=5)
            return replace(rule, in_time=False)
        return rule

    def _new_learner(
        self, plan: Plan, n_features: int, rng: np.random.RandomState, names: list[str] | None
    ) -> Learner:
        return Learner(
            plan.n_components,
            plan.rule,
            init=check_init(self.init, plan, n_features),
            seed=int(rng.randint(2**31)),
            feature_names=names,
            engine=plan.engine,
        )

    def _first_rows(self, X: Any) -> Checked:
        return first_rows(X, type(self).__name__)

    def _rounds(self, X: Any, plan: Plan, lanes: int | None) -> Source | None:
        """X as rounds of a cluster; None if it is to be read block by block."""
        client = client_at_hand() if is_dask(X) else None
        if lanes is not None:
            lanes = checked_count("lanes", lanes, "how many learn side by side")
            if client is None:
                raise ValueError(
                    "lanes needs a Dask collection and a cluster: pip install 'omfb[dask]', and "
                    "make a distributed.Client first."
                )
        if client is None:
            return None
        if lanes is None and self._spreads(X, plan):
            return Features(X, client, plan.n_components)
        if not plan.engine.adds_up(plan.rule):
            return None
        return Rounds.of_collection(self._numbers(X), client, lanes)

    def _spreads(self, X: Any, plan: Plan) -> bool:
        """Whether the dictionary is spread over a cluster, as the columns of a Dask array are."""
        return False

    def _numbers(self, X: Any) -> Any:
        """The columns of a Dask collection that are learned from."""
        return checked_frame(X) if has_columns(X) else X

    def _source(self, X: Any) -> Source:
        """X as a stream; arrays are checked by scikit-learn."""
        if is_stream(X):
            return open_stream(X)
        first = self._first_rows(X)
        source = ArraySource(first.rows)
        source.feature_names = first.feature_names
        return source

    def _rows(self, learner: Learner, X: Any) -> Any:
        """X as the learner takes rows; what streams bring most is not looked at for long."""
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

    def __copy__(self) -> Self:
        """A copy that learns on its own."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        if "_learner" in other.__dict__:
            other.adopt(Learner.from_snapshot(self._learner.snapshot()))
        return other

    def __sklearn_is_fitted__(self) -> bool:
        return "_learner" in self.__dict__

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
