"""Which columns of a frame are features, and which are passed through."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.checks import shown
from ..streams.frames import non_numeric_kind
from .frames import is_frame

REMAINDERS = ("passthrough", "drop")
BOOLEANS = "booleans"
NO_NUMBERS = "X has no column of numbers to learn from."


def checked_remainder(remainder: Any) -> bool:
    """Whether columns that hold no numbers are dropped."""
    if not isinstance(remainder, str) or remainder not in REMAINDERS:
        raise ValueError(f"remainder must be 'passthrough' or 'drop', got {shown(remainder)}.")
    return remainder == "drop"


def columns_of(X: Any) -> list[Any] | None:
    """All columns of a frame; None of anything else."""
    return list(X.columns) if is_frame(X) else None


def first_features(X: Any) -> Any:
    """The columns of a frame that hold numbers or booleans; other rows as they are."""
    if not is_frame(X):
        return X
    kept = [at for at in range(len(X.columns)) if _is_feature(non_numeric_kind(X, at))]
    if not kept:
        raise ValueError(NO_NUMBERS)
    return _at_positions(X, kept)


def features_of(
    X: Any, names: list[str] | None, fitted: Sequence[Any] | None, *, drop: bool
) -> Any:
    """The features of a frame, in the model's order; other rows as they are.

    See `feature_positions`.
    """
    if not is_frame(X):
        return X
    return _at_positions(X, feature_positions(X, names, fitted, drop=drop))


def feature_positions(
    X: Any, names: list[str] | None, fitted: Sequence[Any] | None, *, drop: bool
) -> list[int]:
    """Which columns of a frame are features, in the model's order.

    Columns of numbers that the model does not know come last, so that scikit-learn's check of the
    names refuses them.

    Parameters
    ----------
    X : frame
    names : list of str or None
        The model's features.
    fitted : sequence of str or None
        All columns of the table that the model was fitted to; None if they are unknown.
    drop : bool
        Whether columns that hold no numbers are dropped, so that new ones do no harm.

    Raises
    ------
    ValueError
        If a column that holds no numbers was not there when the model was fitted.
    """
    columns = list(X.columns)
    if names is not None and columns == names:
        return list(range(len(columns)))
    known = set() if names is None else set(names)
    others = set() if names is None or fitted is None else set(fitted) - known
    unknown = [at for at, column in enumerate(columns) if column not in known | others]
    kinds = {at: non_numeric_kind(X, at) for at in unknown}
    if fitted is not None and not drop:
        new = (at for at in kinds if columns[at] not in fitted)
        _refuse_new(columns, {at: kinds[at] for at in new if not _is_feature(kinds[at])})
    surplus = [at for at, kind in kinds.items() if _is_feature(kind)]
    place = {column: at for at, column in reversed(list(enumerate(columns)))}
    positions = [*(place[name] for name in names or () if name in place), *surplus]
    if not positions:
        raise ValueError(NO_NUMBERS)
    return positions


def _is_feature(kind: str | None) -> bool:
    return kind is None or kind == BOOLEANS


def _refuse_new(columns: list[Any], kinds: dict[int, str | None]) -> None:
    if not kinds:
        return
    listed = ", ".join(f"{columns[at]!r} ({kind})" for at, kind in kinds.items())
    raise ValueError(
        f"X has columns that hold no numbers and were not there when the model was fitted: "
        f"{listed}. Drop them, or set remainder='drop'."
    )


def in_fitted_order(X: Any, fitted: Sequence[Any] | None, names: list[str] | None) -> Any:
    """A frame with its columns in the order of the fitted one, and new ones at the end.

    Parameters
    ----------
    X : frame
    fitted : sequence or None
        All columns of the table that the model was fitted to; None if they are unknown.
    names : list of str or None
        The model's features.

    Raises
    ------
    ValueError
        If a column is absent.
    """
    if fitted is None or _same(list(X.columns), list(fitted)):
        return X
    absent = [column for column in fitted if column not in set(X.columns)]
    if absent:
        features = set(fitted if names is None else names).intersection(absent)
        hint = "" if features else ", or set remainder='drop' to do without them"
        raise ValueError(
            f"X lacks columns that were there when the model was fitted: "
            f"{', '.join(map(repr, absent))}. Add them{hint}."
        )
    new = [column for column in X.columns if column not in set(fitted)]
    return X[[*fitted, *new]]


def _same(names: list[Any], others: list[Any]) -> bool:
    """Whether names are equal; NaN, which some frames have for a name, equals itself."""
    return len(names) == len(others) and all(
        a == b or (a != a and b != b) for a, b in zip(names, others, strict=True)
    )


def without_others(X: Any, positions: list[int]) -> Any:
    """A frame with some of its columns only, in its own order."""
    kept = sorted(positions)
    return X.iloc[:, kept] if hasattr(X, "iloc") else X[:, kept]


def indicator_name(name: Any) -> str:
    """The name of the column that says where a feature is missing, as scikit-learn has it."""
    return f"missingindicator_{name}"


def without_columns(X: Any, names: list[Any]) -> Any:
    """A frame without some of its columns."""
    return X.drop(columns=names) if hasattr(X, "iloc") else X.drop(names)


def with_columns(X: Any, names: list[str], values: NDArray[Any]) -> Any:
    """A frame with further columns."""
    columns = {name: values[:, at] for at, name in enumerate(names)}
    if hasattr(X, "iloc"):
        return X.assign(**columns)
    series = type(X.get_columns()[0]) if X.get_columns() else None
    assert series is not None
    return X.with_columns(series(name, each) for name, each in columns.items())


def _at_positions(X: Any, positions: list[int]) -> Any:
    """Some columns of a frame, booleans as 0 and 1."""
    if positions != list(range(len(X.columns))):
        X = X.iloc[:, positions] if hasattr(X, "iloc") else X[:, positions]
    flags = [at for at in range(len(X.columns)) if non_numeric_kind(X, at) == BOOLEANS]
    return X if not flags else _with_numbers(X, flags)


def _with_numbers(X: Any, flags: list[int]) -> Any:
    if not hasattr(X, "iloc"):
        return X.with_columns(X[:, at].cast(float) for at in flags)
    if not hasattr(X, "isetitem"):  # of Dask
        return X.astype({X.columns[at]: np.float64 for at in flags})
    X = X.copy(deep=False)
    for at in flags:
        X.isetitem(at, X.iloc[:, at].astype("boolean").astype("Float64"))
    return X
