"""Convert frozen dataclasses to a header and tensors, and back, by their fields.

Arrays become tensors, named by their path ("state.C"); numbers, strings and None go to the header;
a nested dataclass becomes a nested header. So new fields need no code here, and with a default they
leave old files readable. Values that are read are checked against the types of the fields.
"""

import dataclasses
import math
import types
import typing
from typing import Any, TypeVar

import numpy as np

from .modelfile import Tensors

Record = TypeVar("Record")
PLAIN: tuple[type, ...] = (bool, int, float, str)


def flatten(record: Any, path: str, tensors: Tensors) -> dict[str, Any]:
    """The header of a dataclass instance; adds its arrays to `tensors`."""
    header: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        value, name = getattr(record, field.name), f"{path}.{field.name}"
        if isinstance(value, np.ndarray):
            tensors[name] = value
        elif dataclasses.is_dataclass(value):
            header[field.name] = flatten(value, name, tensors)
        elif isinstance(value, tuple):
            header[field.name] = [plain(item, name) for item in value]
        else:
            header[field.name] = plain(value, name)
    return header


def plain(value: Any, name: str) -> Any:
    """A number, a string or None as a JSON value."""
    if isinstance(value, np.generic):
        value = value.item()
    if not (value is None or type(value) in PLAIN):
        raise TypeError(f"{name} is {type(value).__name__}, which a model file cannot hold.")
    if type(value) is float and not math.isfinite(value):
        raise ValueError(f"{name} is {value}, which a model file cannot hold.")
    return value


def unflatten(cls: type[Record], header: Any, tensors: Tensors, path: str) -> Record:
    """The dataclass instance from a header and tensors; a ValueError if they do not fit.

    A field that is in neither gets its default, so files from before the field existed load.
    """
    if not isinstance(header, dict):
        raise ValueError(f"no {path}")
    fields = {field.name: field for field in dataclasses.fields(cls)}  # type: ignore[arg-type]
    hints = typing.get_type_hints(cls)
    values: dict[str, Any] = {}
    for name in header:
        if name not in fields:
            raise ValueError(f"{path} has no {name[:40]!r}")
    for name, field in fields.items():
        where = f"{path}.{name}"
        if where in tensors:
            if not any(_is_array(hint) for hint in _alternatives(hints[name])):
                raise ValueError(f"{where} is not an array")
            values[name] = tensors[where]
        elif name in header:
            values[name] = _value(header[name], hints[name], tensors, where)
        elif field.default is field.default_factory is dataclasses.MISSING:
            raise ValueError(f"no {where}")
    return cls(**values)


def _value(value: Any, hint: Any, tensors: Tensors, where: str) -> Any:
    allowed = _alternatives(hint)
    for kind in allowed:
        if isinstance(value, dict) and dataclasses.is_dataclass(kind):
            return unflatten(typing.cast("type[Any]", kind), value, tensors, where)
        if value is None and kind is type(None):
            return None
        if kind is float and type(value) in (int, float) and math.isfinite(value):
            return float(value)
        if kind in PLAIN and type(value) is kind:
            return value
        if typing.get_origin(kind) is tuple and isinstance(value, list):
            return _tuple(value, typing.get_args(kind), tensors, where)
    raise ValueError(f"{where} has the wrong type")


def _tuple(values: list[Any], hints: tuple[Any, ...], tensors: Tensors, where: str) -> Any:
    if len(values) != len(hints):
        raise ValueError(f"{where} has another length")
    return tuple(_value(*each, tensors, where) for each in zip(values, hints, strict=True))


def _alternatives(hint: Any) -> tuple[Any, ...]:
    """The types that a hint allows."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return typing.get_args(hint)
    return (hint,)


def _is_array(hint: Any) -> bool:
    kind = typing.get_origin(hint) or hint
    kind = getattr(kind, "__value__", kind)  # NDArray is a `type` statement since NumPy 2.5
    return (typing.get_origin(kind) or kind) is np.ndarray
