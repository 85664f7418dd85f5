"""Digests of fitted models, to show that moves and renames change no result to the bit.

Run it in two trees with the same arguments and compare what it prints:

    PYTHONPATH=src python -m tests.digest > now.txt

A digest covers what a model answers and every array of its state, whatever its name.
"""

import contextlib
import hashlib
import tempfile
import warnings
from dataclasses import fields, is_dataclass
from pathlib import Path

import numpy as np
import scipy.sparse


def leaves(value):
    """Bytes of all arrays of a state, in nested dataclasses or tuples."""
    if is_dataclass(value):
        for field in fields(value):
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, np.ndarray) and value.size > 1:
        yield np.ascontiguousarray(value).tobytes()


def digest(model, X):
    sums = [hashlib.sha256(leaf).hexdigest() for leaf in sorted(leaves(model.learner_.state))]
    answers = [model.components_, model.complete(X)]
    with contextlib.suppress(Exception):
        answers += [*model.complete(X, return_std=True), *model.interval(X), model.score_samples(X)]
    with contextlib.suppress(Exception):
        answers += [model.forecast(3, level=0.9)]
    for answer in answers:
        parts = answer if isinstance(answer, tuple) else (answer,)
        sums += [hashlib.sha256(np.ascontiguousarray(part).tobytes()).hexdigest() for part in parts]
    return hashlib.sha256("".join(sums).encode()).hexdigest()[:16]


def tables():
    rng = np.random.default_rng(0)

    def low_rank(n, m, r, missing, noise=0.1):
        X = rng.standard_normal((n, r)) @ rng.standard_normal((r, m)) + 3
        X += noise * rng.standard_normal((n, m))
        X[rng.random((n, m)) < missing] = np.nan
        return X

    yield "low rank", low_rank(600, 20, 3, 0.1)
    yield "complete", low_rank(500, 30, 4, 0.0)
    yield "mostly missing", low_rank(800, 40, 3, 0.8)
    yield "long", low_rank(6000, 12, 3, 0.1)
    yield "wide", low_rank(80, 300, 5, 0.1)
    spikes = low_rank(900, 25, 3, 0.05)
    spikes[rng.random(spikes.shape) < 0.01] += 30
    yield "spikes", spikes
    late = low_rank(900, 10, 3, 0.05)
    late[:700, 3] = np.nan
    late[:, 5] = 2.0
    yield "late and constant", late
    walks = low_rank(700, 12, 2, 0.0).cumsum(axis=0)
    walks[100:140, 3] = np.nan
    walks[rng.random(walks.shape) < 0.03] = np.nan
    yield "walks", walks
    counts = rng.poisson(2.0, (500, 8)).astype(float)
    counts[rng.random(counts.shape) < 0.1] = np.nan
    yield "counts", counts
    yield "float32", low_rank(600, 20, 3, 0.1).astype(np.float32)


def cases():
    from omfb import OMFBImputer

    try:
        from omfb import OnlineFactorAnalysis as Factor
    except ImportError:
        from omfb import OMFB as Factor  # noqa: N811

    for name, X in tables():
        yield name, OMFBImputer(random_state=0).fit(X), X
        yield f"{name}, factor", Factor(random_state=0).fit(X), X
    for name, X in tables():
        model = Factor(random_state=0)
        for start in range(0, len(X), 7):
            model.partial_fit(X[start : start + 7])
        yield f"{name}, stream", model, X
    name, X = next(iter(tables()))
    yield "sparse", Factor(random_state=0).fit(sparse(X)), X
    import pandas

    frame = pandas.DataFrame(X, index=pandas.date_range("2024", periods=len(X), freq="h"))
    frame.columns = [f"c{i}" for i in range(X.shape[1])]
    yield "in time", OMFBImputer(random_state=0).fit(frame), frame
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        frame.to_csv(path, index=False)
        yield "file", OMFBImputer(random_state=0).fit(str(path)), X
    import dask.array as da
    from distributed import Client

    with Client(processes=False, dashboard_address=":0", n_workers=1, threads_per_worker=1):
        chunks = da.from_array(X, chunks=(100, -1))
        yield "cluster", OMFBImputer(random_state=0).fit(chunks), X


def sparse(X):
    rows, columns = np.nonzero(~np.isnan(X))
    return scipy.sparse.csr_array((X[rows, columns], (rows, columns)), shape=X.shape)


def main():
    warnings.simplefilter("ignore")
    for name, model, X in cases():
        print(f"{digest(model, X)}  {name}", flush=True)


if __name__ == "__main__":
    main()
