"""
Beside other imputers
=====================

Four ways to fill the same gaps, none of them tuned. ``make bench`` does this in earnest, with tuned
peers on 23 panels.
"""

# %%
# Six weeks of air quality at twelve stations, with gaps of three kinds: single values, runs of half
# a day, and stations that are off for a day.
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import KNNImputer, SimpleImputer

from omfb import OMFBImputer
from omfb.datasets import load_air

air = load_air(as_frame=True).data.loc["2013-04-01":"2013-05-15"]
unit = air.std()
rng = np.random.default_rng(0)
kinds = {"single hours": rng.random(air.shape) < 0.05}
runs = np.zeros(air.shape, bool)
for column in range(air.shape[1]):
    for start in rng.integers(0, len(air) - 12, 4):
        runs[start : start + 12, column] = True
outages = np.zeros(air.shape, bool)
for station in {name.split()[-1] for name in air.columns}:
    start = rng.integers(0, len(air) - 24)
    outages[start : start + 24, [name.endswith(station) for name in air.columns]] = True
kinds |= {"half a day": runs, "station off for a day": outages}
gappy = air.mask(np.any(list(kinds.values()), axis=0))

# %%
methods = {
    "OMFBImputer": lambda X: OMFBImputer(random_state=0).fit(X).complete(X),
    "KNNImputer, scaled": lambda X: KNNImputer().fit_transform(X / unit) * unit.to_numpy(),
    "interpolation": lambda X: X.interpolate(limit_direction="both"),
    "mean": lambda X: SimpleImputer().fit_transform(X),
}
errors, seconds = {}, {}
OMFBImputer().fit(gappy[:50])  # compiles, once on each machine
for name, fill in methods.items():
    start = time.perf_counter()
    filled = np.asarray(fill(gappy))
    seconds[name] = time.perf_counter() - start
    off = np.abs(filled - air.to_numpy()) / unit.to_numpy()
    errors[name] = [np.nanmean(off[hidden]) for hidden in kinds.values()]

# %%
# Mean absolute errors in standard deviations:
fig, ax = plt.subplots(layout="constrained")
for at, (name, values) in enumerate(errors.items()):
    places = np.arange(len(kinds)) + 0.2 * (at - 1.5)
    ax.bar(places, values, width=0.18, label=f"{name} ({seconds[name]:.1f} s)")
ax.set_xticks(range(len(kinds)), list(kinds))
ax.set_ylabel("mean absolute error")
ax.set_ylim(top=1.1)
ax.legend()
plt.show()
