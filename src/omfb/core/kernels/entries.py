"""What is done to each entry of a block of rows: to units of the noise, and to a draw."""

import numpy as np

from .compiling import jit


@jit
def whiten(Y, center, inverse_noise, out, counts):
    """out = (Y − center) / noise; counts what each row observes; False where that is not finite."""
    finite = True
    for t in range(Y.shape[0]):
        count = 0
        for i in range(Y.shape[1]):
            value = (Y[t, i] - center[i]) * inverse_noise[i]
            out[t, i] = value
            seen = value == value
            count += seen
            finite = finite and (not seen or abs(value) < 1e150)
        counts[t] = count
    return finite


@jit
def mix(bits):
    """A number that follows from all of the given ones."""
    mixed = np.uint64(14695981039346656037)
    for i in range(bits.shape[0]):
        mixed = (mixed ^ bits[i]) * np.uint64(1099511628211)
        mixed ^= mixed >> np.uint64(29)
    return mixed
