"""
Fill a table in front of a regression
=====================================

How much does a regression lose when a part of its table is missing, and how much of that is
recovered by filling it?
"""

# %%
# The table: 442 patients, 10 measurements. Between 10 and 60 % of its entries are hidden at random.
# The regression is the same each time; only what fills the gaps before it differs.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from omfb import OMFBImputer

X, y = load_diabetes(return_X_y=True)
shares = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]
imputers = {
    "OMFBImputer": OMFBImputer(random_state=0),
    "KNNImputer": KNNImputer(),
    "mean": SimpleImputer(),
}
scores = {name: [] for name in imputers}
for share in shares:
    gappy = np.where(np.random.default_rng(0).random(X.shape) < share, np.nan, X)
    for name, imputer in imputers.items():
        model = make_pipeline(imputer, RidgeCV())
        scores[name].append(cross_val_score(model, gappy, y, cv=5).mean())

# %%
# R² of the regression on rows that it has not seen. The line at the top is the complete table.
complete = cross_val_score(RidgeCV(), X, y, cv=5).mean()
fig, ax = plt.subplots(layout="constrained")
ax.axhline(complete, color="grey", linestyle=":", label="nothing missing")
for name, values in scores.items():
    ax.plot(shares, values, marker="o", label=name)
ax.set_xlabel("share of missing entries")
ax.set_ylabel("R² on held-out rows")
ax.legend()
