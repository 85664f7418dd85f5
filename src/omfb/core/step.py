"""`init` and `step`: the functional interface. A step chooses the kernel and when to shrink."""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .blocks import Complete, Piece, complete_rows, pieces
from .kernels.batch import learn_batch
from .kernels.missing import learn_missing
from .kernels.missing_batch import learn_missing_batch
from .kernels.prior import rows_to_go, with_prior
from .kernels.sequence import block_length, learn_block
from .kernels.shared import Rows, Step, gram
from .start import first_dictionary
from .state import Info, Rule, State

# So few complete rows are learned from faster one by one than as a block.
MAX_SINGLE_ROWS = 2
# Of the mean energy of the first atoms: enough to keep a forgetting dictionary from fading
# (see State.ridge), too little to be seen in a code.
LEAST_RIDGE = 1e-6


def init(
    X: Any,
    n_components: int,
    rule: Rule | None = None,
    *,
    init: str | NDArray[Any] = "data",
    seed: int | None = None,
) -> State:
    """Make the state before the first step.

    Parameters
    ----------
    X : ndarray or scipy.sparse of shape (n_samples, n_features), float32 or float64
        The first rows of the stream: they give the type, the number of features and, with
        ``init="data"``, the first atoms. They are not learned from.
    n_components : int
        Atoms of the dictionary.
    rule : Rule, default=Rule()
        How to learn.
    init : {"data", "random"} or ndarray of shape (n_components, n_features), default="data"
        The first dictionary: rows of X, uniform on [0, 1) as in the paper, or given.
    seed : int or None, default=None
        Seed of what is drawn at random.

    Examples
    --------
    >>> import numpy as np
    >>> import omfb
    >>> Y = np.random.default_rng(0).random((100, 20))
    >>> state = omfb.init(Y, n_components=3, seed=0)
    >>> state, codes, info = omfb.step(state, Y)
    >>> codes.shape, state.n_seen
    ((100, 3), 100)
    """
    rule = Rule() if rule is None else rule
    C, scale = first_dictionary(X, n_components, init, seed)
    G = gram(C)
    least_ridge = LEAST_RIDGE * float(np.trace(G)) / n_components
    S = rule.lam * np.eye(n_components)
    return State(rule=rule, C=C, G=G, S=S, scale=scale, least_ridge=least_ridge)


def step(state: State, X: Any, *, reuse: bool = False) -> tuple[State, NDArray[Any], Info]:
    """Learn from a block of rows: return the next state, the rows' codes, and an `Info`.

    Parameters
    ----------
    state : State
        Where to start from; unchanged unless `reuse`.
    X : ndarray or scipy.sparse of shape (n_samples, n_features)
        Missing entries are NaN in an array, absent in a sparse matrix. How rows are cut into
        blocks does not matter; where ``batch_size > 1``, cut at its multiples.
    reuse : bool, default=False
        Allow writing into the arrays of `state`, which is lost then. If X is one row, an error
        still leaves it as it was.
    """
    X = in_units(X, state)
    codes = np.empty((X.shape[0], state.C.shape[1]), state.C.dtype)
    if state.rule.shrink == 0.0:
        state, info, _ = _learn_rows(state, X, codes, reuse)
        return state, codes, info
    if state.rule.memory == 0.0:
        raise ValueError(
            f"shrink={state.rule.shrink!r} needs a memory that can hold it: set memory > 0, or "
            f"shrink=0 for the paper's rule."
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
    """X in the state's type and units of its scale."""
    if X.ndim != 2 or X.shape[1] != len(state.C):
        raise ValueError(
            f"X has {X.shape[-1]} features, but the model has {len(state.C)}. Give an array of "
            f"shape (n_samples, {len(state.C)})."
        )
    X = X.astype(state.C.dtype, copy=False)
    return X if state.scale == 1.0 else X * state.C.dtype.type(1.0 / state.scale)


def _learn_rows(state: State, X: Any, codes: NDArray[Any], reuse: bool) -> tuple[State, Info, int]:
    """Learn from rows and fill in their codes; also tells how many entries were observed."""
    whole = state.rule.batch_size > 1
    length = state.rule.batch_size if whole else block_length(state.C.shape[1])
    given = state.C
    free: list[NDArray[Any]] = []
    at = entries = 0
    residual = energy = 0.0
    with np.errstate(over="ignore", invalid="ignore"):  # found, and refused, by the kernels
        for piece in pieces(X, length, whole=whole):
            done = 0
            while done < len(piece):
                left = piece.part(done, len(piece)) if done else piece
                state, new_codes, info = _learn(state, left, reuse or state.C is not given, free)
                codes[at + done : at + done + len(new_codes)] = new_codes
                done += len(new_codes)
                residual += info.residual
                energy += info.energy
            at += done
            entries += piece.n_entries
    return state, Info(residual, energy), entries


def _learn(state: State, piece: Piece, reuse: bool, free: list[NDArray[Any]]) -> Step:
    """Learn from some rows at the head of the piece, at least one."""
    if state.rule.batch_size > 1:
        if isinstance(piece, Complete):
            return learn_batch(state, piece.Y, piece.N, reuse)
        return learn_missing_batch(state, piece, reuse)
    if state.rule.smooth > 0.0 and state.code is None:
        return _learn_first(state, piece.part(0, 1), reuse, free)
    if isinstance(piece, Rows):
        return learn_missing(state, piece, reuse)
    if len(piece) > MAX_SINGLE_ROWS:
        learned = learn_block(state, piece.Y, piece.N, reuse, free)
        if len(learned[1]) > 0:  # none if the small system is singular
            return learned
    return learn_missing(state, complete_rows(piece.Y), reuse)


def _learn_first(state: State, row: Piece, reuse: bool, free: list[NDArray[Any]]) -> Step:
    """Learn from one row that has no code before it to be pulled to."""
    free_rule = replace(state.rule, smooth=0.0)
    learned, codes, info = _learn(replace(state, rule=free_rule), row, reuse, free)
    empty = isinstance(row, Rows) and len(row.values) == 0
    return replace(learned, rule=state.rule, code=None if empty else learned.code), codes, info
