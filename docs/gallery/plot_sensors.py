"""
Sensors with gaps, and how sure the filled values are
=====================================================

Air quality at four stations in Beijing. A sensor fails for three days, and a whole station for one.
"""

# %%
# The gaps that the data already have, by time:
import matplotlib.pyplot as plt
import numpy as np

from omfb import OMFBImputer, metrics, plots
from omfb.datasets import load_air

air = load_air(as_frame=True).data
stations = ["Dongsi", "Guanyuan", "Tiantan", "Wanliu"]
air = air[[name for name in air.columns if name.split()[-1] in stations]]
plots.missing(air)
plt.show()

# %%
# Two more gaps, whose truth is known:
gappy = air.copy()
gappy.loc["2013-05-05":"2013-05-07", "O3 Dongsi"] = np.nan
gappy.loc["2013-05-09", [name for name in air.columns if name.endswith("Tiantan")]] = np.nan
model = OMFBImputer(random_state=0).fit(gappy)

# %%
# One line draws what was filled, with 90 % intervals. The dotted truth was not seen by the model.
days = slice("2013-05-03", "2013-05-11")
columns = ["O3 Dongsi", "PM2.5 Tiantan", "TEMP Tiantan"]
axes = plots.filled(model, gappy.loc[days], columns=columns)
for ax, name in zip(axes, columns, strict=True):
    truth = air.loc[days, name].where(gappy.loc[days, name].isna())
    ax.plot(truth.index, truth, color="black", linestyle=":", linewidth=1)
plt.show()

# %%
# How many of the hidden values lie within their intervals?
low, high = model.interval(gappy, level=0.9)
hidden = (air.notna() & gappy.isna()).to_numpy()
print(f"{100 * metrics.coverage(air, low, high, where=hidden):.0f} % of {hidden.sum()}")
