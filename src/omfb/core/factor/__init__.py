"""The model with nothing to tune: mean, units, noise and components, found from the stream.

    y_i = μ_i + c_iᵀx + noise(d_i²),   x ~ N(0, I),   c_i ~ N(0, d_i² diag(v))

Inside, features are divided by their noise d_i after a fixed centre was subtracted, so the noise is
1 for all of them; codes carry a last entry that is 1, and the last column of C is the mean.
"""
