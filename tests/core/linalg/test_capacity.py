"""Arrays with room behind them: what they cost, and that older views never change."""

import numpy as np
import pytest

from omfb.core.linalg import capacity
from omfb.core.linalg.capacity import extended


@pytest.mark.parametrize(("shape", "axis"), [((3,), -1), ((2, 3), -1), ((3, 2), 0)])
def test_arrays_grow_as_by_concatenation(shape, axis):
    rng = np.random.default_rng(0)
    array = expected = rng.normal(size=shape)
    for count in (1, 2, 40, 1, 100, 3):
        rest = list(shape)
        rest[axis] = count
        new = rng.normal(size=rest)
        before, held = array.copy(), array
        array = extended(array, count, new, axis)
        expected = np.concatenate([expected, new], axis=axis)
        np.testing.assert_array_equal(array, expected)
        np.testing.assert_array_equal(held, before)


def test_what_is_copied_is_a_few_times_what_there_is_in_the_end(monkeypatch):
    copied = []
    with_room = capacity._with_room

    def counted(array, needed, axis):
        copied.append(array.nbytes)
        return with_room(array, needed, axis)

    monkeypatch.setattr(capacity, "_with_room", counted)
    array = np.zeros((4, 5))
    for _ in range(20_000):
        array = extended(array, 1, 1.0, axis=0)
    assert len(copied) < 30
    assert sum(copied) < 3 * array.nbytes


def test_two_that_go_on_from_one_view_do_not_meet():
    start = extended(np.zeros(4), 1, 1.0)
    one = extended(start, 1, 2.0)
    other = extended(start, 1, 3.0)
    one, other = extended(one, 1, 4.0), extended(other, 1, 5.0)
    assert start.tolist() == [0, 0, 0, 0, 1]
    assert one.tolist() == [0, 0, 0, 0, 1, 2, 4]
    assert other.tolist() == [0, 0, 0, 0, 1, 3, 5]


def test_a_part_of_an_array_is_not_taken_for_the_whole():
    whole = extended(np.arange(6.0), 2, 7.0)
    part = whole[2:]
    longer = extended(part, 1, 9.0)
    assert longer.tolist() == [2, 3, 4, 5, 7, 7, 9]
    assert extended(whole, 1, 8.0).tolist() == [0, 1, 2, 3, 4, 5, 7, 7, 8]


def test_memory_that_is_gone_is_forgotten():
    before = len(capacity._used)
    arrays = [extended(np.zeros(3), 1, 0.0) for _ in range(50)]
    assert len(capacity._used) == before + 50
    del arrays
    assert len(capacity._used) == before
