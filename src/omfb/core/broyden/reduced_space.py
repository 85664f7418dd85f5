"""Reduced space: the r-dimensional part that all kinds of steps share.

One row's alternation (docs/explanation/paper.md, "Inner rounds cost nothing in m"), written with
H = (G_Ω + (α+τ) I)⁻¹ alone. With k and x of one round, g = Cᵀe, ε = eᵀe, the Gram matrix after
the update is

    G' = G + g kᵀ + k gᵀ + ε k kᵀ,     b' = b + k (n − bᵀx)

and, by Woodbury with u = H k, v = H g, p = kᵀu, γ = gᵀu, δ = ε − gᵀv ≥ 0,

    H' = H + (p v vᵀ − (1+γ)(u vᵀ + v uᵀ) − δ u uᵀ) / Δ,     Δ = (1+γ)² + p δ.

Δ is a sum of squares, so nothing cancels. As x solves its round exactly, g needs no product with G:
it is (α+τ) x − τ x₋ in the first round, and then follows from the previous g and k.
"""

from ..linalg.compiling import inner_jit, jit
from ..linalg.small import dot, multiply, solve, subtract_outer
from .state import MOSTLY_OBSERVED

# Below this ratio of determinants the updated Gram matrix is numerically singular, and the caller
# takes the minimum-norm path of `penalties.py`.
SMALLEST_DETERMINANT_RATIO = 1e-10


@inner_jit
def multiply_inverse(H, factorised, x, out):
    """out = H x; or M⁻¹ x, if H holds the factors of M (`factorise`)."""
    if factorised:
        for j in range(x.shape[0]):
            out[j] = x[j]
        solve(H, out)
    else:
        multiply(H, x, out)


@inner_jit
def alternate(
    b, n, H, factorised, S_inverse, inverse_scale, forget_factor, ridge, smooth, inner_iter,
    x_before, work,
):  # fmt: skip
    """Alternate between code and dictionary `inner_iter` times in reduced space.

    H may be factors, as in `multiply_inverse`. S̄⁻¹ is inverse_scale S_inverse. `work` is (7, r):
    on entry, row 5 is the first code H (b + τ x₋) and, unless ρ = 0, row 6 its product with
    S_inverse; on return, rows 0 to 4 are x, k, g, u, v. Returns the residual energy before
    learning, ε, 1 + xᵀS̄⁻¹x, and the coefficients of H' on vvᵀ, uvᵀ + vuᵀ, uuᵀ; the first is
    negative if the system has become singular.
    """
    x, k, g, u, v, x_first, z = work[0], work[1], work[2], work[3], work[4], work[5], work[6]
    r = b.shape[0]
    pull = ridge + smooth
    for j in range(r):
        x[j] = x_first[j]
        g[j] = pull * x[j] - smooth * x_before[j]
    epsilon = max(n - dot(b, x) - dot(g, x), 0.0)
    before = epsilon
    for round_ in range(inner_iter):
        if forget_factor == 0.0:
            for j in range(r):
                z[j] = S_inverse[0, 0] * x[j]  # S̄ = λ I
        else:
            if round_ > 0:
                multiply(S_inverse, x, z)
            for j in range(r):
                z[j] *= inverse_scale
        stretch = 1.0 + max(dot(x, z), 0.0)  # rounding of S̄⁻¹ must not flip the gain's sign
        for j in range(r):
            k[j] = z[j] / stretch
        multiply_inverse(H, factorised, k, u)
        if pull != 0.0:
            multiply_inverse(H, factorised, g, v)
        elif round_ == 0:
            for j in range(r):
                v[j] = 0.0  # x is the least squares code, so g is zero
        p = dot(k, u)
        gamma = 1.0 + dot(g, u)
        delta = max(epsilon - dot(g, v), 0.0)
        determinant = gamma * gamma + p * delta
        if not determinant > SMALLEST_DETERMINANT_RATIO:
            return -1.0, epsilon, stretch, 0.0, 0.0, 0.0
        if round_ + 1 < inner_iter:
            lift = n - dot(b, x)
            # x = H'(b' + τ x₋), from H (b' + τ x₋) = x_first + lift u.
            on_v = dot(g, x_first) + lift * dot(v, k)
            on_u = dot(k, x_first) + lift * p
            along_u = lift - (gamma * on_v + delta * on_u) / determinant
            along_v = (p * on_v - gamma * on_u) / determinant
            for j in range(r):
                x[j] = x_first[j] + along_u * u[j] + along_v * v[j]
            k_x = dot(k, x)
            along_k = lift - dot(g, x) - epsilon * k_x
            for j in range(r):
                g[j] = pull * x[j] - smooth * x_before[j] - along_k * k[j] + k_x * g[j]
            if pull == 0.0:
                for j in range(r):
                    v[j] = k_x * v[j] - along_k * u[j]
            epsilon = max(n - dot(b, x) - dot(g, x), 0.0)
    return before, epsilon, stretch, p / determinant, -gamma / determinant, -delta / determinant


@inner_jit
def add_symmetric(M, v, u, on_vv, on_vu, on_uu):
    """M += on_vv v vᵀ + on_vu (v uᵀ + u vᵀ) + on_uu u uᵀ."""
    for i in range(v.shape[0]):
        along_v = on_vv * v[i] + on_vu * u[i]
        along_u = on_vu * v[i] + on_uu * u[i]
        for j in range(v.shape[0]):
            M[i, j] += along_v * v[j] + along_u * u[j]


@inner_jit
def add_symmetric_and_multiply(M, v, u, on_vv, on_vu, on_uu, x, out):
    """`add_symmetric`, then out = M x, in one pass over M."""
    for i in range(v.shape[0]):
        along_v = on_vv * v[i] + on_vu * u[i]
        along_u = on_vu * v[i] + on_uu * u[i]
        row = M[i]
        total = 0.0
        for j in range(v.shape[0]):
            row[j] += along_v * v[j] + along_u * u[j]
            total += row[j] * x[j]
        out[i] = total


@inner_jit
def pass_on_four(X, K, N, P, first):
    """Update b of the later rows (P from row `first` on) for the steps of four rows."""
    x0, x1, x2, x3 = X[0], X[1], X[2], X[3]
    k0, k1, k2, k3 = K[0], K[1], K[2], K[3]
    x1_k0, x2_k0, x3_k0 = dot(x1, k0), dot(x2, k0), dot(x3, k0)
    x2_k1, x3_k1, x3_k2 = dot(x2, k1), dot(x3, k1), dot(x3, k2)
    r = P.shape[1]
    for later in range(first, P.shape[0]):
        b = P[later]
        a0 = a1 = a2 = a3 = 0.0
        for j in range(r):
            a0 += x0[j] * b[j]
            a1 += x1[j] * b[j]
            a2 += x2[j] * b[j]
            a3 += x3[j] * b[j]
        a0 = N[0, later] - a0
        a1 = N[1, later] - a1 - a0 * x1_k0
        a2 = N[2, later] - a2 - a0 * x2_k0 - a1 * x2_k1
        a3 = N[3, later] - a3 - a0 * x3_k0 - a1 * x3_k1 - a2 * x3_k2
        for j in range(r):
            b[j] += a0 * k0[j] + a1 * k1[j] + a2 * k2[j] + a3 * k3[j]


@inner_jit
def pass_on(X, K, N, P, t):
    """Update b of the row after t for the steps before it; of all later rows, four at a time."""
    if t % 4 == 3:
        pass_on_four(X[t - 3 : t + 1], K[t - 3 : t + 1], N[t - 3 : t + 1], P, t + 1)
    elif t + 1 < P.shape[0]:
        b = P[t + 1]
        for earlier in range(t - t % 4, t + 1):
            along = N[earlier, t + 1] - dot(X[earlier], b)
            for j in range(b.shape[0]):
                b[j] += along * K[earlier, j]


@jit
def retained_fraction(forget_factor, weight, rows, share):
    """Fraction of S that is retained when rows with this share observed follow a weight.

    Not weight / (weight + rows): reordered, its product with a large S would overflow.
    """
    return (
        forget_factor * (1.0 - rows / (weight + rows))
        if share >= MOSTLY_OBSERVED
        else forget_factor
    )


@inner_jit
def before_row(S, lam, forget_factor, weight, share, S_inverse):
    """Return inverse_scale, whose product with S_inverse is S̄⁻¹ for the next row.

    S̄ is retained S + (1 − ρ) λ I. For ρ = 0 it is constant, and for ρ = 1 `remember_inverse`
    updates S_inverse by a rank-one term. The leak of 0 < ρ < 1 has full rank, which needs a new
    inverse: S_inverse becomes S̄, and the caller inverts it.
    """
    if forget_factor == 1.0:
        return 1.0 / retained_fraction(forget_factor, weight, 1.0, share)
    if forget_factor > 0.0:
        left = retained_fraction(forget_factor, weight, 1.0, share)
        for i in range(S.shape[0]):
            for j in range(S.shape[0]):
                S_inverse[i, j] = left * S[i, j]
            S_inverse[i, i] += (1.0 - forget_factor) * lam
    return 1.0


@inner_jit
def remember(S, lam, forget_factor, weight, share, x):
    """S ← S̄ + share x xᵀ.

    `share` is the share of the features that the row observes. S is shared by all features, and a
    feature learns from that share of the rows on average: counting whole rows makes dictionaries
    of mostly missing data far too stiff. For ρ = 0, S stays λ I.
    """
    if forget_factor > 0.0:
        left = retained_fraction(forget_factor, weight, 1.0, share)
        for i in range(S.shape[0]):
            along = share * x[i]
            for j in range(S.shape[0]):
                S[i, j] = left * S[i, j] + along * x[j]
            S[i, i] += (1.0 - forget_factor) * lam


@inner_jit
def remember_inverse(S_inverse, inverse_scale, forget_factor, share, k, stretch, scaled):
    """Apply `remember` to the inverse of S, for ρ = 1; `scaled` is a workspace."""
    if forget_factor == 1.0:
        subtract_outer(S_inverse, inverse_scale, taken_by_row(share, stretch), k, scaled)


@inner_jit
def taken_by_row(share, stretch):
    """Factor of k kᵀ that a row subtracts from S⁻¹: S̄⁻¹x = stretch k, xᵀS̄⁻¹x = stretch − 1."""
    return share * stretch * stretch / (1.0 + share * (stretch - 1.0))


@inner_jit
def subtract_outer_and_multiply(M, left, down, k, scaled, x, out):
    """`subtract_outer`, then out = M x, in one pass over M."""
    for i in range(k.shape[0]):
        scaled[i] = down * k[i]
    for i in range(k.shape[0]):
        along, row = scaled[i], M[i]
        total = 0.0
        for j in range(k.shape[0]):
            row[j] = left * row[j] - along * k[j]
            total += row[j] * x[j]
        out[i] = total
