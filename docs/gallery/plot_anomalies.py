"""
Unusual rows
============

`score_samples` is the log-likelihood of a row. It notices rows that break the relations between
columns, even if each of their values is ordinary, and rows may have gaps.
"""

# %%
# Hours of air quality in Beijing. Three months teach the model what is usual. In half of the hours
# after that, one thermometer shows what it showed at another hour: a temperature like any other.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score

from omfb import OMFBImputer
from omfb.datasets import load_air

air = load_air(as_frame=True).data.reset_index(drop=True)
learned, later = air.iloc[:2200], air.iloc[2200:].copy()
rng = np.random.default_rng(0)
broken = rng.random(len(later)) < 0.5
column = air.columns.get_loc("TEMP Dongsi")
later.iloc[broken, column] = rng.permutation(later.iloc[broken, column])
model = OMFBImputer(random_state=0).fit(learned)
score = model.score_samples(later) / later.notna().sum(axis=1)

# %%
fig, ax = plt.subplots(layout="constrained")
bins = np.linspace(np.quantile(score, 0.01), score.max(), 60)
for name, rows in (("as measured", ~broken), ("thermometer of another hour", broken)):
    ax.hist(score[rows], bins=bins, alpha=0.6, label=name)
ax.set_xlabel("log-likelihood per observed entry")
ax.set_ylabel("hours")
ax.legend()
plt.show()

# %%
# The area under the curve of telling broken hours from others, beside a method that looks at
# columns one after the other:
filled = model.complete(learned)
forest = IsolationForest(random_state=0).fit(filled)
other = forest.score_samples(model.complete(later))
print(
    f"omfb {roc_auc_score(broken, -score):.2f}, IsolationForest {roc_auc_score(broken, -other):.2f}"
)
