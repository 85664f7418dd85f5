"""Generated ratings, as few people rate few of many items."""

import numpy as np
from numpy.typing import NDArray


def make_ratings(
    n_users: int = 943,
    n_items: int = 1682,
    n_ratings: int = 100_000,
    *,
    n_components: int = 12,
    noise: float = 0.85,
    selection: float = 0.0,
    random_state: int | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Generate whole ratings from 1 to 5, by default as many as MovieLens 100K has.

    The popularity of items follows Zipf's law, the activity of users a lognormal one. A rating is
    the sum of offsets of user and item, of components of decreasing strength, and of noise.

    Parameters
    ----------
    n_users, n_items, n_ratings : int
        At most 60 % of the pairs are rated.
    n_components : int, default=12
    noise : float, default=0.85
        Its standard deviation before ratings are rounded.
    selection : float, default=0.0
        How much users prefer to rate what they like.
    random_state : int or None, default=None

    Returns
    -------
    users, items : ndarray of shape (n_ratings,)
        Numbers from 0, in random order; no pair is there twice.
    ratings : ndarray of shape (n_ratings,)

    Examples
    --------
    >>> users, items, ratings = make_ratings(100, 80, 2000, random_state=0)
    >>> len(ratings), ratings.min(), ratings.max()
    (2000, np.float64(1.0), np.float64(5.0))
    """
    if not 1 <= n_ratings <= 0.6 * n_users * n_items:
        raise ValueError(
            f"n_ratings must be from 1 to 60 % of the {n_users * n_items} pairs, got {n_ratings}."
        )
    rng = np.random.default_rng(random_state)
    popularity = -0.9 * np.log(1.0 + rng.permutation(n_items))
    activity = rng.lognormal(0.0, 1.1, n_users)
    taste = rng.standard_normal((n_users, n_components))
    kinds = rng.standard_normal((n_items, n_components)) * 0.9 ** np.arange(n_components)
    liking = taste @ kinds.T
    liking /= liking.std()
    quality = 0.45 * rng.standard_normal(n_items)
    quality += 0.25 * (popularity - popularity.mean()) / popularity.std()
    mood = 0.42 * rng.standard_normal((n_users, 1))
    values = 3.3 + mood + quality + 0.45 * liking
    values += noise * rng.standard_normal(values.shape)
    # The largest of log-weights with Gumbel noise are a sample without replacement.
    order = popularity + selection * liking + rng.gumbel(size=values.shape)
    counts = np.zeros(n_users)
    scale = n_ratings / activity.sum()
    while counts.sum() < n_ratings:  # no user rates nearly everything, so others rate more
        counts = np.maximum(scale * activity, 0.2 * n_ratings / n_users)
        counts = np.minimum(np.ceil(counts), np.ceil(0.7 * n_items))
        scale *= 1.1
    ranks = np.argsort(np.argsort(-order, axis=1), axis=1)
    users, items = np.nonzero(ranks < counts[:, None])
    kept = rng.permutation(len(users))[:n_ratings]
    users, items = users[kept], items[kept]
    return users, items, np.clip(np.rint(values[users, items]), 1.0, 5.0)
