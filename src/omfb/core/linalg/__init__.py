"""Kernels: arrays in, arrays out. NumPy and Numba only; one file for each kind of block.

==========  ==========  =========================================================
symbol      shape       meaning
==========  ==========  =========================================================
m, r, q     scalars     features, components, rows of a block
Y           (q, m)      a block of observations, one in a row
C           (m, r)      dictionary; a row belongs to a feature
G           (r, r)      CᵀC, over all features; G_Ω over the observed ones
H           (r, r)      (G_Ω + (α + τ) I)⁻¹
S           (r, r)      precision of C, shared by its rows; S̄ before the new code
b, n        (r,), ()    Cᵀy and yᵀy over the observed features
x, x₋       (r,)        code of y, code of the observation before
k           (r,)        gain: C ← C + e kᵀ with e = y − C x on the observed features
g, ε        (r,), ()    Cᵀe and eᵀe, with the C before the update
α, τ, β     scalars     ridge, smooth, shrink
==========  ==========  =========================================================

Small space (everything of size r or q) is float64 whatever the type of C and Y.
Numba kernels are compiled on their first call and cached on disk, never at import.
"""
