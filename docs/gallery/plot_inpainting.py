"""
Restore a photograph of which half is missing
=============================================

A photograph is cut into overlapping patches, gaps included. Each patch is written with few atoms of
a dictionary that is learned from the very same patches, and the restored patches are averaged.
"""

# %%
# One of scikit-learn's photographs; half of its pixels are missing at random.
import matplotlib.pyplot as plt
import numpy as np
from scipy.interpolate import griddata
from sklearn.datasets import load_sample_image

from omfb import OMFB, OnlineFactorAnalysis
from omfb.images import extract_patches, reconstruct_from_patches

image = load_sample_image("china.jpg")[60:260, 180:420].mean(axis=2) / 255.0
known = np.random.default_rng(0).random(image.shape) < 0.5
gappy = np.where(known, image, np.nan)
patches = extract_patches(gappy, 8, step=2)
means = np.nanmean(patches, axis=1, keepdims=True)
print(f"{len(patches)} patches of 8 x 8 pixels")

# %%
# Sparse codes by ``alpha``; half of the entries of each row are missing. The factor model has no
# sparsity, but estimates the noise and the number of its components.
sparse = OMFB(100, forget_factor=1.0, alpha=0.02, batch_size=50, max_iter=2, random_state=0)
codes = sparse.fit(patches - means).transform(patches - means)
print(f"{np.mean(codes != 0.0):.0%} of the entries of the codes are not zero")
restored = {
    "sparse codes": sparse.inverse_transform(codes) + means,
    "factor analysis": OnlineFactorAnalysis(random_state=0).fit(patches).complete(patches),
}
restored = {
    name: np.where(known, image, reconstruct_from_patches(rows, image.shape, step=2))
    for name, rows in restored.items()
}
grid = tuple(np.indices(image.shape))
restored["interpolation"] = griddata(np.argwhere(known), image[known], grid, method="nearest")
linear = griddata(np.argwhere(known), image[known], grid, method="linear")
restored["interpolation"] = np.where(np.isnan(linear), restored["interpolation"], linear)

# %%
# Peak signal-to-noise ratio over all pixels; more is better.
fig, axes = plt.subplots(2, 3, figsize=(9, 5.4), layout="constrained")
shown = {"given": gappy, **restored, "truth": image}
for ax, (name, pixels) in zip(axes.flat, shown.items(), strict=False):
    ax.imshow(np.clip(pixels, 0, 1), cmap="gray", vmin=0, vmax=1)
    error = np.mean((pixels - image) ** 2)
    known_well = np.isfinite(error) and error > 0
    ax.set_title(f"{name}, {-10 * np.log10(error):.1f} dB" if known_well else name)
    ax.axis("off")
atoms = sparse.components_[np.argsort(-np.abs(codes).sum(axis=0))[:30]].reshape(5, 6, 8, 8)
spread = np.abs(atoms).max(axis=(2, 3), keepdims=True)
mosaic = np.pad(atoms / spread, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=1.0)
axes.flat[-1].imshow(mosaic.transpose(0, 2, 1, 3).reshape(50, 60), cmap="gray")
axes.flat[-1].set_title("atoms used most")
axes.flat[-1].axis("off")
