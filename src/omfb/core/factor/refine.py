"""The last touch for a short table: each feature gets a precision of its own.

Over a stream all features share one precision S, by how often each was observed. That is not enough
where a feature is missing just when codes are unlike their usual selves, as in one long gap of a
table whose levels drift: its loadings would be believed in directions in which it was never seen. A
few rounds of codes and features solved exactly (`kernels/solve_features.py`) put that right.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..linalg.rows import Rows, gram
from ..linalg.solve_features import add_rows, solve_features
from ..linalg.threads import in_threads
from .e_step import encode_rows
from .holdout import hold_out
from .rank import with_components
from .robust import clip_rows, outlier_limit
from .state import State, evolve
from .stats import Matrix, inverse
from .whiten import Whitened, by_feature, pattern_of

ROUNDS = 2
# What a complete row tells of a code, beside its prior, if the component is as good as not there.
LEAST_SIZE = 1e-3
# Rows whose codes' covariances are held at a time.
PART = 256
# Entries of all precisions, and multiply-adds of a round: more is not worth waiting for.
MOST_ENTRIES, MOST_WORK = 1 << 23, 1e9


def polished(state: State, X: Any, rounds: int = ROUNDS) -> State:
    """The model after a few rounds over a whole table, if that is short enough."""
    if not state.schedule.has_missing:
        return _polished_complete(state, X)
    there = _there(state)
    fewer, m = with_components(state, there), len(state.params.C)
    if m * len(there) ** 2 > MOST_ENTRIES:
        return state
    rows = [
        clip_rows(state, part, hold_out(state, part)[0])
        for part in (X[start : start + PART] for start in range(0, X.shape[0], PART))
    ]
    observed = sum(len(part.entries.values) for part in rows)
    lacking = X.shape[0] * m - observed
    if work_of_a_round(fewer, lacking, lacking + observed) > MOST_WORK:
        return state
    for _ in range(rounds):
        C = _solved(fewer, rows, missing=lacking < observed).astype(state.params.C.dtype)
        fewer = evolve(fewer, C=C, G=gram(C))
    C = state.params.C.copy()
    C[:, there] = fewer.params.C
    return evolve(state, C=C, G=gram(C))


def _there(state: State) -> NDArray[np.int64]:
    """Which components have loadings to speak of; and the mean."""
    sizes = np.diagonal(state.batch.G)[:-1]
    return np.append(np.flatnonzero(sizes > LEAST_SIZE), len(sizes))


def work_of_a_round(state: State, n_missing: int, n_entries: int) -> float:
    """Multiply-adds of a round over a table, about: it goes by what is missing, or by the rest."""
    return float(min(n_missing, n_entries - n_missing)) * state.params.C.shape[1] ** 2


def _polished_complete(state: State, X: Any) -> State:
    """One round for complete rows: all features share a system, and it takes two products."""
    rows = clip_rows(state, X)
    if not rows.complete:
        return state
    codes = encode_rows(state, rows)
    S = codes.X.T @ codes.X + np.diag(1.0 / state.params.v)
    S[:-1, :-1] += codes.cov_sum
    C = rows.values.T @ (codes.X @ inverse(S)).astype(state.params.C.dtype)  # type: ignore[union-attr]
    return evolve(state, C=C, G=gram(C))


def _solved(state: State, rows: list[Whitened], missing: bool) -> Matrix:
    """The dictionary, each feature solved from the rows that observe it."""
    m, R = state.params.C.shape
    S, everything = np.zeros((m, R, R)), np.zeros((R, R))
    right = np.zeros((m, R))
    for part in rows:
        codes = encode_rows(state, part, limit=outlier_limit(state), keep_covariances=True)
        X = codes.X
        if codes.dropped.any():
            part = part.without(codes.dropped)
        if missing:
            everything += X.T @ X
            everything[:-1, :-1] += codes.cov_sum
        pattern = by_feature(_complement(part, m) if missing else part.entries, m)
        _add(S, -1.0 if missing else 1.0, X, codes.covariances, pattern)
        if part.values is not None:
            right += part.values.T.astype(np.float64) @ X
        else:
            columns = by_feature(part.entries, m)
            which = np.repeat(np.arange(m), np.diff(columns.starts))
            np.add.at(right, which, columns.values[:, None] * X[columns.features])
    C = state.params.C.astype(np.float64)
    prior = 1.0 / (state.params.v * _sizes(state, rows)[:, None])
    in_threads(
        lambda first, last: solve_features(S, everything, prior, right, first, last, C),
        m,
        m * R**3,
    )
    return C


def _sizes(state: State, rows: list[Whitened]) -> Matrix:
    """Prior variances of features' loadings beside the average one's.

    Where features are not scaled, small ones have small loadings: with the others' prior they would
    follow the noise.
    """
    m = len(state.params.C)
    if state.config.scale:
        return np.ones(m)
    energy, count = np.zeros(m), np.zeros(m)
    for part in rows:
        features, values = part.entries.features, part.entries.values
        energy += np.bincount(features, values**2, minlength=m)
        count += np.bincount(features, minlength=m)
    variance = energy / np.maximum(count, 1.0)
    return np.clip(variance / max(float(variance.mean()), 1e-300), 1e-12, 1.0)


def _add(S: Matrix, sign: float, X: Matrix, covariances: Matrix, pattern: Rows) -> None:
    in_threads(
        lambda first, last: add_rows(
            S, sign, X, covariances, pattern.starts, pattern.features, first, last
        ),
        len(S),
        len(pattern.values) * X.shape[1] ** 2,
    )


def _complement(rows: Whitened, n_features: int) -> Rows:
    """What is missing of each row, in place of what is observed."""
    seen = np.zeros((len(rows), n_features), bool)
    starts, features, _ = rows.entries
    seen[np.repeat(np.arange(len(rows)), np.diff(starts)), features] = True
    begins, which = pattern_of(~seen)
    return Rows(begins, which, np.ones(len(which)))
