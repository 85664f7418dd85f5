"""
The paper's algorithm, and how much of it is its start
======================================================

Error of the dictionary after each pass, as in the first figure of the paper, on handwritten digits
in place of faces. (``omfb reproduce`` runs the paper's own experiments.)
"""

# %%
# `OMFB` is the paper's algorithm. `forget_factor=1` is the weighted norm that the paper leaves as
# future work: all rows so far decide how far the dictionary moves. The error of the best dictionary
# of this rank is that of the singular value decomposition.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from omfb import OMFB, metrics

X = load_digits().data / 16
rank, passes = 20, 15
optimum = np.sqrt(np.sum(np.linalg.svd(X, compute_uv=False)[rank:] ** 2))
models = {
    "the paper: random start, λ = 10": OMFB(
        rank, lam=10, init="random", batch_size=10, random_state=0
    ),
    "the same, start from rows": OMFB(rank, lam=10, batch_size=10, random_state=0),
    "forget_factor=1, start from rows": OMFB(rank, forget_factor=1, random_state=0),
}
rng = np.random.default_rng(0)
errors = {name: [] for name in models}
for _ in range(passes):
    order = rng.permutation(len(X))
    for name, model in models.items():
        model.partial_fit(X[order])
        errors[name].append(metrics.projection_error(X, model.components_))

# %%
fig, ax = plt.subplots(layout="constrained")
for name, values in errors.items():
    ax.plot(range(1, passes + 1), values, marker="o", markersize=3, label=name)
ax.axhline(optimum, color="grey", linestyle=":", label="optimum")
ax.set_xlabel("pass")
ax.set_ylabel("‖Y − C X‖")
ax.legend()
plt.show()
