"""
Learn ratings as they come
==========================

People rate few of many items. How soon does a model that learns rating by rating predict as well as
one that is fitted to all of them, and does it know how little it knows of a new user?
"""

# %%
# Generated ratings: 600 users, 800 items, 40,000 ratings from 1 to 5 in random order. A few items
# are rated by many, most by few.
import matplotlib.pyplot as plt
import numpy as np

from omfb import OMFBRecommender
from omfb.datasets import make_ratings

users, items, ratings = make_ratings(600, 800, 45_000, selection=0.5, random_state=0)
rows = list(zip(users.tolist(), items.tolist(), ratings.tolist(), strict=True))
old = [row for row in rows if row[0] < 540]  # the other 60 users come later
stream, later = old[:-2000], old[-2000:]

# %%
# The stream is learned in pieces of 2000. After each, both models predict the ratings that come
# last, and that neither of them ever sees. The model of the stream has learned each rating once;
# the other one is fitted anew to all so far.
counts = np.arange(2000, len(stream) + 1, 2000)
model = OMFBRecommender(random_state=0)
learned, refitted = [], []
for n in counts:
    model.partial_fit(stream[n - 2000 : n])
    learned.append(-model.score(later))
    if n % 8000 == 0:
        refitted.append(-OMFBRecommender(random_state=0).fit(stream[:n]).score(later))

# %%
# Sixty new users rate one item after the other. After each rating, the model predicts what these
# users say of items that they rate later, and with which standard deviation.
theirs = {user: [row for row in rows if row[0] == user] for user in range(540, 600)}
steps = np.arange(13)
rest = [row for given in theirs.values() for row in given[len(steps) :]]
errors, deviations = [], []
for step in steps:
    if step > 0:
        model.partial_fit([given[step - 1] for given in theirs.values()])
    who, what, said = map(list, zip(*rest, strict=True))
    mean, std = model.predict(who, what, return_std=True)
    errors.append(np.sqrt(np.mean((mean - said) ** 2)))
    deviations.append(np.sqrt(np.mean(std**2)))

# %%
# Left, the model that learns one by one keeps up with fits of everything. Right, ratings by new
# users help, and the predicted standard deviation falls with the error.
fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(counts / 1000, learned, label="learned one by one")
left.plot(counts[3::4] / 1000, refitted, "o", label="fitted to all so far")
left.set_xlabel("ratings (thousands)")
left.set_ylabel("RMSE on ratings that come later")
left.legend()
right.plot(steps, errors, marker="o", label="RMSE")
right.plot(steps, deviations, linestyle="--", label="predicted standard deviation")
right.set_xlabel("ratings by each new user")
right.legend()
