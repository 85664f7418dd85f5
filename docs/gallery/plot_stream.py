"""
A stream of rows
================

Rows arrive one at a time, with missing values. The model learns from each and forgets none.
"""

# %%
# Five components and noise in 40 features; a tenth of the entries is missing.
import matplotlib.pyplot as plt
import numpy as np

from omfb import OnlineFactorAnalysis, plots

rng = np.random.default_rng(0)
atoms = rng.standard_normal((5, 40))


def next_row():
    """A row of the stream."""
    row = 3 + rng.standard_normal(5) @ atoms + 0.3 * rng.standard_normal(40)
    row[rng.random(40) < 0.1] = np.nan
    return row[None]


model = OnlineFactorAnalysis(random_state=0)
errors = []
for _ in range(3000):
    model.partial_fit(next_row())
    if model.n_samples_seen_ >= 100:
        errors.append((model.n_samples_seen_, model.recent_error_))

# %%
# The error of the last rows, each entry predicted from the rest of its row before the model learned
# it, relative to the mean. With this noise, no model can be below the dashed line for long.
fig, ax = plt.subplots(layout="constrained")
ax.plot(*np.transpose(errors))
ax.set(xlabel="rows learned", ylabel="recent error, relative to the mean", ylim=(0.0, None))
signal = np.mean(np.sum(atoms**2, axis=0))
ax.axhline(0.3 / np.sqrt(signal + 0.09), color="grey", linestyle="--")
plt.show()

# %%
# How much variance each component explains: five stand out.
plots.spectrum(model)
plt.show()

# %%
# A new row is filled from what is observed of it. Bars are 90 % intervals.
row = next_row()
row[0, 5:15] = np.nan
filled = model.complete(row)[0]
low, high = (bound[0] for bound in model.interval(row, level=0.9))
missing = np.flatnonzero(np.isnan(row[0]))
fig, ax = plt.subplots(layout="constrained")
ax.plot(row[0], "o", label="observed")
bars = [filled[missing] - low[missing], high[missing] - filled[missing]]
ax.errorbar(missing, filled[missing], bars, fmt="s", capsize=3, label="filled, 90 % interval")
ax.set_xlabel("feature")
ax.legend()
plt.show()
