"""Hostile arrays: odd shapes, types, orders and sizes, with odd numbers in them."""

from pathlib import Path
from typing import Any

import numpy as np

from .models import WIDTH
from .using import use

ODD = np.array([
    0.0, -0.0, 1.0, 5e-324, 1e-310, 1e-200, 1e-45, 65504.0, 2.0**53, 3.4e38, 1e39, 1e120, 1e154,
    1e155, 1e200, 1e300, 1.7976931348623157e308, -1.7976931348623157e308, np.inf, -np.inf, np.nan,
])  # fmt: skip
FINITE = ODD[np.isfinite(ODD)]
TYPES = [
    "f8", "f8", "f8", "f8", "f8", "f4", "f4", "f2", "g", ">f8", "<f4", "i1", "u1", "i2", "i4", "i8",
    "u8", "?", "c8", "c16", "O", "U8", "S8", "M8[s]", "m8[s]", "V8", [("a", "f8")],
]  # fmt: skip


def try_array(rng: np.random.Generator, folder: Path) -> list[str]:
    """Use a hostile array."""
    return use(rng, hostile_array(rng))


def hostile_array(rng: np.random.Generator) -> Any:
    """Anything that might be taken for rows."""
    return dressed(rng, typed(rng, numbers(rng, hostile_shape(rng))))


def hostile_shape(rng: np.random.Generator) -> tuple[int, ...]:
    """Mostly rows of the models' width."""
    n = int(rng.choice([1, 1, 2, 3, 5, 17, 40, 0]))
    if rng.random() < 0.8:
        return n, WIDTH
    widths = [0, 1, 2, 5, 7, 40]
    other: list[tuple[int, ...]] = [(), (n,), (n, int(rng.choice(widths))), (n, 2, 3), (1,) * 30]
    return other[int(rng.integers(len(other) - 1 + (rng.random() < 0.1)))]


def numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of one size, of many, or odd ones, with or without missing entries."""
    kind = rng.integers(7)
    X = rng.normal(size=shape)
    if kind == 0:
        X = X * 10.0 ** rng.uniform(-320, 308)
    elif kind == 1:
        with np.errstate(all="ignore"):
            X = X * 10.0 ** rng.uniform(-320, 308, size=shape)
    elif kind == 2:
        X = np.full(shape, rng.choice(ODD))
    elif kind == 3:
        X = rng.choice(ODD, size=shape)
    elif kind == 4:
        X = rng.choice(rng.choice(FINITE, 3), size=shape)
    elif kind == 5:
        X = np.where(rng.random(shape) < 0.1, rng.choice(ODD, size=shape), X)
    if rng.random() < 0.4:
        X = np.where(rng.random(shape) < rng.choice([0.1, 0.5, 0.95, 1.0]), np.nan, X)
    return np.asarray(X)


def typed(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """The numbers in some type, odd ones included."""
    dtype = TYPES[rng.integers(len(TYPES))]
    with np.errstate(all="ignore"):
        try:
            X = X.astype(dtype)
        except (TypeError, ValueError, OverflowError):
            X = np.zeros(X.shape, dtype)
    if X.dtype == object and X.size and rng.random() < 0.7:
        things = [None, "x", b"x", 10**400, 1j, [1], {}, np.nan, True, object, 2.5, "nan", "1e5"]
        X.flat[rng.integers(X.size)] = things[rng.integers(len(things))]
    return X


def dressed(rng: np.random.Generator, X: np.ndarray) -> Any:
    """The array in other clothes: another order, a view, a mask, a subclass, a list."""
    kind = rng.integers(14)
    if kind == 0:
        return np.asfortranarray(X)
    if kind == 1 and X.ndim:
        return X[::-1]
    if kind == 2 and X.ndim == 2:
        return np.repeat(X, 2, axis=1)[:, ::2]
    if kind == 3 and X.ndim == 2 and len(X):
        return np.broadcast_to(X[:1], X.shape)
    if kind == 4:
        X.flags.writeable = False
        return X
    if kind == 5 and X.dtype.names is None:
        return np.ma.masked_array(X, rng.random(X.shape) < 0.3)
    if kind == 6 and X.ndim == 2:
        return X.view(np.matrix)
    if kind == 7:
        return X.tolist()
    if kind == 8 and X.ndim == 2:
        ragged = X.tolist()
        return [*ragged, [1.0]]
    if kind == 9:
        return [None, "rows", 3, {}, {"a": 1}, set(), b"", lambda: 0, ..., [[]], [[None]]][
            rng.integers(11)
        ]
    return X
