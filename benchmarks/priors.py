"""Nonnegative and sparse factors, and sparse rows with zeros, beside the packages for each.

A peer learns until its time is up. The ratio is the processor time in which `OMFB` gets below the
best value that the peer ever has, over the time that the peer needs for it. Dictionaries are judged
alike: by codes that are exact for the objective in question.

    SCIKIT_LEARN_DATA=... python benchmarks/priors.py      # the faces, if they are there
    python benchmarks/priors.py --quick
"""

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from timing import Curve, Row, environment, limited, options, race, report

from omfb import OMFB, OnlineFactorAnalysis
from omfb.core.broyden.penalties import ElasticNet
from omfb.images import extract_patches, reconstruct_from_patches

# Seconds of each peer, rows of the stream, documents, terms, patches.
SIZES = {
    "tiny": (0.1, 300, 300, 400, 500),
    "quick": (2.0, 4000, 3000, 5000, 5000),
    "full": (8.0, 20000, 20000, 100_000, 20000),
}
BLOCK = 200
ALPHA = 1.0
Learner = Callable[[Any], np.ndarray]  # learns from rows, returns components


# -- data -------------------------------------------------------------------------------------


def faces() -> np.ndarray | None:
    """The 400 Olivetti faces, if scikit-learn has them on this machine."""
    folder = os.environ.get("SCIKIT_LEARN_DATA", str(Path.home() / "scikit_learn_data"))
    if not (Path(folder) / "olivetti_py3.pkz").exists():
        return None
    from sklearn.datasets import fetch_olivetti_faces

    return np.asarray(fetch_olivetti_faces(download_if_missing=False).data, np.float64)


def nonnegative_stream(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    atoms = rng.exponential(size=(10, 300)) * (rng.random((10, 300)) < 0.3)
    signal = rng.exponential(size=(n, 10)) * (rng.random((n, 10)) < 0.5) @ atoms
    return np.maximum(signal + 0.1 * rng.standard_normal(signal.shape), 0.0)


def corpus(n: int, m: int, seed: int, topics: int = 30) -> scipy.sparse.csr_matrix:
    """Word counts of documents: Zipfian frequencies, each topic with words of its own."""
    rng = np.random.default_rng(seed)
    usual = 1.0 / np.arange(1, m + 1) ** 1.05
    boosts = 1.0 + 20.0 * rng.exponential(size=(topics, m)) * (rng.random((topics, m)) < 0.02)
    words = np.cumsum(usual * boosts, axis=1)
    words /= words[:, -1:]
    shares = rng.dirichlet(np.full(topics, 0.08), size=n)
    counts = rng.poisson(80, size=n) + 5
    document = np.repeat(np.arange(n), counts)
    bounds = np.cumsum(shares, axis=1)[document]
    topic = np.minimum((rng.random((len(document), 1)) > bounds).sum(axis=1), topics - 1)
    word = np.empty(len(document), np.int64)
    for number in range(topics):
        mine = topic == number
        word[mine] = np.searchsorted(words[number], rng.random(mine.sum()))
    ones = np.ones(len(document))
    X = scipy.sparse.csr_matrix((ones, (document, np.minimum(word, m - 1))), shape=(n, m))
    X.sum_duplicates()
    return X


def photographs() -> list[np.ndarray]:
    """scikit-learn's two photographs in grey levels from 0 to 1, half their size."""
    from sklearn.datasets import load_sample_image

    return [load_sample_image(name)[::2, ::2].mean(axis=2) / 255.0 for name in NAMES]


NAMES = ("china.jpg", "flower.jpg")


def patches_of_photographs(n: int, seed: int) -> np.ndarray:
    rows = np.concatenate([extract_patches(image, 8, step=2) for image in photographs()])
    rows -= rows.mean(axis=1, keepdims=True)
    rows /= rows.std()
    return rows[np.random.default_rng(seed).permutation(len(rows))[:n]]


# -- contestants ------------------------------------------------------------------------------


def ours(r: int, **settings: Any) -> Learner:
    model = OMFB(r, random_state=0, **{"forget_factor": 1.0, **settings})
    return lambda rows: model.partial_fit(rows).components_


def mini_batch_nmf(r: int) -> Learner:
    from sklearn.decomposition import MiniBatchNMF

    model = MiniBatchNMF(r, init="nndsvda", batch_size=BLOCK, random_state=0)
    return lambda rows: model.partial_fit(rows).components_


def gensim_nmf(r: int) -> Learner:
    from gensim.matutils import Sparse2Corpus
    from gensim.models.nmf import Nmf

    made: list[Any] = []

    def learn(rows: Any) -> np.ndarray:
        documents = Sparse2Corpus(scipy.sparse.csc_matrix(rows.T))
        if made:
            made[0].update(documents)
        else:
            names = {number: str(number) for number in range(rows.shape[1])}
            made.append(Nmf(documents, r, names, chunksize=BLOCK, random_state=0))
        W = made[0]._W
        return np.asarray(W.toarray() if scipy.sparse.issparse(W) else W).T

    return learn


def mini_batch_dictionary(r: int) -> Learner:
    from sklearn.decomposition import MiniBatchDictionaryLearning

    model = MiniBatchDictionaryLearning(r, alpha=ALPHA, batch_size=BLOCK, random_state=0)
    return lambda rows: model.partial_fit(rows).components_


def spams_dictionary(r: int) -> Learner:
    import spams

    state: dict[str, Any] = {}

    def learn(rows: np.ndarray) -> np.ndarray:
        D, model = spams.trainDL(
            np.asfortranarray(rows.T), return_model=True, K=r, lambda1=ALPHA, batchsize=BLOCK,
            iter=1, numThreads=1, verbose=False, **state,
        )  # fmt: skip
        state.update(model=model, D=D)
        return D.T

    return learn


def passes(learn: Learner, X: Any) -> Iterator[Callable[[], np.ndarray]]:
    """Learn from shuffled blocks, pass after pass."""
    rng = np.random.default_rng(0)
    while True:
        order = rng.permutation(X.shape[0])
        for start in range(0, X.shape[0], BLOCK):
            atoms = learn(X[order[start : start + BLOCK]])
            yield lambda atoms=atoms: atoms


# -- judging ----------------------------------------------------------------------------------


def nonnegative_error(X: Any) -> Callable[[Callable[[], np.ndarray]], float]:
    """Relative error with the best nonnegative codes."""
    energy = X.multiply(X).sum() if scipy.sparse.issparse(X) else np.vdot(X, X)

    def judge(snapshot: Callable[[], np.ndarray]) -> float:
        C = np.maximum(np.asarray(snapshot(), np.float64), 0.0).T
        G, P = C.T @ C, X @ C
        codes = ElasticNet(0.0, 0.0, True, 1e-10).codes(G, P)
        rest = energy - 2 * np.vdot(P, codes) + np.vdot(codes @ G, codes)
        return float(math.sqrt(max(rest, 0.0) / energy))

    return judge


def lasso_objective(X: np.ndarray) -> Callable[[Callable[[], np.ndarray]], float]:
    """Mean of ½‖y − C x‖² + alpha‖x‖₁ with the best codes; atoms of norm 1 at most."""

    def judge(snapshot: Callable[[], np.ndarray]) -> float:
        atoms = np.asarray(snapshot(), np.float64)
        atoms = atoms / np.maximum(np.linalg.norm(atoms, axis=1), 1.0)[:, None]
        C = atoms.T
        codes = ElasticNet(ALPHA, 0.0, False, 1e-10).codes(C.T @ C, X @ C)
        return float(
            0.5 * np.square(X - codes @ atoms).sum(axis=1).mean()
            + ALPHA * np.abs(codes).sum(axis=1).mean()
        )

    return judge


def compare(
    where: str, X: Any, judge: Any, our_model: Callable[[], Learner],
    peers: dict[str, Callable[[], Learner]], limit: float,
) -> Iterator[Row]:  # fmt: skip
    """For each peer: our time to its best value over its own, and how much lower we end."""
    rows = X[:BLOCK]
    our_model()(rows)  # compiles
    mine = race(passes(our_model(), X), judge, limit)
    for name, make in peers.items():
        try:
            make()(rows)
            theirs = race(passes(make(), X), judge, limit)
        except ImportError as error:
            print(f"{name}: {error}")
            continue
        best = min(point.score for point in theirs)
        needed = time_to(theirs, best)
        took = time_to(mine, best)
        ratio = took / max(needed, 1e-9)
        yield Row(f"our time to the best of {name} / its own", where, ratio, 1.0, seconds=took)
        end = min(point.score for point in mine)
        yield Row(f"our best / the best of {name} ({best:.4g})", where, end / best, 1.0)


def time_to(curve: Curve, value: float) -> float:
    return next((p.seconds for p in curve if p.score <= value), math.inf)


# -- the benchmarks ---------------------------------------------------------------------------


def nonnegative(size: str) -> Iterator[Row]:
    limit, n_rows, n_documents, n_terms, _ = SIZES[size]
    sets: list[tuple[str, Any, int]] = [
        ("generated stream", nonnegative_stream(n_rows, 1), 10),
        ("word counts", corpus(n_documents, min(n_terms, 10000), 1), 20),
    ]
    if (images := faces()) is not None:
        sets.insert(0, ("faces", images, 30))
    for where, X, r in sets:
        signs = {"positive_code": True, "positive_dict": True}
        # Chosen on another corpus: early codes, of poor topics, are forgotten sooner.
        zero = {"absent": "zero", "forget_factor": 0.9995} if scipy.sparse.issparse(X) else {}
        yield from compare(
            where, X, nonnegative_error(X), lambda r=r, kw={**signs, **zero}: ours(r, **kw),
            {"MiniBatchNMF": lambda r=r: mini_batch_nmf(r),
             "gensim Nmf": lambda r=r: gensim_nmf(r)},
            limit,
        )  # fmt: skip


def missing_faces(size: str) -> Iterator[Row]:
    """A quarter of each face missing, nonnegative in both, five passes."""
    Y = faces()
    if Y is None or size == "tiny":
        return
    for seed in (1, 2, 3):
        rng = np.random.default_rng(seed)
        mask = np.zeros((400, 64, 64), bool)
        for image in mask:
            start = rng.integers(0, 49)
            image[:, start : start + 16] = True
        X = np.where(mask.reshape(400, -1), np.nan, Y)
        begin = time.process_time()
        model = OMFB(
            40, forget_factor=1.0, ridge=1.0, positive_code=True, positive_dict=True, max_iter=5,
            random_state=seed,
        ).fit(X)  # fmt: skip
        seconds = time.process_time() - begin
        error = np.mean((model.complete(X) - Y) ** 2)
        snr = 10 * math.log10(Y.var() / error)
        yield Row("dB after five passes, nonnegative", f"faces, mask {seed}", snr, least=12.13,
                  seconds=seconds)  # fmt: skip


def sparse_codes(size: str) -> Iterator[Row]:
    limit, *_, n = SIZES[size]
    X = patches_of_photographs(n, 1)
    yield from compare(
        "patches of photographs", X, lasso_objective(X[:2000]),
        # Chosen on patches of faces: old codes belong to atoms that have changed since.
        lambda: ours(
            100, alpha=ALPHA, batch_size=100, inner_iter=1, forget_factor=0.98, lam=100.0
        ),
        {"MiniBatchDictionaryLearning": lambda: mini_batch_dictionary(100),
         "SPAMS": lambda: spams_dictionary(100)},
        limit,
    )  # fmt: skip


def inpainting(size: str) -> Iterator[Row]:
    """Half of the pixels missing: sparse codes, the factor model, interpolation."""
    import scipy.interpolate

    for name, whole in zip(NAMES, photographs(), strict=True):
        image = whole[:64, :64] if size == "tiny" else whole
        known = np.random.default_rng(2).random(image.shape) < 0.5
        gappy = np.where(known, image, np.nan)
        found = {}
        begin = time.process_time()
        found["OMFB, sparse codes"] = inpaint(gappy)
        seconds = time.process_time() - begin
        rows = extract_patches(gappy, 8, step=2)
        filled = OnlineFactorAnalysis(random_state=0).fit(rows).complete(rows)
        found["OnlineFactorAnalysis"] = reconstruct_from_patches(filled, image.shape, step=2)
        points = np.argwhere(known)
        grid = tuple(np.indices(image.shape))
        linear = scipy.interpolate.griddata(points, image[known], grid, method="linear")
        near = scipy.interpolate.griddata(points, image[known], grid, method="nearest")
        found["linear interpolation"] = np.where(np.isnan(linear), near, linear)
        for method, restored in found.items():
            error = np.mean((np.where(known, image, restored) - image) ** 2)
            yield Row(f"PSNR (dB), {method}", name, -10 * math.log10(error),
                      seconds=seconds if method.startswith("OMFB") else None)  # fmt: skip


def inpaint(gappy: np.ndarray, alpha: float = 0.02) -> np.ndarray:
    """Restore missing pixels from sparse codes of overlapping patches."""
    patches = extract_patches(gappy, 8)
    means = np.nanmean(patches, axis=1, keepdims=True)
    rows = patches - means
    model = OMFB(128, forget_factor=1.0, alpha=alpha, batch_size=64, random_state=0)
    model.fit(rows[np.random.default_rng(0).permutation(len(rows))[:20000]])
    restored = model.inverse_transform(model.transform(rows)) + means
    return reconstruct_from_patches(restored, gappy.shape)


def zero_rows(size: str) -> Iterator[Row]:
    """TF-IDF, rank 50: TruncatedSVD has the whole matrix, gensim and we one pass over blocks."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfTransformer

    _, _, n, m, _ = SIZES[size]
    r = 5 if size == "tiny" else 50
    X = TfidfTransformer().fit_transform(corpus(n, m, 2))
    energy = X.multiply(X).sum()

    def error(atoms: np.ndarray) -> float:
        Q = np.linalg.qr(np.asarray(atoms, np.float64).T)[0]
        return math.sqrt((energy - np.square(X @ Q).sum()) / energy)

    OMFB(r, forget_factor=1.0, absent="zero").fit(X[:300])  # compiles
    begin = time.process_time()
    model = OMFB(r, forget_factor=1.0, absent="zero", random_state=0).fit(X)
    seconds = time.process_time() - begin
    mine = error(model.components_)
    begin = time.process_time()
    svd = TruncatedSVD(r, random_state=0).fit(X)
    svd_seconds = time.process_time() - begin
    where = f"TF-IDF, {n} x {m}"
    yield Row("our error / TruncatedSVD's", where, mine / error(svd.components_), 1.01)
    yield Row("our time / TruncatedSVD's", where, seconds / svd_seconds, seconds=seconds)
    try:
        from gensim.matutils import Sparse2Corpus
        from gensim.models import LsiModel
    except ImportError as failure:
        print(f"LsiModel: {failure}")
        return
    documents = Sparse2Corpus(scipy.sparse.csc_matrix(X.T))
    names = {number: str(number) for number in range(m)}
    begin = time.process_time()
    lsi = LsiModel(documents, r, names, random_seed=0)
    lsi_seconds = time.process_time() - begin
    yield Row("our time / LsiModel's", where, seconds / lsi_seconds, 1.0, seconds=seconds)
    yield Row("our error / LsiModel's", where, mine / error(lsi.projection.u.T))


PARTS = {
    "nonnegative": nonnegative, "missing": missing_faces, "codes": sparse_codes,
    "inpainting": inpainting, "zeros": zero_rows,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    given = options(__doc__, "priors", argv, "part")
    rows: list[Row] = []
    with limited(given.threads):
        for name, part in PARTS.items():
            if given.part in (None, name):
                rows += part(given.size)
    report(rows, environment(given.threads), given.out)


if __name__ == "__main__":
    main()
