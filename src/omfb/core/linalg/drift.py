"""Errors that are known before a row is learned, and a test of whether they have changed.

*Leave-one-out.* With e_i = y_i − c_iᵀx̃ and h_i = c_iᵀA⁻¹c_i, the rest of the row predicts entry i
with the error e_i / (1 − h_i). Some entries of each row are enough, in turns.

*Change.* Under the model the energy q = ‖y − C x̃‖² has the mean k = |Ω| − tr(A⁻¹G_Ω), and about a
χ² law with k degrees of freedom, whatever the law of the codes. So

    z = ((q / k)^⅓ − 1 + 2/(9k)) / √(2/(9k) + floor²)

is about standard normal, however many entries are missing (Wilson and Hilferty); `floor` keeps
changes of a few per cent from counting where k is large. z is standardised by its own mean and
deviation, clipped, and summed by Page's test in both directions; where rows depend on those before
them, z counts for less, by the variance of its running mean beside that of independent rows:

    up' = max(0, up + z − slack),   down' = max(0, down − z − slack),   alarm at `limit`.
"""

import numpy as np

from .compiling import inner_jit, jit
from .small import dot

# Fields of `memory`.
COUNT, MEAN, VARIANCE, RUNNING, RUNNING_VARIANCE, UNIT, UP, DOWN = range(8)
MEMORY = 8
# Multiply-adds that leave-one-out errors of a row may cost, but for at least so many entries.
WORK, FEWEST = 1 << 15, 4
# Leverage beyond which an entry is predicted by itself only.
MOST_LEVERAGE = 0.98
# While there are few rows, their weights rise with their number to this power, less one.
EARLY = 3.0
# Rows of the running mean.
RUNNING_ROWS = 32.0
# A square of the running mean counts for at most so many times the usual one.
GROWTH = 4.0


@inner_jit
def stride(n, r):
    """One in so many of n entries are left out in turns."""
    most = max(FEWEST, WORK // (r * r))
    return max(1, -(-n // most))


@inner_jit
def leave_one_out(C, H, seen, y, x, sizes, dropped, number, u, out):
    """Mean squared error of entries predicted by the others, and by the mean, in units of `sizes`.

    Of the row with this number; `u` is (r,), and H is A⁻¹.
    """
    r, n = H.shape[0], seen.shape[0]
    error, deviation, count = 0.0, 0.0, 0
    every = stride(n, r)
    for s in range(number % every, n, every):
        if dropped[s]:
            continue
        c, size = C[seen[s]], sizes[seen[s]]
        for i in range(r):
            u[i] = dot(H[i], c[:r])
        lever = min(dot(u, c[:r]), MOST_LEVERAGE)
        e = size * (y[s] - dot(c, x)) / (1.0 - lever)
        d = size * (y[s] - c[r] * x[r])
        error += e * e
        deviation += d * d
        count += 1
    out[0] = error / max(count, 1)
    out[1] = deviation / max(count, 1)


@jit
def leave_one_out_complete(C, leverages, Y, X, sizes, number, out):
    """`leave_one_out` of complete rows, the first of which has this number."""
    m, r = C.shape[0], C.shape[1] - 1
    every = stride(m, r)
    for t in range(Y.shape[0]):
        error, deviation, count = 0.0, 0.0, 0
        for i in range((number + t) % every, m, every):
            fitted = 0.0
            for j in range(r + 1):
                fitted += C[i, j] * X[t, j]
            e = sizes[i] * (Y[t, i] - fitted) / (1.0 - min(leverages[i], MOST_LEVERAGE))
            d = sizes[i] * (Y[t, i] - C[i, r] * X[t, r])
            error += e * e
            deviation += d * d
            count += 1
        out[t, 0] = error / max(count, 1)
        out[t, 1] = deviation / max(count, 1)


@jit
def follow(
    memory, recent, energies, freedom, left_out, fade, window, burn_in, floor, clip, slack, limit,
    skip, stop, alarms,
):  # fmt: skip
    """Go through rows and mark alarms; return how many rows that were.

    Changes `memory` and `recent` (2,), faded sums of the leave-one-out errors, in place. If `stop`
    is 1, it goes no further than the first alarm. The first `skip` rows are not tested: a model
    says nothing of rows that it was made of.
    """
    for t in range(energies.shape[0]):
        k = freedom[t]
        if k <= 0.0:
            continue
        for j in range(2):
            recent[j] = fade * recent[j] + left_out[t, j]
        if t < skip:
            continue
        spread = 2.0 / (9.0 * k)
        unit = 1.0 / np.sqrt(spread + floor * floor)
        z = unit * ((energies[t] / k) ** (1.0 / 3.0) - 1.0 + spread)
        if page(memory, z, unit, window, burn_in, clip, slack, limit):
            alarms[t] = True
            if stop == 1:
                return t + 1
    return energies.shape[0]


@inner_jit
def page(memory, z, unit, window, burn_in, clip, slack, limit):
    """One step of Page's test; whether it raises an alarm, after which it begins anew."""
    count = memory[COUNT]
    deviation = np.sqrt(max(memory[VARIANCE], 1.0))
    u = (z - memory[MEAN]) / deviation
    if count >= burn_in:
        u = min(max(u, -clip), clip)
        z = memory[MEAN] + deviation * u
        dependence = (2.0 * RUNNING_ROWS - 1.0) * memory[RUNNING_VARIANCE]
        step = u / np.sqrt(max(1.0, dependence / max(memory[VARIANCE], 1e-12)))
        memory[UP] = max(0.0, memory[UP] + step - slack)
        memory[DOWN] = max(0.0, memory[DOWN] - step - slack)
    # What is usual comes from the later rows, while the model still learns.
    weight = max(min(1.0, EARLY / (count + EARLY)), 1.0 / window)
    before = z - memory[MEAN]
    memory[MEAN] += weight * before
    after = z - memory[MEAN]
    memory[VARIANCE] += weight * (before * after - memory[VARIANCE])
    memory[RUNNING] += (after - memory[RUNNING]) / RUNNING_ROWS
    # A change that goes on must not pass for dependence, so this grows slowly.
    usual = max(memory[RUNNING_VARIANCE], memory[VARIANCE] / (2.0 * RUNNING_ROWS - 1.0))
    square = min(memory[RUNNING] ** 2, GROWTH * usual)
    memory[RUNNING_VARIANCE] += weight * (square - memory[RUNNING_VARIANCE])
    memory[UNIT] += weight * (unit - memory[UNIT])
    memory[COUNT] = count + 1.0
    if max(memory[UP], memory[DOWN]) > limit:
        for i in range(memory.shape[0]):
            memory[i] = 0.0
        return True
    return False
