"""Rows in units of the noise, centred: missing entries are 0 and marked."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from ..blocks import check_finite, sparse_rows, too_large
from ..linalg.entries import LARGEST, list_seen, mark, whiten
from ..linalg.rows import Rows
from ..weighted import entry_precisions, precisions_of, weights_of
from .state import State
from .stats import Vector

SAFE_RANGE = {np.dtype(np.float64): 1e150, np.dtype(np.float32): 1e25}
HeldOut = tuple[int, NDArray[np.int32]]
"""A row, and features of it that count as missing."""


class Whitened:
    """Rows in units of the noise.

    Attributes
    ----------
    values : ndarray of shape (q, m) or None
        All entries, 0 where missing; None of a sparse matrix.
    seen : ndarray of shape (q, m) or None
        Which are not missing; None if none is, or there are no `values`.
    counts : ndarray of shape (q,)
        How many features each row observes.
    shares : ndarray of shape (q,)
        Which share of the features that is; of rows with weights, times their weight and the mean
        weight of these entries.
    weights : ndarray of shape (q,) or None
        Weights of the rows; None if all are 1.
    precisions : ndarray or None
        Weights of the entries, in the order of `entries`; None if all are 1.
    within_limit : bool
        Whether no value is beyond the clip limit in units of the noise, so none has to be clipped.
    """

    def __init__(
        self, n_features: int, values: NDArray[Any] | None, seen: NDArray[np.bool_] | None,
        counts: NDArray[np.int64], entries: Rows | None = None, within_limit: bool = False,
        weights: Vector | None = None, precisions: Vector | None = None,
    ) -> None:  # fmt: skip
        self.within_limit = within_limit
        self.values, self.seen, self.counts, self._entries = values, seen, counts, entries
        self.weights, self.precisions, self.n_features = weights, precisions, n_features
        self.shares: Vector = counts / max(n_features, 1)
        if precisions is not None:
            owner = np.repeat(np.arange(len(counts)), counts)
            self.shares = np.bincount(owner, precisions, len(counts)) / n_features
        if weights is not None:
            self.shares = self.shares * weights

    def __len__(self) -> int:
        return len(self.shares)

    def with_entries(self, entries: Rows) -> "Whitened":
        """The same entries with other values."""
        return Whitened(
            self.n_features, None, None, self.counts, entries, weights=self.weights,
            precisions=self.precisions,
        )  # fmt: skip

    def weighted(self, given: Any, unit: float) -> "Whitened":
        """The same rows with the weights of the rows that they were made of.

        Those of entries in units of `Params.precision`.
        """
        weights, precisions = weights_of(given), precisions_of(given)
        if weights is None:
            return self
        if precisions is None:
            return Whitened(
                self.n_features, self.values, self.seen, self.counts, self._entries,
                self.within_limit, weights,
            )  # fmt: skip
        starts, features, _ = self.entries
        owner = np.repeat(np.arange(len(self)), np.diff(starts))
        each = entry_precisions(precisions, owner, features) / unit
        return Whitened(
            self.n_features, None, None, self.counts, self.entries, weights=weights,
            precisions=each,
        )  # fmt: skip

    @property
    def complete(self) -> bool:
        """Whether no entry is missing."""
        return self.values is not None and self.seen is None

    @cached_property
    def entries(self) -> Rows:
        """The observed entries, row by row, as float64: what is compiled for them is, once."""
        if self._entries is not None:
            return self._entries
        assert self.values is not None
        seen = np.ones(self.values.shape, bool) if self.seen is None else self.seen
        starts = np.concatenate([[0], np.cumsum(self.counts)])
        features, entries = np.empty(starts[-1] + 1, np.int32), np.empty(starts[-1] + 1)
        list_seen(self.values, seen, features, entries)
        return Rows(starts, features[:-1], entries[:-1])

    def without(self, gone: NDArray[np.bool_]) -> "Whitened":
        """The rows without some of their entries, given in the order of `entries`."""
        starts, features, _ = self.entries
        rest = select(self.entries, ~gone)
        counts = np.diff(rest.starts)
        m, weights = self.n_features, self.weights
        if self.values is None:
            kept = None if self.precisions is None else self.precisions[~gone]
            return Whitened(m, None, None, counts, rest, weights=weights, precisions=kept)
        dense, seen = self.values.copy(), np.ones(self.values.shape, bool)
        if self.seen is not None:
            seen = self.seen.copy()
        rows = np.repeat(np.arange(len(self)), np.diff(starts))[gone]
        dense[rows, features[gone]] = 0.0
        seen[rows, features[gone]] = False
        return Whitened(m, dense, seen, counts, rest, weights=weights)


def whitened(
    state: State, X: Any, held_out: Sequence[HeldOut] = (), out: NDArray[Any] | None = None
) -> Whitened:
    """The rows of an array or sparse matrix in units of the model's noise.

    Held-out entries count as missing. `out` is where the rows are written to, if given.
    """
    m, dtype = len(state.params.C), state.params.C.dtype
    inverse = 1.0 / state.params.noise_std
    if scipy.sparse.issparse(X):
        starts, features, values = _without(sparse_rows(X, squares=False), held_out)
        values = (values.astype(np.float64) - state.params.center[features]) * inverse[features]
        if not np.abs(values).max(initial=0.0) < LARGEST:
            raise too_large()
        return Whitened(state.width, None, None, np.diff(starts), Rows(starts, features, values))
    Y = np.ascontiguousarray(X)
    Y = Y if Y.flags.writeable else Y.copy()  # read-only is a type of its own, compiled again
    out = np.empty(Y.shape, dtype) if out is None else out[: len(Y)]
    counts = np.empty(len(Y), np.int64)
    center = state.params.center
    if dtype == np.float32 and in_safe_range(state):  # rounded as the data are
        center, inverse = center.astype(dtype), inverse.astype(dtype)
    limits = (
        dtype.type(state.config.hyper.clip_limit),
        dtype.type(LARGEST if dtype == np.float64 else np.inf),
    )
    n_beyond, n_huge = whiten(Y, center, inverse, *limits, out, counts)
    if n_huge and inverse.dtype == np.float32:
        n_beyond, n_huge = whiten(
            Y, state.params.center, 1.0 / state.params.noise_std, *limits, out, counts
        )
    if n_huge:
        check_finite(Y)
        raise too_large()
    within_limit = n_beyond == 0
    for t, features in held_out:
        out[t, features] = np.nan
        counts[t] -= len(features)
    if len(counts) == 0 or counts.min() == m:
        return Whitened(state.width, out, None, counts, within_limit=within_limit)
    seen = np.empty(Y.shape, bool)
    mark(out, seen)
    return Whitened(state.width, out, seen, counts, within_limit=within_limit)


def _without(rows: Rows, held_out: Sequence[HeldOut]) -> Rows:
    if not held_out:
        return rows
    kept = np.ones(len(rows.values), bool)
    for t, features in held_out:
        here = slice(rows.starts[t], rows.starts[t + 1])
        kept[here] = ~np.isin(rows.features[here], features)
    return select(rows, kept)


def select(rows: Rows, kept: NDArray[np.bool_]) -> Rows:
    """The rows with some of their entries."""
    before = np.concatenate([[0], np.cumsum(kept)])
    return Rows(before[rows.starts], rows.features[kept], rows.values[kept])


def pattern_of(mask: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Where each row of a mask begins in the list of features that are marked, and that list."""
    starts = np.concatenate([[0], np.cumsum(mask.sum(axis=1))])
    return starts, np.nonzero(mask)[1].astype(np.int32)


def in_safe_range(state: State) -> bool:
    """Whether centres and units are far from the ends of the data's type."""
    most = SAFE_RANGE[state.params.C.dtype]
    noise = state.params.noise_std
    return bool(
        noise.min() > 1.0 / most and noise.max() < most and np.abs(state.params.center).max() < most
    )


def by_feature(rows: Rows, n_features: int) -> Rows:
    """The same entries feature by feature: which rows observe each, and what."""
    matrix = scipy.sparse.csr_array(
        (rows.values, rows.features, rows.starts), shape=(len(rows), n_features)
    ).tocsc()
    starts = matrix.indptr.astype(np.int64)
    return Rows(starts, matrix.indices.astype(np.int32, copy=False), matrix.data)
