"""
Images with missing pixels
==========================

Half of every image is gone. What the images have in common fills it.
"""

# %%
# A row is an image of a handwritten digit. From half of the images the lower half is missing, from
# the others the upper half, so that the model never sees a complete one.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from omfb import OnlineFactorAnalysis, metrics, plots

images = load_digits().images
gappy = images.copy()
gappy[::2, 5:] = np.nan
gappy[1::2, :3] = np.nan
rows = gappy.reshape(-1, 64)
model = OnlineFactorAnalysis(random_state=0).fit(rows)
filled = np.clip(model.complete(rows), 0, 16).reshape(-1, 8, 8)
print(f"{metrics.snr(images, filled):.1f} dB")

# %%
fig, axes = plt.subplots(3, 10, figsize=(8, 2.6), layout="constrained")
for line, pictures in zip(axes, (gappy, filled, images), strict=True):
    for ax, picture in zip(line, pictures[20:30], strict=True):
        ax.imshow(picture, cmap="gray_r", vmin=0, vmax=16)
        ax.set(xticks=[], yticks=[], facecolor="#f2c9a8")
for ax, name in zip(axes[:, 0], ("given", "filled", "truth"), strict=True):
    ax.set_ylabel(name)
plt.show()

# %%
# The components, each an image:
plots.components(model, 24, shape=(8, 8))
plt.show()
