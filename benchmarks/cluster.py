"""What a cluster costs and gains: one process, one worker and two, on the same chunks.

    python benchmarks/cluster.py [--rows 1000000] [--features 200] [--components 20] [--keep-memory]

Each worker makes its chunks itself and keeps them in memory, so that learning is measured and not
reading. The bytes that a round moves are what its tasks are pickled to, beside what is predicted: a
state for each lane and its evidence back, some (r + 1) numbers for each feature.
"""

import argparse
import json
import pickle
import time

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from omfb import OMFB
from omfb.core.model import merge
from omfb.distributed.order import rounds_of

NOISE = 0.5
# Dask lets its workers give back memory early. It is a side effect that they fetch each array above
# 128 kB anew from the system; with this only those above 32 MB, as other processes do.
KEPT = {"distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 1 << 25}


def chunk(seed, n_rows, n_features, rank):
    atoms = np.random.default_rng(0).standard_normal((rank, n_features))
    rng = np.random.default_rng([1, seed])
    rows = rng.standard_normal((n_rows, rank)) @ atoms
    return rows + NOISE * rng.standard_normal((n_rows, n_features))


def made(n_features, rank, block_info):
    place = block_info[None]
    return chunk(place["chunk-location"][0], place["chunk-shape"][0], n_features, rank)


def error(model, rows):
    """Of what is left beside the first components: rows about their mean, less their projection."""
    basis = np.linalg.qr(model.components_.T)[0]
    away = rows - model.mean_
    return float(np.linalg.norm(away - away @ basis @ basis.T))


def fitted(X, components, lanes=None, client=None):
    """The model, and what it took: seconds, and those of processors, workers' and our own."""
    began, used = time.perf_counter(), processor_time(client)
    model = OMFB(components, random_state=0, max_iter=1).fit(X, lanes=lanes)
    return model, {
        "seconds": time.perf_counter() - began,
        "processor": processor_time(client) - used,
    }


def processor_time(client):
    workers = [] if client is None else client.run(time.process_time).values()
    return time.process_time() + sum(workers)


def bytes_moved(model):
    """Of a lane in a round: its state and its evidence, pickled."""
    state = model.learner_.state
    evidence = merge.gather(state, state)
    return [len(pickle.dumps(part, protocol=5)) for part in (state, evidence)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {
        "rows": 1_000_000, "features": 200, "components": 20, "chunk": 10_000, "lanes": 32,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--keep-memory", action="store_true", help="see KEPT")
    parser.add_argument("--out", help="a JSON file for the results")
    asked = parser.parse_args()
    n, m, r = asked.rows, asked.features, asked.components
    test = chunk(10**6, 20_000, m, r)
    results = []

    X = np.concatenate([chunk(at, asked.chunk, m, r) for at in range(n // asked.chunk)])
    OMFB(r, max_iter=1).fit(X[:2000])  # what is compiled is loaded
    model, took = fitted(X, r)
    results.append({"workers": 0, **took, "error": error(model, test)})
    del X
    for workers in (1, 2):
        with (
            dask.config.set(KEPT if asked.keep_memory else {}),
            LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
            ) as cluster,
            Client(cluster) as client,
        ):
            lazy = da.map_blocks(
                made, m, r, chunks=((asked.chunk,) * (n // asked.chunk), (m,)), dtype=np.float64
            )
            lazy = client.persist(lazy)
            wait(lazy)
            OMFB(r, max_iter=1).fit(lazy[: 4 * asked.chunk], lanes=2)
            model, took = fitted(lazy, r, asked.lanes, client)
            results.append({"workers": workers, **took, "error": error(model, test)})

    plain, one, two = (each["seconds"] for each in results)
    rounds = len(rounds_of([asked.chunk] * (n // asked.chunk), asked.lanes))
    state, evidence = bytes_moved(model)
    summary = {
        "rows": n, "features": m, "components": r, "chunk": asked.chunk, "lanes": asked.lanes,
        "rounds": rounds, "overhead of one worker": one / plain - 1, "gain of two": one / two,
        "overhead of one worker, processor":
            results[1]["processor"] / results[0]["processor"] - 1,
        "error beside the plain fit's": results[2]["error"] / results[0]["error"] - 1,
        "bytes of a state": state, "bytes of evidence": evidence,
        "predicted bytes of the dictionary": 8 * m * (r + 1), "runs": results,
    }  # fmt: skip
    text = json.dumps(summary, indent=1)
    print(text)
    if asked.out:
        with open(asked.out, "w") as stream:
            stream.write(text + "\n")


if __name__ == "__main__":
    main()
