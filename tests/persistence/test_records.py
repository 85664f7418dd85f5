"""Dataclasses as headers and tensors: round trips, new fields, and values of the wrong type."""

import json
from dataclasses import dataclass, field, make_dataclass
from typing import Any, TypeVar

import numpy as np
import pytest
from numpy.typing import NDArray

from omfb.persistence.records import flatten, plain, unflatten


@dataclass(frozen=True)
class Inner:
    kind: str
    size: float = 2.0


@dataclass(frozen=True)
class Record:
    C: NDArray[np.float64]
    count: int
    inner: Inner
    code: NDArray[np.float64] | None = None
    ready: bool = True


def written(record):
    """A header as it comes back from a file, and tensors."""
    tensors = {}
    return json.loads(json.dumps(flatten(record, "state", tensors))), tensors


@pytest.mark.parametrize("code", [None, np.arange(3.0)])
def test_a_record_comes_back_as_it_was(code):
    record = Record(np.eye(3), 4, Inner("a", 0.5), code, False)
    header, tensors = written(record)
    assert sorted(tensors) == ["state.C"] + ["state.code"] * (code is not None)
    back = unflatten(Record, header, tensors, "state")
    assert (back.count, back.inner, back.ready) == (4, Inner("a", 0.5), False)
    np.testing.assert_array_equal(back.C, record.C)
    np.testing.assert_equal(back.code, code)


def test_a_new_field_with_a_default_leaves_old_files_readable():
    header, tensors = written(Record(np.eye(3), 4, Inner("a")))
    new = make_dataclass(
        "New",
        [("limit", float, 12.0), ("votes", NDArray[np.float64] | None, None),
         ("weights", NDArray[np.float64], field(default_factory=lambda: np.ones(2))),
         ("nested", Inner, Inner("new"))],
        bases=(Record,), frozen=True,
    )  # fmt: skip
    back = unflatten(new, header, tensors, "state")
    assert (back.limit, back.votes, back.nested) == (12.0, None, Inner("new"))
    np.testing.assert_array_equal(back.weights, [1.0, 1.0])
    del header["inner"]["size"]
    assert unflatten(Record, header, tensors, "state").inner.size == 2.0


def test_a_field_without_a_default_is_required():
    header, tensors = written(Record(np.eye(3), 4, Inner("a")))
    del header["count"]
    with pytest.raises(ValueError, match=r"no state\.count"):
        unflatten(Record, header, tensors, "state")
    with pytest.raises(ValueError, match=r"no state\.C"):
        unflatten(Record, {**header, "count": 4}, {}, "state")


WRONG = {
    "a string for a count": ({"count": "4"}, "state.count has the wrong type"),
    "a bool for a count": ({"count": True}, "state.count has the wrong type"),
    "a fraction for a count": ({"count": 4.5}, "state.count has the wrong type"),
    "None for a string": ({"inner": {"kind": None}}, "state.inner.kind has the wrong type"),
    "a number for a record": ({"inner": 3}, "state.inner has the wrong type"),
    "a field too many": ({"other": 1}, "state has no 'other'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_values_of_the_wrong_type_are_refused(case):
    change, message = WRONG[case]
    header, tensors = written(Record(np.eye(3), 4, Inner("a")))
    with pytest.raises(ValueError, match=message):
        unflatten(Record, {**header, **change}, tensors, "state")


def test_a_tensor_in_place_of_a_number_is_refused():
    header, tensors = written(Record(np.eye(3), 4, Inner("a")))
    with pytest.raises(ValueError, match=r"state\.count is not an array"):
        unflatten(Record, header, {**tensors, "state.count": np.ones(1)}, "state")
    with pytest.raises(ValueError, match="no state"):
        unflatten(Record, [], tensors, "state")


def test_only_finite_numbers_strings_and_none_go_to_a_header():
    assert plain(np.float32(0.5), "x") == 0.5
    assert type(plain(np.int64(3), "x")) is int
    with pytest.raises(TypeError, match="x is list"):
        plain([1], "x")
    with pytest.raises(ValueError, match="x is inf"):
        plain(float("inf"), "x")


def test_arrays_are_known_by_names_that_type_statements_give():
    """As NumPy's do since 2.5."""
    extensions = pytest.importorskip("typing_extensions")
    scalar = TypeVar("scalar")
    named = extensions.TypeAliasType(
        "named", np.ndarray[Any, np.dtype[scalar]], type_params=(scalar,)
    )
    record = make_dataclass("record", [("values", named[Any]), ("count", int)], frozen=True)
    found = unflatten(record, {"count": 3}, {"state.values": np.ones(2)}, "state")
    assert found.values.sum() == 2.0
    with pytest.raises(ValueError, match=r"state\.count is not an array"):
        unflatten(record, {}, {"state.values": np.ones(2), "state.count": np.ones(2)}, "state")
