"""The paper's algorithm: online matrix factorisation by Broyden-type updates, and its extensions.

==========  ==========  =========================================================
symbol      shape       meaning
==========  ==========  =========================================================
m, r, q     scalars     features, components, rows of a block
Y           (q, m)      a block of observations, one per row
C           (m, r)      dictionary, one row per feature
G           (r, r)      CᵀC, over all features; G_Ω over the observed ones
H           (r, r)      (G_Ω + (α + τ) I)⁻¹
S           (r, r)      precision of C, shared by its rows; S̄ before the new code
b, n        (r,), ()    Cᵀy and yᵀy over the observed features
x, x₋       (r,)        code of y, code of the previous observation
k           (r,)        gain: C ← C + e kᵀ with e = y − C x on the observed features
g, ε        (r,), ()    Cᵀe and eᵀe, with the C before the update
P, N        (q, r/q)    Y C and Y Yᵀ of a block
X, K, B     (q, r)      codes and gains of a block; its update is C (I − XᵀB) + YᵀB
λ, ρ        scalars     lam, forget_factor
α, τ, β     scalars     ridge, smooth, shrink
==========  ==========  =========================================================

Reduced space is everything of size r or q. It is float64 whatever the dtype of C and Y.
"""
