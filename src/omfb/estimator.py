"""`OMFB` and `OMFBImputer`: validate, hold a state, loop `step`."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    OneToOneFeatureMixin,
    TransformerMixin,
)
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from ._callbacks import CallbackSupportMixin, Passes, with_callbacks
from .codes import encode
from .frames import like_frame
from .parameters import check_init, check_parameters
from .pieces import dense_with_holes
from .start import window_length
from .state import Info, Rule, State
from .streams import block_rows, blocks
from .updates import init as first_state
from .updates import step

logger = logging.getLogger("omfb")

NOTHING = Info(0.0, 0.0)


class _Factorizer(CallbackSupportMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What both estimators share: everything but `transform`.

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
        X : array-like or sparse matrix of shape (n_samples, n_features)
            NaN is missing, and so is what a sparse matrix does not store. float32 stays float32.
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
        X = self._validated(X, reset=True)
        rng = check_random_state(self.random_state)
        seed = rng.randint(2**31)
        passes = Passes(self, self.max_iter, X)
        unseen = np.ones(X.shape[1], dtype=bool)
        error = np.inf
        for number in range(1, self.max_iter + 1):
            task = passes.begin()
            order = self._order(X.shape[0], rng)
            if number == 1:
                head = slice(window_length(self.n_components))
                self._keep(self._first(X[head if order is None else order[head]], seed))
            self._pass(X, order, unseen)
            self.n_iter_ = number
            error, error_before = self.prequential_error_, error
            self._log("pass %d of %d: prequential error %.4g", number, self.max_iter, error)
            stop = passes.end(task, self.__dict__)
            if stop or (self.tol > 0.0 and error_before - error < self.tol * error_before):
                break
        passes.finish(self.__dict__)
        self._warn_of(unseen)

    def _pass(self, X: Any, order: NDArray[np.intp] | None, unseen: NDArray[np.bool_]) -> None:
        self._keep(replace(self._state, code=None))
        for block in blocks(X, order, block_rows(X, self.batch_size)):
            state, _, info = step(self._state, block, reuse=True)
            self._keep(state, _sum(self._totals, info))
            if unseen.any():
                unseen &= ~_observed(block)

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
            if not fitted or self._rule() != self._state.rule:
                check_parameters(self)
            X = self._validated(X, reset=not fitted)
            if not fitted:
                self._seed = check_random_state(self.random_state).randint(2**31)
                self._head = X[:0]
            if self._head is None:
                self._learn(replace(self._state, rule=self._rule()), X, self._totals)
            else:
                self._learn_head(X)
        return self

    def _learn_head(self, X: Any) -> None:
        """Learn from a stream so young that every new row may still enter the first dictionary.

        The model is always what it would be had all rows so far come at once: that is what makes
        it independent of how the stream is cut. The rows are kept until there are enough.
        """
        together = scipy.sparse.vstack if scipy.sparse.issparse(X) else np.concatenate
        rows = together([self._head, X.astype(self._head.dtype, copy=False)])
        self._learn(self._first(rows, self._seed), rows, NOTHING)
        if rows.shape[0] < window_length(self.n_components):
            self._head = rows

    def _learn(self, state: State, X: Any, totals: Info) -> None:
        state, _, info = step(state, X, reuse=X.shape[0] == 1)
        self._keep(state, _sum(totals, info))

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
        rows = self._validated(X)
        codes = self._encode(rows)[0]
        complete = dense_with_holes(rows).copy()
        for start in range(0, len(complete), 1024):
            here = slice(start, start + 1024)
            holes = np.isnan(complete[here])
            if holes.any():
                complete[here][holes] = self._decode(codes[here])[holes]
        return like_frame(X, complete)

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
        return 1.0 - relative_error(self._encode(self._validated(X))[1]) ** 2

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
        return relative_error(self._totals)

    # -- inside -----------------------------------------------------------------------------

    def _rule(self) -> Rule:
        return Rule(
            lam=self.lam,
            memory=self.memory,
            ridge=self.ridge,
            smooth=self.smooth,
            inner_iter=self.inner_iter,
            batch_size=self.batch_size,
        )

    def _first(self, head: Any, seed: int) -> State:
        init = check_init(self.init, self.n_components, head.shape[1])
        return first_state(head, self.n_components, self._rule(), init=init, seed=seed)

    def _keep(self, state: State, totals: Info = NOTHING) -> None:
        self._state, self._totals, self._head = state, totals, None

    def _order(self, n: int, rng: np.random.RandomState) -> NDArray[np.intp] | None:
        """In which order a pass takes the rows; None as they lie."""
        if self.shuffle == "uniform":
            return rng.randint(n, size=n)
        return rng.permutation(n) if self.shuffle else None

    def _encode(self, X: Any) -> tuple[NDArray[np.float64], Info]:
        return encode(replace(self._state, rule=self._rule()), X)

    def _decode(self, codes: NDArray[Any]) -> NDArray[Any]:
        C = self._state.C
        return (codes.astype(C.dtype, copy=False) @ C.T) * C.dtype.type(self._state.scale)

    def _validated(self, X: Any, reset: bool = False) -> Any:
        """X as an array or CSR matrix of floats, checked by scikit-learn but for infinity.

        Infinity is found by the products that a step needs anyway.
        """
        if not reset:
            check_is_fitted(self)
            if (  # what streams bring most, one row at a time: nothing to convert or to complain of
                type(X) is np.ndarray
                and X.dtype == self._state.C.dtype
                and X.ndim == 2
                and X.shape[0] > 0
                and X.shape[1] == self.n_features_in_
                and not hasattr(self, "feature_names_in_")
            ):
                return X
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=[np.float64, np.float32],
            ensure_all_finite=False,
        )  # fmt: skip

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

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_state")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class OMFB(ClassNamePrefixFeaturesOutMixin, _Factorizer):  # type: ignore[misc]
    """Online matrix factorisation via Broyden updates.

    TODO
    """

    def transform(self, X: Any) -> NDArray[Any]:
        """Codes of the rows of X, which may have holes.

        With ``smooth > 0`` the rows are taken as consecutive in time and coded jointly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
        """
        codes = self._encode(self._validated(X))[0]
        return codes.astype(self._state.C.dtype, copy=False)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows from their codes: ``X @ components_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Codes, as from `transform`.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        codes = check_array(X, dtype=[np.float64, np.float32], input_name="X")
        if codes.shape[1] != self.n_components:
            raise ValueError(
                f"X has {codes.shape[1]} columns, but codes have n_components = "
                f"{self.n_components}. Give what `transform` returns."
            )
        return self._decode(codes)

    @property
    def _n_features_out(self) -> int:
        return self._state.C.shape[1]


class OMFBImputer(OneToOneFeatureMixin, _Factorizer):  # type: ignore[misc]
    """`OMFB` whose `transform` fills holes, for pipelines.

    TODO
    """

    def transform(self, X: Any) -> NDArray[Any]:
        """X with its holes filled; the same as `complete`, as an array.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        X_complete : ndarray of shape (n_samples, n_features)
        """
        return np.asarray(self.complete(X))


def relative_error(info: Info) -> float:
    """sqrt(residual / energy); 0 where there was nothing to explain."""
    return float(np.sqrt(info.residual / info.energy)) if info.energy > 0.0 else 0.0


def _sum(a: Info, b: Info) -> Info:
    return Info(a.residual + b.residual, a.energy + b.energy)


def _observed(X: Any) -> NDArray[np.bool_]:
    """Which features some row of X observes."""
    if scipy.sparse.issparse(X):
        seen = np.zeros(X.shape[1], dtype=bool)
        seen[X.indices] = True
        return seen
    if not np.isnan(X[0]).any():
        return np.ones(X.shape[1], dtype=bool)
    return ~np.isnan(X).all(axis=0)
