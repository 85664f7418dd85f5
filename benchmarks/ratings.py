"""Ratings: error, coverage and seconds beside matrix factorisations made for them.

Ratings are generated, in four kinds, with the size of MovieLens 100K. One fifth is held out. cmfrec
is given the rank and the penalty that are best on the held-out ratings; nothing else is tuned. Then
a stream in random order is learned rating by rating, beside a fit of all ratings so far after every
tenth of it.

    python benchmarks/ratings.py
    python benchmarks/ratings.py --quick
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator

import numpy as np

SIZES = {"tiny": (40, 30, 400), "quick": (300, 400, 20_000), "full": (943, 1682, 100_000)}
RANKS, PENALTIES = (5, 10, 20), (5.0, 10.0, 20.0, 40.0)

Ratings = tuple[np.ndarray, np.ndarray, np.ndarray]


def kinds(size: str, seed: int) -> Iterator[tuple[str, Ratings]]:
    """Generated ratings of several kinds, in random order."""
    from omfb.datasets import make_ratings

    n_users, n_items, n = SIZES[size]
    yield "plain", make_ratings(n_users, n_items, n, random_state=seed)
    yield "selected", make_ratings(n_users, n_items, n, selection=0.8, random_state=seed)
    yield "weak", make_ratings(n_users, n_items, n, n_components=30, noise=1.1, random_state=seed)
    yield "strong", make_ratings(n_users, n_items, n, n_components=3, noise=0.5, random_state=seed)


def rmse(predicted: np.ndarray, truth: np.ndarray) -> float:
    return float(np.sqrt(np.mean((np.clip(predicted, 1.0, 5.0) - truth) ** 2)))


def ours(train: Ratings, test: Ratings) -> tuple[float, str]:
    from omfb import OMFBRecommender

    model = OMFBRecommender(random_state=0).fit(zip(*train, strict=True))
    mean, low, high = model.predict(*test[:2], interval=0.9)
    covered = np.mean((low <= test[2]) & (test[2] <= high))
    return rmse(mean, test[2]), f"90 % intervals hold {100 * covered:.1f} %"


def offsets(train: Ratings, test: Ratings) -> tuple[float, str]:
    """Offsets of users and items, shrunk: what a factorisation has to improve on."""
    user, item, rating = train
    center = rating.mean()
    b, d = np.zeros(user.max() + 1), np.zeros(item.max() + 1)
    for _ in range(20):
        d = np.bincount(item, rating - center - b[user], len(d)) / (5 + np.bincount(item))
        b = np.bincount(user, rating - center - d[item], len(b)) / (5 + np.bincount(user))
    known = (test[0] < len(b)) & (test[1] < len(d))
    predicted = np.full(len(test[2]), center)
    predicted[known] += b[test[0][known]] + d[test[1][known]]
    return rmse(predicted, test[2]), ""


def cmfrec(train: Ratings, test: Ratings) -> tuple[float, str]:
    import pandas as pd
    from cmfrec import CMF

    frame = pd.DataFrame(dict(zip(("UserId", "ItemId", "Rating"), train, strict=True)))
    found = []
    for k in RANKS:
        for penalty in PENALTIES:
            model = CMF(k=k, lambda_=penalty, verbose=False, nthreads=1).fit(frame)
            found.append((rmse(model.predict(*test[:2]), test[2]), k, penalty))
    best = min(found)
    return best[0], f"k={best[1]}, lambda={best[2]:g}, the best of {len(found)}"


def svdpp(train: Ratings, test: Ratings) -> tuple[float, str]:
    import pandas as pd
    import surprise

    frame = pd.DataFrame(dict(zip(("user", "item", "rating"), train, strict=True)))
    reader = surprise.Reader(rating_scale=(1, 5))
    data = surprise.Dataset.load_from_df(frame, reader).build_full_trainset()
    model = surprise.SVDpp(random_state=0, cache_ratings=True).fit(data)
    predicted = [model.predict(u, i).est for u, i in zip(*test[:2], strict=True)]
    return rmse(np.array(predicted), test[2]), "Surprise's defaults"


def myfm(train: Ratings, test: Ratings) -> tuple[float, str]:
    import scipy.sparse
    from myfm import MyFMRegressor

    n_users, n_items = (max(train[s].max(), test[s].max()) + 1 for s in (0, 1))

    def pairs(ratings: Ratings) -> scipy.sparse.csr_matrix:
        n = len(ratings[2])
        columns = np.column_stack([ratings[0], n_users + ratings[1]]).ravel()
        shape = (n, n_users + n_items)
        return scipy.sparse.csr_matrix((np.ones(2 * n), columns, np.arange(0, 2 * n + 1, 2)), shape)

    model = MyFMRegressor(rank=10, random_seed=0)
    model.fit(
        pairs(train), train[2], n_iter=200, n_kept_samples=150, group_shapes=[n_users, n_items]
    )
    return rmse(model.predict(pairs(test)), test[2]), "200 Gibbs samples"


PEERS: dict[str, Callable[[Ratings, Ratings], tuple[float, str]]] = {
    "omfb": ours, "offsets": offsets, "cmfrec": cmfrec, "SVD++": svdpp, "myFM": myfm,
}  # fmt: skip


def compare(name: str, ratings: Ratings, peers: list[str]) -> None:
    held = np.random.default_rng(0).random(len(ratings[2])) < 0.2
    train, test = (tuple(part[which] for part in ratings) for which in (~held, held))
    for peer in peers:
        start = time.perf_counter()
        try:
            error, note = PEERS[peer](train, test)
        except ImportError as missing:
            print(f"{name:9} {peer:8} not installed ({missing.name})", flush=True)
            continue
        seconds = time.perf_counter() - start
        print(f"{name:9} {peer:8} RMSE {error:.4f}  {seconds:6.1f} s  {note}", flush=True)


def stream(name: str, ratings: Ratings) -> None:
    """Errors of ratings before they are learned, beside a model that is fitted ten times."""
    from omfb import OMFBRecommender

    n = len(ratings[2])
    parts = np.array_split(np.arange(n), 10)
    model = OMFBRecommender(random_state=0).partial_fit(_rows(ratings, parts[0]))
    seconds, errors = 0.0, []
    for before, part in itertools.pairwise(parts):
        seen = np.arange(before[-1] + 1)
        refitted = OMFBRecommender(random_state=0).fit(_rows(ratings, seen))
        truth = ratings[2][part]
        refit = rmse(refitted.predict(ratings[0][part], ratings[1][part]), truth)
        squares = _squares(model)
        start = time.perf_counter()
        model.partial_fit(_rows(ratings, part))
        seconds += time.perf_counter() - start
        errors.append((np.sqrt((_squares(model) - squares) / len(part)), refit))
    ours, theirs = np.sqrt(np.mean(np.square(errors), axis=0))
    cost = 1e6 * seconds / (n - len(parts[0]))
    print(
        f"{name:9} stream   RMSE {ours:.4f}, fitted anew ten times {theirs:.4f}, last tenth "
        f"{errors[-1][0]:.4f} and {errors[-1][1]:.4f}; {cost:.0f} µs a rating",
        flush=True,
    )


def _rows(ratings: Ratings, which: np.ndarray) -> list[tuple[float, ...]]:
    return list(zip(*(part[which].tolist() for part in ratings), strict=True))


def _squares(model: object) -> float:
    return float(model._fitted.state.scores.stream[0])  # type: ignore[attr-defined]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a fifth of the ratings")
    parser.add_argument("--tiny", action="store_true", help="to see that it runs")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", default="plain,selected,weak,strong")
    parser.add_argument("--peers", default=",".join(PEERS))
    given = parser.parse_args()
    size = "tiny" if given.tiny else "quick" if given.quick else "full"
    for name, ratings in kinds(size, given.seed):
        if name in given.kinds.split(","):
            compare(name, ratings, given.peers.split(","))
            stream(name, ratings)


if __name__ == "__main__":
    main()
