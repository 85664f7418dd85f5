"""The variational updates of ratings as their formulas are, with loops and full matrices."""

import numpy as np

SHAPE, PRIOR_COUNT, IMPLICIT = 20.0, 5.0, 0.01


class Side:
    """Users or items: moments as full matrices, `fixed` the entry that is one."""

    def __init__(self, n, r, fixed, variance, mean, rng=None):
        self.fixed = fixed
        self.free = [a for a in range(r + 2) if a != fixed]
        self.mean = mean.copy()
        self.second = np.array([np.outer(p, p) for p in mean])
        for a in self.free:
            self.second[:, a, a] += 0.1
        self.weight = np.ones(n)
        self.w, self.w_var = np.zeros((n, r + 1)), np.full((n, r + 1), IMPLICIT)
        self.w_prior = np.full(r + 1, IMPLICIT)
        self.base, self.v, self.v_first = np.zeros(r + 1), variance.copy(), variance


class Naive:
    """Ratings z of pairs, updated user by user and item by item."""

    def __init__(self, user, item, z, users, items):
        self.z, self.noise = z, 1.0
        self.sides, self.of = (users, items), (user, item)

    def count(self, s, e):
        return (self.of[s] == e).sum()

    def shift(self, s, e):
        """What the choice of partners says of e."""
        other = self.sides[1 - s]
        rated = self.of[1 - s][self.of[s] == e]
        return other.w[rated].sum(0) / np.sqrt(len(rated))

    def update_posteriors(self, s):
        side, other = self.sides[s], self.sides[1 - s]
        f, o = side.free, side.fixed
        left_of_all, away, squares = 0.0, 0.0, 0.0
        for e in range(len(side.mean)):
            rated = np.flatnonzero(self.of[s] == e)
            partners = self.of[1 - s][rated]
            A = sum(other.weight[i] * other.second[i] for i in partners)
            h = sum(
                other.weight[i] * z * other.mean[i]
                for i, z in zip(partners, self.z[rated], strict=True)
            )
            scale = side.weight[e] / self.noise
            H = np.linalg.inv(np.diag(1.0 / side.v) + scale * A[np.ix_(f, f)])
            prior = side.base + self.shift(s, e)
            side.mean[e, f] = H @ (prior / side.v + scale * (h[f] - A[f, o]))
            side.second[e] = np.outer(side.mean[e], side.mean[e])
            side.second[e][np.ix_(f, f)] += H
            # What is left, rating by rating.
            left = 0.0
            for i, z in zip(partners, self.z[rated], strict=True):
                expected = np.sum(side.second[e] * other.second[i])
                left += other.weight[i] * (z * z - 2 * z * side.mean[e] @ other.mean[i] + expected)
            n = len(rated)
            side.weight[e] = (SHAPE + 0.5 * n) / (SHAPE + 0.5 * left / self.noise)
            left_of_all += side.weight[e] * left
            mean = side.mean[e, f]
            away += mean - self.shift(s, e)
            spread = np.diag(H) + other.w_var[partners].sum(0) / n
            squares += (mean - prior) ** 2 + spread
        n = len(side.mean)
        side.base = away / (n + 1)
        side.v = (PRIOR_COUNT * side.v_first + squares) / (PRIOR_COUNT + n)
        self.noise = (PRIOR_COUNT + left_of_all) / (PRIOR_COUNT + len(self.z))

    def update_implicit(self, s):
        """The loadings w of side s, which shift the priors of the other side."""
        side, other = self.sides[s], self.sides[1 - s]
        for e in range(len(side.mean)):
            partners = self.of[1 - s][self.of[s] == e]
            shares = np.array([1.0 / self.count(1 - s, u) for u in partners])
            total = 0.0
            for u, share in zip(partners, shares, strict=True):
                without = self.shift(1 - s, u) - np.sqrt(share) * side.w[e]
                total += np.sqrt(share) * (other.mean[u, other.free] - other.base - without)
            side.w_var[e] = 1.0 / (1.0 / side.w_prior + shares.sum() / other.v)
            side.w[e] = side.w_var[e] * total / other.v
        squares = (side.w**2 + side.w_var).sum(0)
        side.w_prior = (PRIOR_COUNT * IMPLICIT + squares) / (PRIOR_COUNT + len(side.mean))

    def round(self, implicit):
        for s in (0, 1):
            self.update_posteriors(s)
            if implicit:
                self.update_implicit(1 - s)
