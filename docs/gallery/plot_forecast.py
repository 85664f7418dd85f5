"""
A forecast
==========

A model of rows in time continues them. The intervals widen with the horizon.
"""

# %%
# Air quality in Beijing: the model learns all but the last day, which it then forecasts.
import matplotlib.pyplot as plt

from omfb import OMFBImputer, plots
from omfb.datasets import load_air

air = load_air(as_frame=True).data
air = air[[name for name in air.columns if name.split()[-1] in ("Dongsi", "Wanliu")]]
known, ahead = air.iloc[:-24], air.iloc[-24:]
model = OMFBImputer(random_state=0).fit(known)

# %%
# One line draws it; the dotted truth was not seen by the model.
columns = ["TEMP Dongsi", "PM2.5 Dongsi"]
axes = plots.forecast(model, known, 24, columns, past=96)
for ax, name in zip(axes, columns, strict=True):
    ax.plot(ahead.index, ahead[name], color="black", linestyle=":", linewidth=1)
plt.show()
