"""
Topics of a stream of documents
===============================

Word counts are sparse, and what a sparse matrix of counts does not hold is zero. With
``absent="zero"`` a document costs as much as it has words, however large the vocabulary is.
"""

# %%
# Generated documents: four topics, each with words of its own, mixed with everyday words.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import CountVectorizer

from omfb import OMFB

topics = {
    "sea": "wave tide harbour sail anchor gull storm island ferry salt",
    "kitchen": "butter oven flour pepper onion simmer knife salt dough sugar",
    "match": "goal referee league pass keeper season coach storm penalty crowd",
    "orchestra": "violin conductor season overture cello rehearsal crowd opera tempo score",
}
everyday = ["the", "and", "of", "to", "in", "it", "was", "for", "on", "that"]
rng = np.random.default_rng(0)
words = [text.split() for text in topics.values()]
documents = []
for _ in range(3000):
    shares = rng.dirichlet(np.full(4, 0.2))
    chosen = [rng.choice(words[topic]) for topic in rng.choice(4, size=25, p=shares)]
    documents.append(" ".join([*chosen, *rng.choice(everyday, size=5)]))

# %%
# The vocabulary is known beforehand; documents then arrive in blocks, and each is seen once.
vectorizer = CountVectorizer(vocabulary=sorted({*everyday, *" ".join(topics.values()).split()}))
model = OMFB(
    4, forget_factor=1.0, positive_code=True, positive_dict=True, absent="zero", random_state=0
)
for start in range(0, len(documents), 250):
    model.partial_fit(vectorizer.transform(documents[start : start + 250]).astype(float))

# %%
# The words of each component, by their weight. "Storm", "season", "salt" and "crowd" belong to two
# topics each.
names = vectorizer.get_feature_names_out()
fig, axes = plt.subplots(1, 4, figsize=(9, 3.2), layout="constrained")
for ax, atom in zip(axes, model.components_, strict=True):
    top = np.argsort(-atom)[:9][::-1]
    ax.barh(names[top], atom[top] / atom.max())
    ax.set_xticks([])
