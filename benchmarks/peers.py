"""Who takes part with complete rows: each peer is one small generator, at its best settings.

A contestant learns from rows and yields snapshots: functions that return its components, rows of
(k, n_features). What they span is judged, outside the clock. `fillers.py` has those for holes.

    python benchmarks/peers.py     # install the peers one by one; note the reason if one fails
"""

import importlib.metadata
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from data import Rows
from timing import RESULTS, Snapshot

NOT_INSTALLED = RESULTS / "not_installed.json"


@dataclass(frozen=True)
class Peer:
    """A contestant.

    Attributes
    ----------
    name, package : its name, and what must be importable
    train : learns from the data, and yields snapshots or returns a function that fills
    variants : settings to try, as keywords of `train`; the best counts
    settings : what was set, in words
    strength : what it is good at: printed where it wins
    """

    name: str
    package: str
    train: Callable[..., Any]
    variants: tuple[dict[str, Any], ...] = ({},)
    settings: str = ""
    strength: str = ""

    def missing(self) -> str | None:
        """Why it cannot take part, if so; imports it otherwise."""
        try:
            import_module(self.package)
        except Exception as error:  # a broken build may raise anything at import
            noted = json.loads(NOT_INSTALLED.read_text()) if NOT_INSTALLED.exists() else {}
            return f"not installed: {noted.get(self.package, error)}"
        return None

    def about(self) -> dict[str, Any]:
        """What the page says of it."""
        return {
            "name": self.name, "settings": self.settings, "strength": self.strength,
        }  # fmt: skip


OURS = "omfb"
ALL_ROWS: dict[str, Any] = {"forget_factor": 1.0}
"""Parameters of OMFB by which all past rows count."""


def omfb(data: Rows, threads: int) -> Iterator[Snapshot]:
    from omfb import OnlineFactorAnalysis

    model = OnlineFactorAnalysis(data.n_components - 1, random_state=0)
    for rows in data.chunks():
        model.partial_fit(rows)
        yield lambda: np.vstack([model.components_, model.mean_])


def omfb_of_paper(data: Rows, threads: int) -> Iterator[Snapshot]:
    from omfb import OMFB

    model = OMFB(data.n_components, random_state=0, **ALL_ROWS)
    for rows in data.chunks():
        model.partial_fit(rows)
        yield lambda: model.components_


def incremental_pca(data: Rows, threads: int, batch: float) -> Iterator[Snapshot]:
    from sklearn.decomposition import IncrementalPCA

    model = IncrementalPCA(data.n_components - 1)
    for rows in data.chunks(int(batch * data.n_components)):
        model.partial_fit(rows, check_input=False)
        yield lambda: np.vstack([model.components_, model.mean_])


def randomized_pca(data: Rows, threads: int, n_iter: int) -> Iterator[Snapshot]:
    from sklearn.decomposition import PCA

    model = PCA(
        data.n_components - 1, svd_solver="randomized", iterated_power=n_iter, random_state=0
    )
    model.fit(data.load())
    yield lambda: np.vstack([model.components_, model.mean_])


def truncated_svd(data: Rows, threads: int, n_iter: int) -> Iterator[Snapshot]:
    from sklearn.decomposition import TruncatedSVD

    model = TruncatedSVD(data.n_components, n_iter=n_iter, random_state=0).fit(data.load())
    yield lambda: model.components_


def dictionary_learning(data: Rows, threads: int, alpha: float) -> Iterator[Snapshot]:
    from sklearn.decomposition import MiniBatchDictionaryLearning

    model = MiniBatchDictionaryLearning(
        data.n_components, alpha=alpha, fit_algorithm="cd", n_jobs=threads, random_state=0
    )
    for rows in data.chunks(min(256, data.chunk)):
        model.partial_fit(rows)
        yield lambda: model.components_


def minibatch_nmf(data: Rows, threads: int) -> Iterator[Snapshot]:
    from sklearn.decomposition import MiniBatchNMF

    model = MiniBatchNMF(data.n_components, init="nndsvda", random_state=0)
    for rows in data.chunks():
        model.partial_fit(rows)
        yield lambda: model.components_


def spams(data: Rows, threads: int, lambda1: float, batch: int) -> Iterator[Snapshot]:
    import spams

    X = data.load().T  # rows in C order are columns in Fortran order: no copy
    D, model = None, None
    while True:
        D, model = spams.trainDL(
            X, return_model=True, model=model, D=D, K=data.n_components, lambda1=lambda1, mode=2,
            iter=max(1, data.chunk // batch), batchsize=batch, numThreads=threads, verbose=False,
        )  # fmt: skip
        yield lambda D=D: np.asarray(D).T


def gensim_nmf(data: Rows, threads: int) -> Iterator[Snapshot]:
    from gensim.models.nmf import Nmf
    from scipy.sparse import csc_matrix

    model = None
    for rows in data.chunks():
        documents = csc_matrix(rows.T.astype(float))
        if model is None:
            words = {i: str(i) for i in range(rows.shape[1])}
            model = Nmf(num_topics=data.n_components, id2word=words, chunksize=len(rows) + 1,
                        eval_every=0, random_state=0)  # fmt: skip
        model.update(documents)
        yield lambda model=model: model._W.T


ITERATIONS = tuple({"n_iter": n} for n in (0, 1, 2, 4))
WHOLE = "it sees the whole matrix at once, in memory, and makes a few large products with it"
DENSE = "lambda1 small, as the codes need not be sparse here"

COMPLETE = (
    Peer(OURS, "omfb", omfb,
         settings="`OnlineFactorAnalysis(r - 1)`: nothing set, by `partial_fit` of chunks; its "
         "mean is the r-th direction"),
    Peer(f"{OURS}, forget_factor=1", "omfb", omfb_of_paper,
         settings="`OMFB(r, forget_factor=1)`: nothing is estimated"),
    Peer("IncrementalPCA", "sklearn", incremental_pca,
         variants=tuple({"batch": b} for b in (1, 2, 5)),
         settings="batches of r, 2r and 5r rows; r − 1 components and its mean: r directions as "
         "for all",
         strength="each batch is solved by an SVD, exactly"),
    Peer("PCA, randomized", "sklearn", randomized_pca, variants=ITERATIONS, strength=WHOLE,
         settings="`iterated_power` 0, 1, 2, 4, each a run; r − 1 components and its mean: "
         "r directions as for all"),
    Peer("TruncatedSVD", "sklearn", truncated_svd, variants=ITERATIONS, strength=WHOLE,
         settings="randomized, `n_iter` 0, 1, 2, 4, each a run of its own"),
    Peer("MiniBatchDictionaryLearning", "sklearn", dictionary_learning,
         variants=tuple({"alpha": a} for a in (0.01, 0.1)),
         settings='`fit_algorithm="cd"`, batches of 256 (its default), `alpha` 0.01 and 0.1',
         strength="it remembers all codes and solves for the atoms in turn"),
    Peer("MiniBatchNMF", "sklearn", minibatch_nmf,
         settings='`init="nndsvda"` (its default), the same chunks as omfb',
         strength="the data are non-negative, which it uses"),
    Peer("SPAMS", "spams", spams,
         variants=tuple({"lambda1": 0.01, "batch": b} for b in (64, 200, 400)),
         settings=f"`trainDL`, mode 2, batches of 64, 200 and 400; {DENSE}",
         strength="compiled online dictionary learning on a matrix that lies in memory"),
    Peer("gensim Nmf", "gensim.models.nmf", gensim_nmf,
         settings="`eval_every=0`, `kappa=1`, the same chunks as omfb",
         strength="the data are non-negative, which it uses"),
)  # fmt: skip


def tracker(name: str, n_features: int, rank: int, **settings: Any) -> Any:
    """GROUSE or PETRELS of pysubtracking; `consume(column, seen)` learns from a row."""
    import subtracking

    np.random.seed(0)  # its start is drawn from NumPy's global generator
    return getattr(subtracking, name)(n_features, rank, **settings)


def install() -> None:
    """Install what the `bench` extra names, each alone, so that one failure is not all."""
    failed = {}
    for line in importlib.metadata.requires("omfb") or []:
        requirement, _, extra = line.partition(";")
        if not re.search(r"extra == ['\"]bench['\"]", extra):
            continue
        command = [sys.executable, "-m", "pip", "install", "--quiet", requirement.strip()]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            name = re.split(r"[<>=\[ ]", requirement)[0]
            errors = [text for text in done.stderr.splitlines() if "rror" in text]
            failed[IMPORTED_AS.get(name, name)] = (errors or ["pip failed"])[-1].strip()
            print(f"{name}: {done.stderr}", file=sys.stderr)
    NOT_INSTALLED.parent.mkdir(parents=True, exist_ok=True)
    NOT_INSTALLED.write_text(json.dumps(failed, indent=1) + "\n")


IMPORTED_AS = {
    "spams-bin": "spams", "gensim": "gensim.models.nmf", "pysubtracking": "subtracking",
    "nonnegmfpy": "NonnegMFPy",
}  # fmt: skip


if __name__ == "__main__":
    install()
