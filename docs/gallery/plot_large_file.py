"""
A file that need not fit in memory
==================================

`fit` takes a path and reads block by block. A fit that is killed continues from its checkpoint, to
the same model.
"""

# %%
# A file of 200,000 rows, 80 MB, written in pieces. (Nothing would change at 80 GB.)
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from omfb import OnlineFactorAnalysis, plots

folder = tempfile.TemporaryDirectory()
path = Path(folder.name) / "rows.npy"
n_rows, n_features, rank = 200_000, 100, 8
rng = np.random.default_rng(0)
atoms = rng.standard_normal((rank, n_features)) * np.linspace(3, 1, rank)[:, None]
rows = np.lib.format.open_memmap(path, "w+", np.float32, (n_rows, n_features))
for start in range(0, n_rows, 20_000):
    block = rng.standard_normal((20_000, rank)) @ atoms
    block += rng.standard_normal(block.shape)
    block[rng.random(block.shape) < 0.05] = np.nan
    rows[start : start + 20_000] = block
rows.flush()
del rows

# %%
# One pass, with a checkpoint on the way:
checkpoint = path.with_suffix(".ckpt")
model = OnlineFactorAnalysis(random_state=0).fit(path, checkpoint=checkpoint, every="50000rows")
print(f"{model.n_samples_seen_} rows, {path.stat().st_size / 1e6:.0f} MB")

# %%
# Eight components stand out of the noise:
plots.spectrum(model)
plt.show()

# %%
# The error as the file was read:
plots.error_history(model)
plt.show()
folder.cleanup()
