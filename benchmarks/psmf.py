"""PSMF and rPSMF: probabilistic sequential matrix factorisation, with a random walk of the codes.

Akyildiz, van den Burg, Damoulas and Steel, "Probabilistic sequential matrix factorization" (2021).
A row y has the code x and the dictionary C, of which each is learned given what is expected of the
other; where entries are missing, only those rows of C that are observed take part.

    x̄ = x,  P̄ = P + q I                                     what is expected before the row
    s = x̄ᵀVx̄,  η = (ρ |Ω| + tr(C_Ω P̄ C_Ωᵀ)) / m
    C_Ω += (y − C x̄)_Ω (V x̄)ᵀ / (s + η),  V −= V x̄ x̄ᵀ V / (s + η)
    S = C_Ω P̄ C_Ωᵀ + (ρ + s) I
    x = x̄ + P̄ C_Ωᵀ S⁻¹ (y − C x̄)_Ω,  P = P̄ − P̄ C_Ωᵀ S⁻¹ C_Ω P̄

The robust one has noise of Student's t: with λ degrees of freedom, which grow by m with each row,
P, q and ρ are multiplied by ω = (λ + eᵀS⁻¹e) / (λ + m), and V by φ = (λ + eᵀe / (s + η)) / (λ + m).
"""

import numpy as np


def psmf(
    X: np.ndarray,
    rank: int = 10,
    rho: float = 10.0,
    q: float = 0.1,
    passes: int = 2,
    robust: bool = False,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray]:
    """All entries as the dictionary and codes of the last pass give them, and their deviations."""
    n, m = X.shape
    rng = np.random.default_rng(seed)
    C, codes = rng.random((m, rank)), rng.random((n, rank))
    V, P = 2.0 * np.eye(rank), np.eye(rank)
    variances = np.empty((n, m))
    for _ in range(passes):
        x, walk, noise, freedom = codes[-1], q, rho, 1.8
        for t, row in enumerate(X):
            seen = np.flatnonzero(~np.isnan(row))
            P_bar = P + walk * np.eye(rank)
            C_seen = C[seen]
            error = row[seen] - C_seen @ x
            Vx = V @ x
            s = x @ Vx
            gram = C_seen.T @ C_seen
            eta = (noise * len(seen) + np.sum(gram * P_bar)) / m
            variances[t] = s + eta
            # S⁻¹ by r × r systems: P̄ − P̄CᵀS⁻¹CP̄ is the inverse of P̄⁻¹ + CᵀC / (ρ + s).
            level = noise + s
            posterior = np.linalg.inv(np.linalg.inv(P_bar) + gram / level)
            step = posterior @ (C_seen.T @ error) / level
            C[seen] += np.outer(error, Vx / (s + eta))
            V = V - np.outer(Vx, Vx) / (s + eta)
            P, x = posterior, x + step
            if robust:
                explained = error @ (error - C_seen @ step) / level
                omega = (freedom + explained) / (freedom + m)
                V *= (freedom + error @ error / (s + eta)) / (freedom + m)
                P, walk, noise = omega * P, omega * walk, omega * noise
                freedom += m
            codes[t] = x
    return codes @ C.T, np.sqrt(variances)
