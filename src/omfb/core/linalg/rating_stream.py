"""Ratings one at a time: predict each, then learn from it, at a cost that does not grow.

A new rating changes the posteriors of its user and of its item: from all their ratings while these
are at most `MOST_EXACT`, otherwise by adding the rating to the posterior. Then it pays for the
update of users and items that hold `SWEPT` ratings in total, in the order of the rounds of
`rating_rounds`: between n and 2 n ratings there are SWEPT · log 2 of them on each side.

Pairs are found by a hash table with open addressing: `slots` has positions of ratings, or -1.
"""

import numpy as np

from .compiling import inner_jit, jit
from .rating_rounds import fill_moments, sweep_step, update_posterior
from .small import dot, invert

MOST_EXACT = 64
# Ratings that the sweeps of a round visit for each new one, in four phases.
SWEPT = 40


@inner_jit
def slot_of(u, i, slots, entries):
    """The slot of a pair, or the empty one where it belongs; len(slots) is a power of two."""
    mask = np.uint64(slots.shape[0] - 1)
    key = np.uint64(u) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(i)
    key ^= key >> np.uint64(29)
    key *= np.uint64(0xBF58476D1CE4E5B9)
    key ^= key >> np.uint64(32)
    slot = np.int64(key & mask)
    while slots[slot] >= 0:
        at = slots[slot]
        if entries.user[at] == u and entries.item[at] == i:
            break
        slot = np.int64((np.uint64(slot) + np.uint64(1)) & mask)
    return slot


@jit
def index_entries(n, entries, users, items, slots):
    """Make lists, counts and the table of pairs of the first n ratings."""
    for t in range(n):
        u, i = entries.user[t], entries.item[t]
        slots[slot_of(u, i, slots, entries)] = t
        entries.user_links[t] = users.heads[u]
        entries.item_links[t] = items.heads[i]
        users.heads[u] = items.heads[i] = t
        users.counts[u] += 1
        items.counts[i] += 1


@inner_jit
def begin(e, side, fixed, workspace):
    """Give a new user or item its prior."""
    f = side.base.shape[0]
    H, p = workspace.H, side.mean[e]
    for a in range(f):
        for b in range(f):
            H[a, b] = 0.0
        H[a, a] = side.variance[a]
        side.shift[e, a] = side.implicit[e, a] = 0.0
        side.implicit_var[e, a] = side.implicit_prior[a]
    row = 0
    for a in range(p.shape[0]):
        p[a] = 1.0
        if a != fixed:
            p[a] = side.base[row]
            row += 1
    fill_moments(p, H, fixed, side.moments[e])
    side.weight[e] = 1.0


@inner_jit
def covariance(p, moments, fixed, H):
    """Covariance H of the free entries of p."""
    row = 0
    for a in range(p.shape[0]):
        if a == fixed:
            continue
        column = 0
        for b in range(a + 1):
            if b != fixed:
                packed = moments[a * (a + 1) // 2 + b]
                H[row, column] = H[column, row] = packed - p[a] * p[b]
                column += 1
        row += 1


@inner_jit
def add_rating(e, side, partner, others, fixed, value, workspace):
    """Add a rating to the posterior of e."""
    H, rhs = workspace.H, workspace.rhs
    p, moments = side.mean[e], side.moments[e]
    q, second = others.mean[partner], others.moments[partner]
    R = p.shape[0]
    covariance(p, moments, fixed, H)
    invert(H, 1e-14)
    scale = side.weight[e] * others.weight[partner] / workspace.noise[0]
    row = 0
    for a in range(R):
        if a == fixed:
            continue
        total = 0.0
        column = 0
        for b in range(R):
            if b != fixed:
                total += H[row, column] * p[b]
                column += 1
        high, low = max(a, fixed), min(a, fixed)
        rhs[row] = total + scale * (value * q[a] - second[high * (high + 1) // 2 + low])
        row += 1
    row = 0
    for a in range(R):
        if a == fixed:
            continue
        column = 0
        for b in range(R):
            if b != fixed:
                high, low = max(a, b), min(a, b)
                H[row, column] += scale * second[high * (high + 1) // 2 + low]
                column += 1
        row += 1
    invert(H, 1e-14)
    row = 0
    for a in range(R):
        if a != fixed:
            p[a] = dot(H[row], rhs)
            row += 1
    fill_moments(p, H, fixed, moments)


@inner_jit
def append(e, t, side, links, others, partner):
    """Put rating t on the list of e, and the choice of its partner into the prior mean."""
    n = side.counts[e]
    links[t] = side.heads[e]
    side.heads[e] = t
    side.counts[e] = n + 1
    for k in range(side.base.shape[0]):
        total = side.shift[e, k] * np.sqrt(n) + others.implicit[partner, k]
        side.shift[e, k] = total / np.sqrt(n + 1.0)


@inner_jit
def change_rating(e, side, partner, others, fixed, change, workspace):
    """Move the posterior of e as one of its ratings changes; what it knows stays the same."""
    H, rhs = workspace.H, workspace.rhs
    p, q = side.mean[e], others.mean[partner]
    covariance(p, side.moments[e], fixed, H)
    scale = change * side.weight[e] * others.weight[partner] / workspace.noise[0]
    row = 0
    for a in range(p.shape[0]):
        if a != fixed:
            rhs[row] = scale * q[a]
            row += 1
    row = 0
    for a in range(p.shape[0]):
        if a != fixed:
            p[a] += dot(H[row], rhs)
            row += 1
    fill_moments(p, H, fixed, side.moments[e])


@inner_jit
def relearn(e, side, partner, others, fixed, links, partners, z, at, is_new, change, workspace):
    """Update e after rating `at` has come, or has changed."""
    if side.counts[e] <= MOST_EXACT:
        update_posterior(e, side, others, fixed, links, partners, z, workspace)
    elif is_new:
        add_rating(e, side, partner, others, fixed, z[at], workspace)
    else:
        change_rating(e, side, partner, others, fixed, change, workspace)


@inner_jit
def predict_pair(p, P, q, Q):
    """Mean and variance of pᵀq from means and packed moments."""
    mean = dot(p, q)
    total = 0.0
    at = 0
    for a in range(p.shape[0]):
        for b in range(a):
            total += 2.0 * P[at + b] * Q[at + b]
        total += P[at + a] * Q[at + a]
        at += a + 1
    return mean, max(total - mean * mean, 0.0)


@jit
def learn_ratings(
    new_user, new_item, new_z, place, known, users, items, entries, slots, first_variances,
    implicit, workspace, errors, deviations,
):  # fmt: skip
    """Learn ratings in their order.

    known (3,) counts users, items and ratings, `place` is that of `sweep_step`. A rating of a known
    pair replaces the earlier one. Arrays have places for all that is new, and new users and items
    have the next numbers. Fills the errors of predicting each rating before it was learned, and the
    predicted standard deviations, noise included.
    """
    r = users.mean.shape[1] - 2
    for t in range(new_z.shape[0]):
        u, i, value = new_user[t], new_item[t], new_z[t]
        while known[0] <= u:
            begin(known[0], users, r + 1, workspace)
            known[0] += 1
        while known[1] <= i:
            begin(known[1], items, r, workspace)
            known[1] += 1
        mean, variance = predict_pair(
            users.mean[u], users.moments[u], items.mean[i], items.moments[i]
        )
        errors[t] = value - mean
        deviations[t] = np.sqrt(variance + workspace.noise[0] / (users.weight[u] * items.weight[i]))
        slot = slot_of(u, i, slots, entries)
        at = slots[slot]
        is_new = at < 0
        if is_new:
            at = slots[slot] = known[2]
            entries.user[at], entries.item[at], entries.z[at] = u, i, value
            append(u, at, users, entries.user_links, items, i)
            append(i, at, items, entries.item_links, users, u)
            known[2] += 1
        change = value - entries.z[at]
        entries.z[at] = value
        relearn(
            u, users, i, items, r + 1, entries.user_links, entries.item, entries.z, at, is_new,
            change, workspace,
        )  # fmt: skip
        relearn(
            i, items, u, users, r, entries.item_links, entries.user, entries.z, at, is_new,
            change, workspace,
        )  # fmt: skip
        place[2] += SWEPT
        while place[2] > 0:
            place[2] -= 1 + sweep_step(
                place, known, users, items, entries, first_variances, implicit, workspace
            )


@jit
def predict_pairs(user, item, users, items, noise, mean, variance):
    """Mean and variance, noise included, of the ratings of pairs."""
    for t in range(user.shape[0]):
        u, i = user[t], item[t]
        center, spread = predict_pair(
            users.mean[u], users.moments[u], items.mean[i], items.moments[i]
        )
        mean[t] = center
        variance[t] = spread + noise / (users.weight[u] * items.weight[i])
