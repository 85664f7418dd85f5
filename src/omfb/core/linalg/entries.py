"""What is done to each entry of a block of rows: to units of the noise, and to lists."""

from .compiling import jit

# Codes grow as the entries do, and products of both are squared.
LARGEST = 1e75


@jit
def whiten(Y, center, inverse_noise, reach, largest, out, counts):
    """out = (Y − center) / noise, NaN staying NaN; counts what each row observes.

    Returns how many are beyond reach, and how many not below the largest. Counting takes several at
    a time, as a maximum would not.
    """
    n_beyond = n_huge = 0
    for t in range(Y.shape[0]):
        count = 0
        for i in range(Y.shape[1]):
            value = (Y[t, i] - center[i]) * inverse_noise[i]
            out[t, i] = value
            count += value == value
            n_beyond += abs(value) > reach
            n_huge += abs(value) >= largest
        counts[t] = count
    return n_beyond, n_huge


@jit
def any_beyond(values, reach):
    """Whether a value is farther out than its feature reaches."""
    for t in range(values.shape[0]):
        for i in range(values.shape[1]):
            if abs(values[t, i]) > reach[i]:
                return True
    return False


@jit
def mark(values, seen):
    """Say which values are seen, and set the others to 0."""
    for t in range(values.shape[0]):
        for i in range(values.shape[1]):
            known = values[t, i] == values[t, i]
            seen[t, i] = known
            values[t, i] = values[t, i] if known else 0.0


@jit
def list_seen(values, seen, features, entries):
    """List the entries that are seen, with their features; there must be room for one more.

    Every entry is written, and the next one over it if it was missing, as in `observed.compress`.
    """
    at = 0
    for t in range(values.shape[0]):
        for i in range(values.shape[1]):
            features[at] = i
            entries[at] = values[t, i]
            at += seen[t, i]
