"""What both estimators are made of: validate, hold a state, loop `step`."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ..core.blocks import dense_with_holes, sparse_with_holes
from ..core.encode import encode
from ..core.start import window_length
from ..core.state import Info, Rule, State
from ..core.step import init as first_state
from ..core.step import step
from ..formats import is_stream, open_stream
from ..learner.fit_stream import learn_passes
from ..learner.snapshot import SavedMixin
from ..streams import Source
from ..streams.arrays import ArraySource
from .callbacks import CallbackSupportMixin, Passes, with_callbacks
from .frames import like_frame
from .parameters import check_init, check_parameters

logger = logging.getLogger("omfb")

NOTHING = Info(0.0, 0.0)


class Factorizer(SavedMixin, CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """`OMFB` and `OMFBImputer` but for `transform`.

    Fitted, it holds a `State`, the energies of the current pass, and, until the stream is long
    enough to draw the first dictionary from, the rows so far.
    """

    _state: State
    _totals: Info
    _head: Any
    _seed: int

    def __init__(
        self,
        n_components: int = 30,
        *,
        lam: float = 1.0,
        memory: float = 1.0,
        ridge: float = 0.0,
        smooth: float = 0.0,
        shrink: float = 0.0,
        inner_iter: int = 2,
        batch_size: int = 1,
        max_iter: int = 1,
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
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.init = init
        self.random_state = random_state
        self.verbose = verbose

    # -- learning ---------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the dictionary by `max_iter` passes over X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), path, or stream
            NaN is missing, and so is what a sparse matrix does not store. float32 stays float32.
            A path (CSV, NDJSON, NumPy, Parquet or Arrow file), a Dask array, an iterator of rows
            or blocks, or an `omfb.streams.Source` is read block by block, in constant memory.
        y : ignored

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            self._fit(X)
        return self

    @with_callbacks  # type: ignore[untyped-decorator, unused-ignore]
    def _fit(self, X: Any) -> None:
        check_parameters(self)
        source = self._source(X)
        unseen = np.ones(0, dtype=bool)
        for place in learn_passes(self, source, passes=Passes(self, self.max_iter, X)):
            unseen = place.unseen
        self._warn_of(unseen)

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Learn from the next rows of a stream, in the order given; one row is enough.

        However a stream is cut into calls, the model is the same (with ``batch_size > 1``, if it
        is cut at multiples of that). An error leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            NaN is missing, and so is what a sparse matrix does not store.
        y : ignored

        Returns
        -------
        self
        """
        with self._all_or_nothing():
            fitted = self.__sklearn_is_fitted__()
            rule = self._rule()
            if not fitted or rule != self._state.rule:
                check_parameters(self)
            X = self._validated(X, reset=not fitted)
            if not fitted:
                self._seed = check_random_state(self.random_state).randint(2**31)
                self._head = X[:0]
            if self._head is None:
                self._learn(self._under(rule), X, self._totals)
            else:
                self._learn_head(X)
        return self

    def _learn_head(self, X: Any) -> None:
        """Learn from a stream so young that every new row may still enter the first dictionary.

        The model is always what it would be had all rows so far come at once: that is what makes
        it independent of how the stream is cut. The rows are kept until there are enough.
        """
        if self._head.shape[0] == 0:
            rows = X
        elif scipy.sparse.issparse(X):
            head = (
                self._head if scipy.sparse.issparse(self._head) else sparse_with_holes(self._head)
            )
            rows = scipy.sparse.vstack([head, X.astype(head.dtype, copy=False)], format="csr")
        else:
            head = dense_with_holes(self._head)
            rows = np.concatenate([head, X.astype(head.dtype, copy=False)])
        self._learn(self._first(rows, self._seed), rows, NOTHING)
        if rows.shape[0] < window_length(self.n_components):
            self._head = rows.copy() if rows is X else rows  # X is the caller's

    def _learn(self, state: State, X: Any, totals: Info) -> None:
        state, _, info = step(state, X, reuse=X.shape[0] == 1)
        self._keep(state, totals.plus(info))

    # -- using ------------------------------------------------------------------------------

    def complete(self, X: Any) -> Any:
        """Fill the holes of X; what is observed stays as it is, bit for bit.

        With ``smooth > 0`` the rows of X are taken as consecutive in time.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features), or a frame if X is one
        """
        return like_frame(X, self._completed(self._validated(X)))

    def _completed(self, rows: Any) -> NDArray[Any]:
        codes = self._encode(rows)[0]
        complete = dense_with_holes(rows).copy()
        for start in range(0, len(complete), 1024):
            here = slice(start, start + 1024)
            holes = np.isnan(complete[here])
            if holes.any():
                np.copyto(complete[here], self._decode(codes[here]), where=holes)
        return complete

    def score(self, X: Any, y: Any = None) -> float:
        """Share of the observed energy of X that the dictionary explains; 1 is all of it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        score : float
        """
        return 1.0 - self._encode(self._validated(X))[1].error ** 2

    @property
    def components_(self) -> NDArray[Any]:
        """The dictionary, an atom in a row: (n_components, n_features)."""
        check_is_fitted(self)
        return np.ascontiguousarray(self._state.C.T) * self._state.C.dtype.type(self._state.scale)

    @property
    def n_samples_seen_(self) -> int:
        """Rows learned from so far, in all passes."""
        check_is_fitted(self)
        return self._state.n_seen

    @property
    def prequential_error_(self) -> float:
        """Relative error over the last pass, of each row before the dictionary learned from it."""
        check_is_fitted(self)
        return self._totals.error

    # -- inside -----------------------------------------------------------------------------

    def _rule(self) -> Rule:
        return Rule(
            lam=self.lam,
            memory=self.memory,
            ridge=self.ridge,
            smooth=self.smooth,
            shrink=self.shrink,
            inner_iter=self.inner_iter,
            batch_size=self.batch_size,
        )

    def _first(self, head: Any, seed: int) -> State:
        init = check_init(self.init, self.n_components, head.shape[1])
        return first_state(head, self.n_components, self._rule(), init=init, seed=seed)

    def _keep(self, state: State, totals: Info = NOTHING) -> None:
        self._state, self._totals, self._head = state, totals, None

    def _under(self, rule: Rule) -> State:
        """The state, to go on under a rule that may have changed by `set_params`."""
        return self._state if rule == self._state.rule else replace(self._state, rule=rule)

    def _encode(self, X: Any) -> tuple[NDArray[np.float64], Info]:
        return encode(self._under(self._rule()), X)

    def _decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        C = self._state.C
        return (codes.astype(C.dtype, copy=False) @ C.T) * C.dtype.type(self._state.scale)

    def _source(self, X: Any) -> Source:
        """X as a stream, its features noted; arrays are checked by scikit-learn."""
        if not is_stream(X):
            return ArraySource(self._validated(X, reset=True))
        source = open_stream(X)
        self.n_features_in_ = source.n_features
        self.__dict__.pop("feature_names_in_", None)
        if source.feature_names is not None:
            self.feature_names_in_ = np.array(source.feature_names, dtype=object)
        return source

    def _validated(self, X: Any, reset: bool = False) -> Any:
        """X as an array or CSR matrix of floats, checked by scikit-learn but for infinity.

        Infinity is found by the products that a step needs anyway.
        """
        if not reset and self._is_as_needed(X):
            return X
        if not reset:
            check_is_fitted(self)
        try:
            return validate_data(
                self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32],
                ensure_all_finite=False,
            )  # fmt: skip
        except ValueError as error:
            if "could not convert" not in str(error):
                raise
            raise ValueError(
                f"X contains something that is no number ({error}). Drop or encode such columns; "
                f"NaN is missing."
            ) from error

    def _is_as_needed(self, X: Any) -> bool:
        """Whether X is what streams bring most: nothing to convert or to complain of."""
        return (
            type(X) is np.ndarray
            and self.__sklearn_is_fitted__()
            and X.dtype == self._state.C.dtype
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """If learning fails, the model is what it was."""
        before = self.__dict__.copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _log(self, message: str, *values: Any) -> None:
        if self.verbose:
            if not logger.hasHandlers():  # `verbose` asks to see something
                logger.addHandler(logging.StreamHandler())
            logger.setLevel(min(logger.level or logging.INFO, logging.INFO))
            logger.info(message, *values)

    def _warn_of(self, unseen: NDArray[np.bool_]) -> None:
        which = np.flatnonzero(unseen)
        if len(which) == 0:
            return
        names = getattr(self, "feature_names_in_", None)
        shown = ", ".join(str(i if names is None else names[i]) for i in which[:10])
        more = f" and {len(which) - 10} more" if len(which) > 10 else ""
        warnings.warn(
            f"Never observed: feature {shown}{more}. Nothing was learned about them, and what "
            f"`complete` fills in there means nothing. Drop them, or bring rows that have them.",
            stacklevel=3,
        )

    def __copy__(self) -> Self:
        """A copy that learns on its own: single rows are learned in place."""
        other = type(self).__new__(type(self))
        other.__dict__.update(self.__dict__)
        if self.__sklearn_is_fitted__():
            other._state = replace(self._state, C=self._state.C.copy())
        return other

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags
