"""`init` and `step`, the functional interface: a step chooses kernels and when to shrink."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import (
    MAX_SINGLE_ROWS,
    MISSING_ROWS,
    Complete,
    alike,
    dense_rows,
    is_complete,
    pieces,
    sparse_rows,
)
from ..info import Info
from ..linalg.rows import Rows, gram
from .block import block_length
from .constraints import first_atoms, nearest
from .init import first_dictionary
from .mini_batch import learn_batch
from .missing_batch import learn_missing_batch
from .missing_rows import learn_missing
from .penalties import Quadratic, penalty_of
from .precision import Step
from .prior import rows_to_go, with_prior
from .runs import learn_run
from .state import BroydenConfig, State
from .zero_rows import learn_zero_rows

# Relative to the mean energy of the first atoms: enough to keep a forgetting dictionary from fading
# (see `State.ridge`), too little to matter in a code.
LEAST_RIDGE = 1e-6


def init(
    X: Any,
    n_components: int,
    config: BroydenConfig | None = None,
    *,
    init: str | NDArray[Any] = "data",
    seed: int | None = None,
) -> State:
    """Make the state before the first step.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n_samples, n_features), float32 or float64
        The first rows of the stream: they give the type, the number of features and, with
        ``init="data"``, the first atoms. `init` does not learn from them.
    n_components : int
        Number of atoms of the dictionary.
    config : BroydenConfig, default=BroydenConfig()
        How to learn.
    init : {"data", "random"} or ndarray of shape (n_components, n_features), default="data"
        The first dictionary: rows of X, uniform on [0, 1) as in the paper, or this array.
    seed : int or None, default=None
        Seed of the random numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb.core.broyden.step import init, step
    >>> Y = np.random.default_rng(0).random((100, 20))
    >>> state = init(Y, n_components=3, seed=0)
    >>> state, codes, info = step(state, Y)
    >>> codes.shape, state.n_seen
    ((100, 3), 100)
    """
    config = BroydenConfig() if config is None else config
    C, scale = first_dictionary(X, n_components, init, seed, config.absent == "zero")
    if config.constrains_dictionary:
        C = _first_feasible(C, scale, config, given=not isinstance(init, str))
    return state_before(config, C, gram(C), scale)


def _first_feasible(
    C: NDArray[Any], scale: float, config: BroydenConfig, given: bool
) -> NDArray[Any]:
    """The first dictionary, made to satisfy its constraints."""
    if not given:
        return first_atoms(C, scale, config.positive_dict, config.alpha > 0.0)
    if config.positive_dict and (C < 0.0).any():
        raise ValueError(
            "init has negative entries, which positive_dict=True excludes: give nonnegative atoms."
        )
    largest = 1.0 / scale if config.alpha > 0.0 else np.inf
    return nearest(C, np.eye(C.shape[1]), config.positive_dict, largest)


def state_before(config: BroydenConfig, C: Any, G: NDArray[np.float64], scale: float) -> State:
    """The state before the first step, given a first dictionary and its Gram matrix."""
    least_ridge = LEAST_RIDGE * float(np.trace(G)) / len(G)
    S = config.lam * np.eye(len(G))
    return State(
        config=config, C=C, G=G, S=S, scale=scale, least_ridge=least_ridge, start_weight=1.0
    )


def step(state: State, X: Any, *, reuse: bool = False) -> tuple[State, NDArray[Any], Info]:
    """Learn from a block of rows: return the next state, the rows' codes, and an `Info`.

    Parameters
    ----------
    state : State
        The current state; unchanged unless `reuse`.
    X : ndarray or scipy.sparse of shape (n_samples, n_features)
        Missing entries are NaN in an array, absent in a sparse matrix (unless the config says that
        these are zeros). How a stream is cut into
        blocks does not matter; with ``batch_size > 1``, cut at its multiples.
    reuse : bool, default=False
        Allow overwriting the arrays of `state`, which must not be used afterwards. If X is one
        row, an error still leaves them unchanged.
    """
    X = in_units(X, state)
    codes = np.empty((X.shape[0], state.C.shape[1]), state.C.dtype)
    if state.config.shrink == 0.0 and not state.config.constrains_dictionary:
        state, info, _ = _learn_rows(state, X, codes, reuse)
        return state, codes, info
    if state.config.shrink > 0.0 and state.config.forget_factor == 0.0:
        raise ValueError(
            f"shrink={state.config.shrink!r} needs forget_factor > 0, which keeps past codes: set "
            f"both, or shrink=0 for the paper's rule."
        )
    given, at, total = state.C, 0, Info(0.0, 0.0)
    while at < len(codes):
        here = slice(at, at + rows_to_go(state))
        mine = reuse or state.C is not given
        state, info, entries = _learn_rows(state, X[here], codes[here], mine)
        state = with_prior(state, len(codes[here]), entries, info.residual)
        at = here.stop
        total = total.plus(info)
    return state, codes, total


def in_units(X: Any, state: State) -> Any:
    """X in the state's dtype and in units of its scale."""
    if X.ndim != 2 or X.shape[1] != len(state.C):
        raise ValueError(
            f"X has {X.shape[-1]} features, but the model has {len(state.C)}. Give an array of "
            f"shape (n_samples, {len(state.C)})."
        )
    X = X.astype(state.C.dtype, copy=False)
    return X if state.scale == 1.0 else X * state.C.dtype.type(1.0 / state.scale)


def _learn_rows(state: State, X: Any, codes: NDArray[Any], reuse: bool) -> tuple[State, Info, int]:
    """Learn from rows and fill in their codes; also return the number of observed entries."""
    with np.errstate(over="ignore", invalid="ignore"):  # the kernels check for it
        if scipy.sparse.issparse(X) and state.config.absent == "zero":
            state, codes[:], info = learn_zero_rows(state, X, reuse)
            return state, info, len(codes) * X.shape[1]
        if (
            1 <= len(codes) <= MAX_SINGLE_ROWS
            and state.config.batch_size == 1
            and not is_free(state)
        ):
            rows = sparse_rows(X) if scipy.sparse.issparse(X) else dense_rows(X)
            state, codes[:], info = learn_missing(state, rows, reuse)
            return state, info, rows.n_entries
        learn = _mini_batches if state.config.batch_size > 1 else _single_rows
        at = entries = 0
        total = Info(0.0, 0.0)
        for learned, observed in learn(state, X, reuse):
            state, new_codes, info = learned
            codes[at : at + len(new_codes)] = new_codes
            at += len(new_codes)
            entries += observed
            total = total.plus(info)
    return state, total, entries


def is_free(state: State) -> bool:
    """Whether the next row should be pulled to a previous code, but there is none."""
    return state.code is None and state.config.smooth > 0.0


def _mini_batches(state: State, X: Any, reuse: bool) -> Iterator[tuple[Step, int]]:
    given = state.C
    for piece in pieces(X, state.config.batch_size):
        mine = reuse or state.C is not given
        if isinstance(piece, Complete):
            learned = learn_batch(state, piece.Y, mine)
        else:
            learned = learn_missing_batch(state, piece, mine)
        state = learned[0]
        yield learned, piece.n_entries


def _single_rows(state: State, X: Any, reuse: bool) -> Iterator[tuple[Step, int]]:
    """Learn row by row, in blocks where consecutive rows observe the same features."""
    given = state.C
    n, sparse = X.shape[0], scipy.sparse.issparse(X)
    rows = sparse_rows(X) if sparse else None
    at = 0
    while at < n:
        mine = reuse or state.C is not given
        free = is_free(state)
        last = min(at + (1 if free else MISSING_ROWS), n)
        if not sparse and not free and n - at > MAX_SINGLE_ROWS and is_complete(X[at]):
            learned = _learn_alike(state, X[at:], None, mine)
            if (done := len(learned[1])) > 0:
                yield learned, done * X.shape[1]
                state = learned[0]
                at += done
                continue
            last = min(at + block_length(*state.C.shape), n)
        some = dense_rows(X[at:last], first_row=at) if rows is None else rows.part(at, last)
        for learned, entries in (_learn_free if free else _learn_some)(state, some, mine):
            yield learned, entries
            state = learned[0]
        at = last


def _learn_some(state: State, rows: Rows, reuse: bool) -> Iterator[tuple[Step, int]]:
    """Learn from rows with missing entries, in blocks where they miss the same ones."""
    given = state.C
    for piece in alike(rows, state.C.shape[1]):
        done = 0
        while done < len(piece):
            mine = reuse or state.C is not given
            if isinstance(piece, Rows):
                learned = learn_missing(state, piece, mine)
            else:
                learned = _learn_alike(state, piece.Y[done:], piece.features, mine)
                if len(learned[1]) == 0:
                    learned = learn_missing(state, piece.rows(done), mine)
            yield learned, piece.n_entries * len(learned[1]) // len(piece)
            state = learned[0]
            done += len(learned[1])


def _learn_alike(
    state: State, Y: NDArray[Any], features: NDArray[np.int32] | None, reuse: bool
) -> Step:
    """Learn from the first rows of Y, which observe the same features; none if singular."""
    r = state.C.shape[1]
    linear = isinstance(penalty_of(state), Quadratic)
    if linear and Y.shape[1] <= r and state.ridge + state.smooth == 0.0:
        return state, np.empty((0, r)), Info(0.0, 0.0)  # codes fit exactly: `learn_missing`
    return learn_run(state, Y, features, reuse)


def _learn_free(state: State, row: Rows, reuse: bool) -> Iterator[tuple[Step, int]]:
    """Learn from one row that has no previous code."""
    free = replace(state, config=replace(state.config, smooth=0.0))
    learned, codes, info = learn_missing(free, row, reuse)
    code = learned.code if row.n_entries > 0 else None
    yield (replace(learned, config=state.config, code=code), codes, info), row.n_entries
