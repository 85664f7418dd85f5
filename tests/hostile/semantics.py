"""What must not matter: order, form and unit of the data, and columns that say nothing."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import scipy.sparse

from .trial import ACCEPTED, WRONG, attempt, demand

NAMES = [f"f{i}" for i in range(12)]
# Fits whose tables differ in what says nothing may differ by this, beside the column's deviation.
FACTOR, SLACK = 1.5, 0.15


def try_semantics(rng: np.random.Generator, folder: Path) -> list[str]:
    """Fit a random table, and try one thing that must not matter."""
    X, Y = random_table(rng)
    names = list(PROPERTIES)
    name = names[rng.integers(len(names))]
    model = _fitted(rng, X)
    outcome, _ = attempt(lambda: PROPERTIES[name](rng, model, X, Y))
    demand(outcome is ACCEPTED, WRONG, f"{name}: refused")
    return [outcome]


def random_table(rng: np.random.Generator) -> tuple[Any, Any]:
    """A table with gaps, and without: of low rank, of integers, of 0 and 1, or of equal rows."""
    n, m = int(rng.choice([30, 100, 300])), int(rng.choice([3, 6, 12]))
    rank = int(rng.integers(1, 3))
    Y = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, m)) + 0.3 * rng.normal(size=(n, m))
    kind = rng.integers(4)
    if kind == 1:
        Y = np.round(2.0 * Y)
    elif kind == 2:
        Y = (Y > 0.0).astype(float)
    elif kind == 3:
        Y = np.repeat(Y[: n // 3 + 1], 3, axis=0)[:n]
    Y = Y + float(rng.choice([0.0, 100.0]))
    hidden = rng.random(Y.shape) < 0.15
    hidden[0] = False
    return np.where(hidden, np.nan, Y), Y


def _fitted(rng: np.random.Generator, X: Any) -> Any:
    from omfb import OMFBImputer, OnlineFactorAnalysis

    estimator = OMFBImputer if rng.random() < 0.7 else OnlineFactorAnalysis
    return estimator(2, random_state=0).fit(X)


def _again(model: Any, X: Any) -> Any:
    """Another model with the same parameters, fitted to X."""
    return type(model)(2, random_state=0).fit(X)


def _close(one: Any, other: Any, what: str, tolerance: float = 1e-6) -> None:
    one, other = np.asarray(one, float), np.asarray(other, float)
    size = np.abs(other).max(initial=1e-300)
    demand(bool((np.abs(one - other) <= tolerance * size).all()), WRONG, what)


def _no_worse(X: Any, Y: Any, filled: Any, usual: Any, what: str) -> None:
    """The error of filled entries is not much above the usual one, in units of each column."""
    hidden = np.isnan(X)
    unit = np.maximum(np.nanstd(Y, axis=0), 1e-300)
    errors = [np.sqrt(np.mean((((a - Y) / unit)[hidden]) ** 2)) for a in (filled, usual)]
    demand(
        errors[0] <= FACTOR * errors[1] + SLACK, WRONG, f"{what}: {errors[0]:.3g}, {errors[1]:.3g}"
    )


def order_of_rows(rng: Any, model: Any, X: Any, Y: Any) -> None:
    """A row is filled alike wherever it stands."""
    order = rng.permutation(len(X))
    _close(model.complete(X[order]), model.complete(X)[order], "rows in another order")


def one_row_alone(rng: Any, model: Any, X: Any, Y: Any) -> None:
    """A row is filled alike alone and in a batch."""
    at = int(rng.integers(len(X)))
    _close(model.complete(X[at : at + 1]), model.complete(X)[at : at + 1], "one row alone")


def duplicated_rows(rng: Any, model: Any, X: Any, Y: Any) -> None:
    """Rows that are there twice are filled twice alike."""
    twice = model.complete(np.concatenate([X, X]))
    _close(twice[: len(X)], model.complete(X), "duplicated rows")
    _close(twice[len(X) :], model.complete(X), "duplicated rows")


def order_of_answers(rng: Any, model: Any, X: Any, Y: Any) -> None:
    """Answers are the same in whatever order they are asked for."""
    calls: list[Callable[[], Any]] = [
        lambda: model.complete(X),
        lambda: np.array(model.interval(X)),
        lambda: np.array(model.score(X)),
        lambda: model.score_samples(X),
        lambda: model.sample(X, 1, random_state=0),
    ]
    first = [call() for call in calls]
    for at in rng.permutation(len(calls)):
        demand(np.array_equal(calls[at](), first[at]), WRONG, "answers in another order")


def forms(rng: Any, model: Any, X: Any, Y: Any) -> None:
    """The same numbers in another form give the same model and the same answers."""
    made = [
        X.tolist(), np.asfortranarray(X), np.ma.masked_invalid(X), X[:, ::-1].copy()[:, ::-1],
        pd.DataFrame(X), pl.DataFrame(X, schema=NAMES[: X.shape[1]]),
        pd.DataFrame(X, columns=NAMES[: X.shape[1]]),
    ]  # fmt: skip
    form = made[rng.integers(len(made))]
    other = _again(model, form)
    _close(other.components_, model.components_, f"fitted to {type(form).__name__}", 1e-9)
    _close(other.complete(form), model.complete(X), f"filled {type(form).__name__}", 1e-9)
    row, column = np.nonzero(~np.isnan(X))
    sparse = scipy.sparse.csr_array((X[row, column], (row, column)), shape=X.shape)
    _close(model.complete(sparse), model.complete(X), "filled a sparse matrix")


def order_of_columns(rng: Any, model: Any, X: Any, Y: Any) -> None:
    """Columns are found by name; and fitted in another order, they are filled as well."""
    order = rng.permutation(X.shape[1])
    _no_worse(
        X, Y, _again(model, X[:, order]).complete(X[:, order])[:, np.argsort(order)],
        model.complete(X), "columns in another order",
    )  # fmt: skip


def unit(rng: Any, model: Any, X: Any, Y: Any) -> None:
    """The unit of the data does not matter."""
    factor = 2.0 ** int(rng.integers(-60, 60))
    _no_worse(
        X, Y, _again(model, X * factor).complete(X * factor) / factor, model.complete(X),
        f"in units of {factor:.3g}",
    )  # fmt: skip


def jitter(rng: Any, model: Any, X: Any, Y: Any) -> None:
    """A table is filled no worse than the same table with a jitter of 1e-7."""
    size = np.nanmax(np.abs(X), axis=0)
    other = X + 1e-7 * size * rng.normal(size=X.shape)
    _no_worse(X, Y, model.complete(X), _again(model, other).complete(other), "with a jitter")


def columns_that_say_nothing(rng: Any, model: Any, X: Any, Y: Any) -> None:
    """A constant column and one that is all missing do not harm the others."""
    constant = np.full((len(X), 1), float(rng.choice([0.0, 7.0, 1e6])))
    more = np.hstack([X, constant, np.full((len(X), 1), np.nan)])
    filled = _again(model, more).complete(more)
    demand(bool(np.isfinite(filled).all()), WRONG, "columns that say nothing")
    _no_worse(X, Y, filled[:, : X.shape[1]], model.complete(X), "columns that say nothing")


PROPERTIES: dict[str, Callable[[Any, Any, Any, Any], None]] = {
    "order of rows": order_of_rows,
    "one row alone": one_row_alone,
    "duplicated rows": duplicated_rows,
    "order of answers": order_of_answers,
    "forms": forms,
    "order of columns": order_of_columns,
    "unit": unit,
    "jitter": jitter,
    "columns that say nothing": columns_that_say_nothing,
}
