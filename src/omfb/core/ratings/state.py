"""The state of the model of ratings: arrays that grow, and kernels change in place."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conformal import N_BINS
from ..linalg.rating_rounds import IMPLICIT_VARIANCE, Entries, Side, Workspace
from ..linalg.rating_stream import index_entries

Integers = NDArray[np.int64]
Floats = NDArray[np.float64]

# Prior variances before anything is estimated, in units of the ratings' variance: those of codes,
# of loadings, and of offsets.
CODES, LOADINGS, OFFSETS = 1.0, 0.1, 0.1
# Standard deviation of the first codes and loadings, which only break the symmetry.
FIRST_SPREAD = 0.1
# Rounds of a fit if no ratings are held out to choose their number.
ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Config:
    """What a user gives: the number of components, and whether the choice of items counts."""

    n_components: int
    implicit: bool


@dataclass(frozen=True, slots=True)
class Scores:
    """Errors on ratings that the model had not learned.

    Attributes
    ----------
    histogram : ndarray of shape (N_BINS,)
        Of |error| / predicted standard deviation, for the intervals.
    stream : ndarray of shape (2,)
        Sum of the squares of the errors of `learn`, in the ratings' units, and their number.
    """

    histogram: Floats
    stream: Floats

    @classmethod
    def empty(cls) -> "Scores":
        """No errors yet."""
        return cls(np.zeros(N_BINS), np.zeros(2))


@dataclass(frozen=True, slots=True)
class State:
    """Everything that the next rating needs.

    Attributes
    ----------
    config : Config
    center, unit : float
        A rating is center + unit · z.
    low, high : float
        The smallest and the largest rating.
    seed : int
        Of the first codes and loadings.
    n_rounds : int
        Rounds of a fit.
    known : ndarray of shape (3,)
        Number of users, of items, and of pairs that are rated.
    users, items : Side
    entries : Entries
    slots : ndarray
        The hash table of pairs.
    place : ndarray of shape (3,)
        Where the round of updates is.
    workspace : Workspace
        What a sweep works in, and the noise.
    scores : Scores
    """

    config: Config
    center: float
    unit: float
    low: float
    high: float
    seed: int
    n_rounds: int
    known: Integers
    users: Side
    items: Side
    entries: Entries
    slots: Integers
    place: Integers
    workspace: Workspace
    scores: Scores

    @property
    def n_users(self) -> int:
        """Number of users."""
        return int(self.known[0])

    @property
    def n_items(self) -> int:
        """Number of items."""
        return int(self.known[1])

    @property
    def n_ratings(self) -> int:
        """Number of pairs that are rated."""
        return int(self.known[2])

    @property
    def noise(self) -> float:
        """The common variance of the noise, in the model's units."""
        return float(self.workspace.noise[0])

    @property
    def first_variances(self) -> Floats:
        """Prior variances of users and of items before anything is estimated."""
        return first_variances(self.config.n_components)


def first_variances(r: int) -> Floats:
    """Prior variances of users and of items before anything is estimated, (2, r + 1)."""
    return np.array([[CODES] * r + [OFFSETS], [LOADINGS] * r + [OFFSETS]])


def new_state(
    config: Config, user: Integers, item: Integers, rating: Floats, n_users: int, n_items: int,
    seed: int, bounds: tuple[float, float] | None = None,
) -> State:  # fmt: skip
    """The state before the first round: small random codes and loadings.

    Parameters
    ----------
    config : Config
    user, item : ndarray of shape (n,)
        Numbers from 0; no pair is there twice.
    rating : ndarray of shape (n,)
    n_users, n_items : int
    seed : int
    bounds : (float, float) or None
        The smallest and the largest rating, if not those of `rating`.
    """
    center = float(rating.mean())
    unit = float(rating.std())
    if not unit > 1e-12 * abs(center):  # all are equal, but for rounding
        unit = max(abs(center), 1.0)
    r = config.n_components
    rng = np.random.RandomState(seed)
    first = first_variances(r)
    users = _first_side(n_users, r, r + 1, first[0], rng)
    items = _first_side(n_items, r, r, first[1], rng)
    n = len(rating)
    z = (rating - center) / unit
    entries = Entries(
        user.astype(np.int64), item.astype(np.int64), z, np.empty(n, np.int64),
        np.empty(n, np.int64),
    )  # fmt: skip
    low, high = bounds or (float(rating.min()), float(rating.max()))
    state = State(
        config, center, unit, low, high, seed, ROUNDS,
        np.array([n_users, n_items, n], np.int64), users, items, entries, np.empty(0, np.int64),
        np.zeros(3, np.int64), new_workspace(r), Scores.empty(),
    )  # fmt: skip
    return with_index(state)


def _first_side(n: int, r: int, fixed: int, variance: Floats, rng: np.random.RandomState) -> Side:
    R = r + 2
    side = _blank_side(n, r)
    side.mean[:, :r] = FIRST_SPREAD * rng.standard_normal((n, r))
    side.mean[:, fixed] = 1.0
    rows, columns = np.tril_indices(R)
    side.moments[:] = side.mean[:, rows] * side.mean[:, columns]
    free = np.delete(np.arange(R), fixed)
    side.moments[:, free * (free + 3) // 2] += LOADINGS
    side.weight[:] = 1.0
    side.implicit_var[:] = side.implicit_prior[:] = IMPLICIT_VARIANCE
    side.variance[:] = variance
    return side


def _blank_side(n: int, r: int) -> Side:
    R, f = r + 2, r + 1
    return Side(
        np.zeros((n, R)), np.zeros((n, R * (R + 1) // 2)), np.zeros(n), np.zeros((n, f)),
        np.zeros((n, f)), np.zeros((n, f)), np.full(n, -1, np.int64), np.zeros(n, np.int64),
        np.zeros(f), np.zeros(f), np.zeros(f), np.zeros((4, f)),
    )  # fmt: skip


def new_workspace(r: int) -> Workspace:
    """Workspace of the kernels; the noise is the variance of the ratings."""
    R, f = r + 2, r + 1
    return Workspace(
        np.zeros(R * (R + 1) // 2), np.zeros(R), np.zeros((f, f)), np.zeros(f), np.zeros((2, f)),
        np.array([1.0, 0.0, 0.0]),
    )  # fmt: skip


def table_size(n: int) -> int:
    """Slots for n pairs: a power of two, at most half full."""
    return 1 << max(4, (2 * n).bit_length())


def with_room(state: State, n_users: int, n_items: int, n_ratings: int) -> State:
    """The state with workspace for so many; capacity doubles, so that this is rare.

    A state that grows shares no array with the one before, which stays as it is.
    """
    capacity = (len(state.users.mean), len(state.items.mean), len(state.entries.z))
    needed = (n_users, n_items, n_ratings)
    if all(n <= size for n, size in zip(needed, capacity, strict=True)):
        return state
    sizes = [
        size if n <= size else max(n, 2 * size) for n, size in zip(needed, capacity, strict=True)
    ]
    users, items = _copied(state.users, sizes[0]), _copied(state.items, sizes[1])
    entries = Entries(*(_longer(array, sizes[2]) for array in state.entries))
    workspace = Workspace(*(array.copy() for array in state.workspace))
    return with_index(
        replace(
            state, known=state.known.copy(), users=users, items=items, entries=entries,
            place=state.place.copy(), workspace=workspace,
        )
    )  # fmt: skip


def with_index(state: State) -> State:
    """The state with lists, counts and the table of pairs made from its ratings."""
    for side in (state.users, state.items):
        side.heads[:] = -1
        side.counts[:] = 0
    slots = np.full(table_size(len(state.entries.z)), -1, np.int64)
    index_entries(state.n_ratings, state.entries, state.users, state.items, slots)
    return replace(state, slots=slots)


def _copied(side: Side, n: int) -> Side:
    shared = ("base", "variance", "implicit_prior", "sums")
    copies: list[Any] = [
        array.copy() if name in shared else _longer(array, n)
        for name, array in zip(Side._fields, side, strict=True)
    ]
    return Side(*copies)


def _longer(array: NDArray[Any], size: int) -> NDArray[Any]:
    longer = np.zeros((size, *array.shape[1:]), array.dtype)
    longer[: len(array)] = array
    return longer
