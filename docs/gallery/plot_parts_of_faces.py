"""
Parts of faces
==============

Nonnegative factors add up: a face is a sum of parts, where a signed factorisation adds and
subtracts whole faces. Here both are learned online, from faces of which a quarter is missing.
"""

# %%
# The Olivetti faces, if scikit-learn has them on this machine; otherwise patches of its two
# photographs. In each image a block of columns is missing.
import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import fetch_olivetti_faces, get_data_home, load_sample_image

from omfb import OMFB
from omfb.images import extract_patches

if (Path(os.environ.get("SCIKIT_LEARN_DATA", get_data_home())) / "olivetti_py3.pkz").exists():
    images, side = fetch_olivetti_faces().data, 64
else:
    photographs = [load_sample_image(name).mean(axis=2) for name in ("china.jpg", "flower.jpg")]
    patches = [extract_patches(image / 255.0, 24, step=16) for image in photographs]
    images, side = np.concatenate(patches), 24
rng = np.random.default_rng(0)
hidden = np.zeros((len(images), side, side), bool)
for image in hidden:
    start = rng.integers(0, side - side // 4 + 1)
    image[:, start : start + side // 4] = True
hidden = hidden.reshape(len(images), -1)
gappy = np.where(hidden, np.nan, images)

# %%
# ``positive_code`` and ``positive_dict`` are all that differs.
signed = OMFB(40, forget_factor=1.0, ridge=1.0, max_iter=5, random_state=0).fit(gappy)
positive = OMFB(
    40, forget_factor=1.0, ridge=1.0, max_iter=5, positive_code=True, positive_dict=True,
    random_state=0,
).fit(gappy)  # fmt: skip
print(f"smallest entry of the dictionary: {positive.components_.min():g}")
print(f"smallest entry of the codes: {positive.transform(gappy).min():g}")

# %%
# Twelve atoms of each. Signed atoms are grey everywhere, as one takes back what another adds.
# Nonnegative ones are black (zero) in most places: an atom is a moustache, a rim of glasses, the
# light on one side.
fig, axes = plt.subplots(4, 6, figsize=(8, 5.6), layout="constrained")
for atoms, rows, title in ((signed, axes[:2], "signed"), (positive, axes[2:], "nonnegative")):
    energy = np.linalg.norm(atoms.components_, axis=1)
    for ax, at in zip(rows.flat, np.argsort(-energy), strict=False):
        ax.imshow(atoms.components_[at].reshape(side, side), cmap="gray")
        ax.axis("off")
    rows[0, 0].set_title(title, loc="left")

# %%
# The gaps, filled by sums of parts.
# Six that show something: tiles of a photograph may be plain sky.
some = np.sort(np.argsort(-images.std(axis=1))[:60:10])
filled = np.clip(positive.complete(gappy[some]), 0.0, 1.0)
fig, axes = plt.subplots(3, 6, figsize=(8, 4.2), layout="constrained")
for row, shown in zip(axes, (gappy[some], filled, images[some]), strict=True):
    for ax, image in zip(row, shown, strict=True):
        ax.imshow(image.reshape(side, side), cmap="gray", vmin=0, vmax=1)
        ax.axis("off")
for ax, title in zip(axes[:, 0], ("given", "filled", "truth"), strict=True):
    ax.set_title(title, loc="left")
