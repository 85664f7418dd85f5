"""SplitMix64 of numbers: random choices that depend on a number and a seed, and on nothing else."""

import numpy as np
from numpy.typing import NDArray

ODD = 0x9E3779B97F4A7C15
MIX = 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
WORD = 2**64 - 1


def hashed(numbers: NDArray[np.int64], seed: int = 0) -> NDArray[np.uint64]:
    """The hash of each number, the t-th output of the generator with this seed."""
    if len(numbers) == 1:  # as streams bring them: a tenth of the time
        return np.array([_hashed(int(numbers[0]), seed)], np.uint64)
    z = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(ODD) + np.uint64(seed & WORD)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(MIX[0])
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MIX[1])
    return z ^ (z >> np.uint64(31))


def _hashed(number: int, seed: int) -> int:
    z = ((number + 1) * ODD + seed) & WORD
    z = ((z ^ (z >> 30)) * MIX[0]) & WORD
    z = ((z ^ (z >> 27)) * MIX[1]) & WORD
    return z ^ (z >> 31)
