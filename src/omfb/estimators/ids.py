"""Numbers for the identifiers of users and items, and their form in files."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.require import require
from ..persistence.modelfile import Tensors
from .triplets import Id

UNKNOWN = -1


class Ids:
    """Identifiers, numbered from 0 in the order in which they came.

    Attributes
    ----------
    listed : list of int or str
    """

    def __init__(self, listed: Iterable[Id] = ()) -> None:
        self.listed = list(listed)
        self._numbers = {each: number for number, each in enumerate(self.listed)}

    @classmethod
    def ordered(cls, given: Iterable[Id]) -> "Ids":
        """Distinct identifiers in order, numbers before text: rows may come in any order."""
        return cls(sorted(set(given), key=lambda each: (isinstance(each, str), each)))

    def __len__(self) -> int:
        return len(self.listed)

    def find(self, wanted: Iterable[Id]) -> NDArray[np.int64]:
        """Their numbers, `UNKNOWN` for those that are new."""
        numbers = self._numbers
        return np.array([numbers.get(each, UNKNOWN) for each in wanted], np.int64)

    def add(self, wanted: Iterable[Id]) -> NDArray[np.int64]:
        """Their numbers; new ones get the next."""
        numbers, found = self._numbers, []
        for each in wanted:
            number = numbers.get(each)
            if number is None:
                number = numbers[each] = len(self.listed)
                self.listed.append(each)
            found.append(number)
        return np.array(found, np.int64)

    def to_tensors(self, name: str, n: int) -> Tensors:
        """The first n for a file: numbers, and text as UTF-8 with the ends of its words."""
        listed = self.listed[:n]
        text = np.array([isinstance(each, str) for each in listed], np.bool_)
        numbers = [each for each in listed if not isinstance(each, str)]
        words = [each.encode("utf-8", "surrogatepass") for each in listed if isinstance(each, str)]
        return {
            f"{name}.is_text": text,
            f"{name}.numbers": np.array(numbers, np.int64),
            f"{name}.text": np.frombuffer(b"".join(words), np.uint8),
            f"{name}.ends": np.cumsum([len(word) for word in words], dtype=np.int64),
        }

    @classmethod
    def from_tensors(cls, name: str, tensors: Tensors) -> "Ids":
        """Identifiers from a file; a ValueError if no model can have had them."""
        text, numbers = tensors[f"{name}.is_text"], tensors[f"{name}.numbers"]
        data, ends = tensors[f"{name}.text"].tobytes(), tensors[f"{name}.ends"]
        require(text.dtype == np.bool_ and numbers.dtype == ends.dtype == np.int64, name)
        require(text.ndim == numbers.ndim == ends.ndim == 1, name)
        require(len(ends) == text.sum() and len(numbers) + len(ends) == len(text), name)
        starts = np.append(0, ends)
        require(bool((np.diff(starts) > 0).all()) and int(starts[-1]) == len(data), name)
        words = iter(
            data[start:end].decode("utf-8", "surrogatepass")
            for start, end in zip(starts[:-1].tolist(), ends.tolist(), strict=True)
        )
        plain = iter(numbers.tolist())
        ids = cls(next(words) if is_text else next(plain) for is_text in text.tolist())
        require(len(ids._numbers) == len(ids), f"{name} repeat")
        return ids


def id_array(ids: list[Id]) -> NDArray[Any]:
    """Identifiers as an array of int or of str, of objects if there are both."""
    kinds = {type(each) for each in ids}
    if kinds <= {int}:
        return np.array(ids, np.int64)
    # NumPy would lose the NULs at the end of a text.
    if kinds == {str} and not any(str(each).endswith("\0") for each in ids):
        return np.array(ids)
    mixed = np.empty(len(ids), object)
    mixed[:] = ids
    return mixed
