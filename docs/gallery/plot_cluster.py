"""
A Dask cluster learns
=====================

Workers learn from the chunks they hold, and what they have learned is added up. The model does not
depend on how many workers there are.
"""

# %%
# Two workers on this machine, as threads; ``Client("tcp://…")`` uses any other cluster.
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client, LocalCluster

from omfb import OnlineFactorAnalysis, plots


def rows(n_rows=40_000, rank=6, n_features=60):
    """Rows of low rank with noise, in chunks."""
    rng = da.random.default_rng(0)
    atoms = rng.standard_normal((rank, n_features), chunks=-1)
    codes = rng.standard_normal((n_rows, rank), chunks=(2_000, -1))
    return codes @ atoms + 0.5 * rng.standard_normal((n_rows, n_features), chunks=(2_000, -1))


X = rows()
spectra, components = [], []
for n_workers in (1, 2):
    cluster = LocalCluster(
        n_workers=n_workers, threads_per_worker=1, processes=False, dashboard_address=None
    )
    with cluster, Client(cluster):
        model = OnlineFactorAnalysis(random_state=0).fit(X)
        components.append(model.components_)
print("the same bits:", np.array_equal(*components))

# %%
# Six components stand out:
plots.spectrum(model)
plt.show()

# %%
# Answers for Dask collections are lazy. Here the codes of all rows, of which a few are computed:
codes = model.transform(X)
print(codes)
first = codes[:2_000].compute()
fig, ax = plt.subplots(layout="constrained")
ax.plot(first[:, 0], first[:, 1], ".", markersize=3)
ax.set_xlabel("first component")
ax.set_ylabel("second component")
plt.show()
