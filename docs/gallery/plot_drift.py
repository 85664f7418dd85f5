"""
Data that change
================

Halfway through a stream, every component becomes another one. `drift_` says when this was noticed,
and ``forget_factor="auto"`` then forgets most of the past.
"""

# %%
# Five components in 40 features, with noise; after 2000 rows, five others.
import matplotlib.pyplot as plt
import numpy as np

from omfb import OnlineFactorAnalysis

rng = np.random.default_rng(0)
before, after = rng.standard_normal((2, 5, 40))
rows = np.concatenate([rng.standard_normal((2000, 5)) @ atoms for atoms in (before, after)])
rows += 0.3 * rng.standard_normal(rows.shape)

models = {
    "forgets nothing": OnlineFactorAnalysis(random_state=0),
    'forget_factor="auto"': OnlineFactorAnalysis(forget_factor="auto", random_state=0),
}
errors = {name: [] for name in models}
for start in range(0, len(rows), 20):
    for name, model in models.items():
        model.partial_fit(rows[start : start + 20])
        errors[name].append(model.recent_error_)

# %%
# The error of the last rows, each predicted before it was learned:
fig, ax = plt.subplots(layout="constrained")
for name, values in errors.items():
    ax.plot(20 * np.arange(1, len(values) + 1), values, label=name)
ax.axvline(2000, color="grey", linestyle=":", label="change")
ax.set_xlabel("rows learned")
ax.set_ylabel("error, relative to the mean")
ax.set_ylim(bottom=0)
ax.legend()
plt.show()

# %%
for name, model in models.items():
    print(f"{name}: change noticed at row {np.asarray(model.drift_).tolist()}")
