"""The update rule by slices of the features: sums over slices, one decision, updates of slices.

G = CᵀC, P = Y C and N = Y Yᵀ are sums over any partition of the features, and each feature is
updated on its own. So a step of q complete rows, wherever the slices C_s and Y_s are, is

    P, N, G = Σ_s (Y_s C_s, Y_s Y_sᵀ, …)       `addends`, `Addends.plus`
    X, B by the rows' steps in reduced space     `decide`
    C_s ← C_s (I − XᵀB) + Y_sᵀB                `updated`

which is Algorithm 1, or the mini-batch update, up to rounding. The first dictionary is made in the
same way: all that it needs of all features are the h × h products of the first h rows (`First`,
`first_slice`).

Between steps the client keeps a `State` whose dictionary has no features.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..blocks import too_large
from ..info import Info
from ..linalg.rows import Matrix, gram
from ..linalg.threads import products_in_one_thread, team
from .block import ReducedState, after_block, block_length, take_steps
from .dictionary import Dictionary
from .init import independent_rows
from .mini_batch import batch_space
from .state import State
from .step import is_free

# Multiply-adds that take about 2 ms, as long as sending a slice's tasks takes.
TASKS_WORK = 2e7
MOST_ROWS = 256


class Addends(NamedTuple):
    """Contributions of slices of the features to P = Y C, N = Y Yᵀ and, if requested, G = CᵀC.

    Only the upper triangle of N is computed.
    """

    P: Matrix
    N: Matrix
    G: Matrix | None

    def plus(self, other: "Addends") -> "Addends":
        """The sum of both contributions."""
        with _quiet():
            G = None if self.G is None or other.G is None else self.G + other.G
            return Addends(self.P + other.P, self.N + other.N, G)


class Decision(NamedTuple):
    """The result of a step in reduced space: its state, X and B for the slices, and energies."""

    state: State
    X: Matrix
    B: Matrix
    info: Info


def without_features(state: State) -> State:
    """The state with a dictionary of no features, which is enough in reduced space."""
    return replace(state, C=np.empty((0, state.C.shape[1]), state.C.dtype))


def longest_step(n_components: int, widths: Sequence[int]) -> int:
    """Rows of a step for slices of these widths: more than in one process if they are narrow.

    The work of N = Y Yᵀ grows with the square of the rows; for narrow slices it is hidden by the
    time that sending the tasks takes anyway. Too many rows would let rounding accumulate.
    """
    rows = int((TASKS_WORK * len(widths) / max(widths)) ** 0.5)
    return max(block_length(max(widths), n_components), min(rows, MOST_ROWS))


def step_lengths(state: State, n_rows: int, longest: int) -> list[int]:
    """Rows of each step that a block is cut into: mini-batches, or about equal lengths."""
    size = state.config.batch_size
    if size > 1:
        return [min(size, n_rows - start) for start in range(0, n_rows, size)]
    alone = [1] if is_free(state) else []  # only the first row has no previous code
    n_rows -= len(alone)
    count = -(-n_rows // longest)
    return alone + [n_rows * (at + 1) // count - n_rows * at // count for at in range(count)]


@products_in_one_thread()
def addends(C: NDArray[Any], Y: NDArray[Any], with_gram: bool) -> Addends:
    """A slice's contribution to the sums of a step."""
    with team(Y.size * C.shape[1]) as helpers, _quiet():
        P, N = Dictionary(C, False, len(Y), helpers).project(Y)
        return Addends(P, N, gram(C) if with_gram else None)


@products_in_one_thread()
def decide(state: State, sums: Addends, n_features: int) -> Decision:
    """Take the steps of some rows in reduced space."""
    P, N, G = sums
    if G is not None:
        state = replace(state, G=G, entries_since_gram=0)
    if not np.isfinite(np.trace(N)):
        raise too_large()
    with _quiet():
        if state.config.batch_size > 1:
            block = batch_space(state, P, np.triu(N) + np.triu(N, 1).T)
        else:
            free = replace(state, config=replace(state.config, smooth=0.0))
            reduced = ReducedState.of(free if is_free(state) else state)
            found = take_steps(reduced, P.copy(), N, 1.0)
            if found is None or len(found.X) < len(P):
                found = take_steps(reduced, P.copy(), N, 1.0, singular=True)
            assert found is not None  # all systems are solved
            block = found
    after = after_block(state, block, len(P) * n_features, 1.0)
    return Decision(after, block.X, block.B, Info(block.residual, float(np.trace(N))))


@products_in_one_thread()
def atom_products(C: NDArray[Any]) -> Matrix:
    """A slice's contribution to CᵀC."""
    return gram(C)


@products_in_one_thread()
def updated(C: NDArray[Any], Y: NDArray[Any], X: Matrix, B: Matrix) -> NDArray[Any]:
    """A slice of the dictionary after a step."""
    with team(Y.size * C.shape[1]) as helpers, _quiet():
        dictionary = Dictionary(C, False, len(Y), helpers)
        dictionary.update_at_once(X, B, Y, after=Y[:0])
    C = dictionary.settled()
    if not np.isfinite(C).all():
        raise too_large()
    return C


class First(NamedTuple):
    """What each slice needs to make its part of the first dictionary."""

    init: str
    seed: int
    n_components: int
    n_features: int
    scale: float
    rows: NDArray[np.intp]
    """The first rows that become atoms."""
    n_rows: int
    size: float
    """Root mean square of the first rows: the scale of the noise where they are too few."""


def largest(Y: NDArray[Any]) -> float:
    """The largest absolute value."""
    return float(np.max(np.abs(Y), initial=0.0))


@products_in_one_thread()
def row_products(Y: NDArray[Any], scale: float) -> Matrix:
    """A slice's contribution to the inner products of the first rows."""
    rows = Y.astype(np.float64) / scale
    return rows @ rows.T


@products_in_one_thread()
def first_of(
    products: Matrix, init: str, seed: int, n_components: int, n_features: int, scale: float
) -> First:
    """What slices need of all features, given the inner products of the first rows."""
    n_rows = len(products)
    size = float(np.sqrt(np.trace(products) / (n_rows * n_features))) or 1.0
    rows = independent_rows(products, n_components, np.random.default_rng(seed))
    return First(init, seed, n_components, n_features, scale, rows, n_rows, size)


def first_slice(Y: NDArray[Any], first_feature: int, first: First) -> NDArray[Any]:
    """A slice of what `first_dictionary` draws."""
    m, r = Y.shape[1], first.n_components
    if first.init == "random":  # one draw per number, so the earlier ones can be skipped
        generator = np.random.PCG64(first.seed).advance(first_feature * r)
        return np.random.Generator(generator).random((m, r)).astype(Y.dtype)
    rng = np.random.default_rng(first.seed)
    atoms = Y[first.rows].astype(np.float64) / first.scale
    if len(atoms) < r:
        rng.permutation(first.n_rows)  # `independent_rows` drew the order of the rows
        here = slice(first_feature, first_feature + m)
        noise = [rng.standard_normal(first.n_features)[here] for _ in range(r - len(atoms))]
        atoms = np.concatenate([atoms, first.size * np.array(noise)])
    return np.ascontiguousarray((atoms / np.sqrt(r)).astype(Y.dtype).T)


def _quiet() -> Any:
    return np.errstate(over="ignore", invalid="ignore")  # the kernels check for it
