"""Variational updates of ratings: users given the items, and items given the users, by one kernel.

Symbols: user u has the vector p = (x, b, 1), item i the vector q = (c, 1, d): x and c are code and
loadings, b and d the offsets. A rating is pᵀq + ε, where ε has the precision ω_u ω_i / σ². The ones
are fixed; everything else has a normal posterior. Users see only the moments of their items:

    A = Σ_i ω_i E[q qᵀ],   h = Σ_i ω_i z E[q]                      (over the ratings z of the user)
    H = (diag(1/v) + ω_u A_ff / σ²)⁻¹,   E[p_f] = H (m / v + ω_u (h_f − A_fo) / σ²)

f are the free entries of p, o is the fixed one. The prior mean m = base + Σ_i w_i / √n_u says what
the choice of items tells about a user, whatever the ratings (the implicit feedback of SVD++); w_i
has a normal posterior too. What is left of the ratings is Σ ω_i z² − 2 hᵀE[p] + tr(A E[p pᵀ]). All
this holds for items, with users in their place.

Moments are symmetric: of each, the lower triangle is kept, row by row (packed). The ratings of a
user or item are a linked list: `heads` is the position of the last one, `links` of the one before.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from .compiling import inner_jit, jit
from .small import dot, invert

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

# Shape of the gamma prior of ω: users and items with few ratings have about the common noise.
NOISE_SHAPE = 20.0
# Users or items for which the prior of a variance counts.
PRIOR_COUNT = 5.0
# Prior variance of the implicit loadings, in units of the ratings' variance.
IMPLICIT_VARIANCE = 0.01


class Side(NamedTuple):
    """The users, or the items. Capacity may exceed what is known.

    Attributes
    ----------
    mean : ndarray of shape (n, R)
        Posterior means of p, or of q.
    moments : ndarray of shape (n, R (R + 1) / 2)
        Packed E[p pᵀ].
    weight : ndarray of shape (n,)
        ω, the precision of the noise beside the common one.
    shift : ndarray of shape (n, f)
        Σ w / √n over the partners: prior mean less `base`.
    implicit, implicit_var : ndarray of shape (n, f)
        Posterior of w, by which this side shifts the prior means of its partners.
    heads, counts : ndarray of shape (n,)
        Position of the last rating, or -1, and number of ratings.
    base, variance, implicit_prior : ndarray of shape (f,)
        Prior mean, prior variance v, prior variance of w.
    sums : ndarray of shape (4, f)
        What a sweep has collected for them.
    """

    mean: Floats
    moments: Floats
    weight: Floats
    shift: Floats
    implicit: Floats
    implicit_var: Floats
    heads: Integers
    counts: Integers
    base: Floats
    variance: Floats
    implicit_prior: Floats
    sums: Floats


class Entries(NamedTuple):
    """The ratings: users and items by position, z in units of the model, and the lists."""

    user: Integers
    item: Integers
    z: Floats
    user_links: Integers
    item_links: Integers


class Workspace(NamedTuple):
    """What a sweep works in, and what a sweep has collected for the noise."""

    A: Floats
    h: Floats
    H: Floats
    rhs: Floats
    implicit: Floats  # (2, f)
    noise: Floats  # (3,): σ², Σ squares left, number of ratings


@inner_jit
def collect(e, heads, links, partners, z, others, workspace):
    """Sum over the ratings of e, into `workspace`; return Σ ω z²."""
    A, h = workspace.A, workspace.h
    sum_w, sum_var = workspace.implicit[0], workspace.implicit[1]
    for a in range(A.shape[0]):
        A[a] = 0.0
    for a in range(h.shape[0]):
        h[a] = 0.0
    for a in range(sum_w.shape[0]):
        sum_w[a] = 0.0
        sum_var[a] = 0.0
    squares = 0.0
    at = heads[e]
    while at >= 0:
        partner = partners[at]
        weight, moments, mean = (
            others.weight[partner],
            others.moments[partner],
            others.mean[partner],
        )
        weighted = weight * z[at]
        for a in range(A.shape[0]):
            A[a] += weight * moments[a]
        for a in range(h.shape[0]):
            h[a] += weighted * mean[a]
        w, var = others.implicit[partner], others.implicit_var[partner]
        for a in range(sum_w.shape[0]):
            sum_w[a] += w[a]
            sum_var[a] += var[a]
        squares += weighted * z[at]
        at = links[at]
    return squares


@inner_jit
def solve_posterior(e, side, fixed, scale, workspace):
    """Posterior of e from the sums in `workspace`, which count `scale` times."""
    A, h, H, rhs = workspace.A, workspace.h, workspace.H, workspace.rhs
    p, moments = side.mean[e], side.moments[e]
    R = h.shape[0]
    row = 0
    for a in range(R):
        if a == fixed:
            continue
        offset = a * (a + 1) // 2
        column = 0
        for b in range(a + 1):
            if b != fixed:
                H[row, column] = H[column, row] = scale * A[offset + b]
                column += 1
        H[row, row] += 1.0 / side.variance[row]
        across = offset + fixed if fixed < a else fixed * (fixed + 1) // 2 + a
        prior = side.base[row] + side.shift[e, row]
        rhs[row] = prior / side.variance[row] + scale * (h[a] - A[across])
        row += 1
    invert(H, 1e-14)
    row = 0
    for a in range(R):
        p[a] = 1.0
        if a != fixed:
            p[a] = dot(H[row], rhs)
            row += 1
    fill_moments(p, H, fixed, moments)


@inner_jit
def fill_moments(p, H, fixed, moments):
    """Packed E[p pᵀ] from the mean and the covariance H of the free entries."""
    at = row = 0
    for a in range(p.shape[0]):
        column = 0
        for b in range(a + 1):
            moments[at] = p[a] * p[b]
            if a != fixed and b != fixed:
                moments[at] += H[row, column]
                column += 1
            at += 1
        if a != fixed:
            row += 1


@inner_jit
def squares_left(squares, p, moments, workspace):
    """Expected weighted squares of what p leaves of the ratings summed in `workspace`."""
    A, h = workspace.A, workspace.h
    total = squares - 2.0 * dot(h, p)
    at = 0
    for a in range(h.shape[0]):
        for b in range(a):
            total += 2.0 * A[at + b] * moments[at + b]
        total += A[at + a] * moments[at + a]
        at += a + 1
    return max(total, 0.0)


@inner_jit
def update_posterior(e, side, others, fixed, links, partners, z, workspace):
    """Update the posterior of e, its prior mean and its noise; return what is left, weighted."""
    squares = collect(e, side.heads, links, partners, z, others, workspace)
    noise, count = workspace.noise[0], side.counts[e]
    root = np.sqrt(max(count, 1))
    for k in range(side.base.shape[0]):
        side.shift[e, k] = workspace.implicit[0, k] / root
    solve_posterior(e, side, fixed, side.weight[e] / noise, workspace)
    left = squares_left(squares, side.mean[e], side.moments[e], workspace)
    side.weight[e] = (NOISE_SHAPE + 0.5 * count) / (NOISE_SHAPE + 0.5 * left / noise)
    return side.weight[e] * left


@inner_jit
def sweep_posterior(e, side, others, fixed, links, partners, z, workspace):
    """Update e, and collect what the priors and the noise are estimated from."""
    left = update_posterior(e, side, others, fixed, links, partners, z, workspace)
    count = side.counts[e]
    if count == 0:
        return
    row = 0
    for a in range(side.mean.shape[1]):
        if a == fixed:
            continue
        mean = side.mean[e, a]
        away = mean - side.shift[e, row]
        variance = side.moments[e, a * (a + 1) // 2 + a] - mean * mean
        off = away - side.base[row]
        side.sums[0, row] += away
        side.sums[1, row] += off * off + variance + workspace.implicit[1, row] / count
        row += 1
    side.sums[3, 0] += 1.0
    workspace.noise[1] += left
    workspace.noise[2] += count


@inner_jit
def end_posterior_sweep(side, first_variance, workspace):
    """Priors of a side, and the noise, from what a sweep over it has collected."""
    sums, n = side.sums, side.sums[3, 0]
    for k in range(side.base.shape[0]):
        side.base[k] = sums[0, k] / (n + 1.0)
        side.variance[k] = (PRIOR_COUNT * first_variance[k] + sums[1, k]) / (PRIOR_COUNT + n)
        sums[0, k] = sums[1, k] = 0.0
    sums[3, 0] = 0.0
    workspace.noise[0] = (PRIOR_COUNT + workspace.noise[1]) / (PRIOR_COUNT + workspace.noise[2])
    workspace.noise[1] = workspace.noise[2] = 0.0


@inner_jit
def sweep_implicit(e, side, others, fixed, links, partners, workspace):
    """Update w of e, which shifts the prior means of its partners `others`."""
    f = side.base.shape[0]
    total, old = workspace.implicit[0], workspace.implicit[1]
    for k in range(f):
        total[k] = 0.0
        old[k] = side.implicit[e, k]
    shares = 0.0
    at = side.heads[e]
    while at >= 0:
        partner = partners[at]
        mean, shift = others.mean[partner], others.shift[partner]
        share = 1.0 / others.counts[partner]
        root = np.sqrt(share)
        shares += share
        for k in range(f):
            total[k] += root * (mean[k + (k >= fixed)] - others.base[k] - shift[k])
        at = links[at]
    for k in range(f):
        v = others.variance[k]
        var = 1.0 / (1.0 / side.implicit_prior[k] + shares / v)
        side.implicit[e, k] = var * (total[k] + shares * old[k]) / v
        side.implicit_var[e, k] = var
        side.sums[2, k] += side.implicit[e, k] ** 2 + var
        total[k] = side.implicit[e, k] - old[k]
    side.sums[3, 1] += 1.0
    at = side.heads[e]
    while at >= 0:
        partner = partners[at]
        root = 1.0 / np.sqrt(others.counts[partner])
        for k in range(f):
            others.shift[partner, k] += root * total[k]
        at = links[at]


@inner_jit
def end_implicit_sweep(side):
    """Prior variance of w from what a sweep has collected."""
    sums, n = side.sums, side.sums[3, 1]
    for k in range(side.base.shape[0]):
        prior = PRIOR_COUNT * IMPLICIT_VARIANCE
        side.implicit_prior[k] = (prior + sums[2, k]) / (PRIOR_COUNT + n)
        sums[2, k] = 0.0
    sums[3, 1] = 0.0


@inner_jit
def sweep_step(place, known, users, items, entries, first_variances, implicit, workspace):
    """Update the next user or item of a round; return its number of ratings.

    place (3,): the phase of the round, the next to update, and what streams may spend. A round has
    four phases: posteriors of users, w of items, posteriors of items, w of users.
    """
    phase, e = place[0], place[1]
    r = users.mean.shape[1] - 2
    count = 0
    if phase == 0 and e < known[0]:
        count = users.counts[e]
        sweep_posterior(
            e, users, items, r + 1, entries.user_links, entries.item, entries.z, workspace
        )
    elif phase == 1 and e < known[1] and implicit:
        count = items.counts[e]
        sweep_implicit(e, items, users, r + 1, entries.item_links, entries.user, workspace)
    elif phase == 2 and e < known[1]:
        count = items.counts[e]
        sweep_posterior(e, items, users, r, entries.item_links, entries.user, entries.z, workspace)
    elif phase == 3 and e < known[0] and implicit:
        count = users.counts[e]
        sweep_implicit(e, users, items, r, entries.user_links, entries.item, workspace)
    else:
        if phase == 0:
            end_posterior_sweep(users, first_variances[0], workspace)
        elif phase == 2:
            end_posterior_sweep(items, first_variances[1], workspace)
        elif phase == 1 and implicit:
            end_implicit_sweep(items)
        elif phase == 3 and implicit:
            end_implicit_sweep(users)
        place[0], place[1] = (phase + 1) % 4, 0
        return 0
    place[1] = e + 1
    return count


@jit
def sweep_rounds(
    n_rounds, place, known, users, items, entries, first_variances, implicit, workspace
):
    """Whole rounds over all users and items."""
    for _ in range(n_rounds):
        started = False
        while not (started and place[0] == 0 and place[1] == 0):
            started = True
            sweep_step(place, known, users, items, entries, first_variances, implicit, workspace)
