"""What a cluster costs and gains: one process, one worker and two, on the same chunks.

    python benchmarks/cluster.py [--rows 1000000] [--features 200] [--components 20] [--keep-memory]

All three take turns, so that what else the machine does slows down each of them. Workers make their
chunks themselves and keep them in memory: learning is measured, and not reading. The bytes that a
round moves are what its tasks are pickled to, beside what is predicted: a state for each lane and
its evidence back, some (r + 1) numbers for each feature.

What two workers could gain at most on this machine is measured, too: all chunks but the first in
one round, in which nobody waits for anybody. (Such n_tasks learn less: it is no way to fit.)
"""

import argparse
import json
import pickle
import time
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait

from omfb import OnlineFactorAnalysis
from omfb.adapters.dask import round_schedule
from omfb.core.factor import merge

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


def fitted(X, components, n_tasks=None, client=None):
    """The model, and what it took: seconds, and those of processors, workers' and our own."""
    began, used = time.perf_counter(), processor_time(client)
    with nullcontext() if client is None else client.as_current():
        model = OnlineFactorAnalysis(components, random_state=0, max_iter=1).fit(X, n_tasks=n_tasks)
    return model, time.perf_counter() - began, processor_time(client) - used


def processor_time(client):
    workers = [] if client is None else client.run(time.process_time).values()
    return time.process_time() + sum(workers)


def bytes_moved(model):
    """Of a task in a round: its state and its evidence, pickled."""
    state = model.learner_.state
    evidence = merge.gather(state, state)
    return [len(pickle.dumps(part, protocol=5)) for part in (state, evidence)]


def cluster(stack, workers, asked):
    """A client of so many workers, and rows that they have made; it ends with the stack."""
    made_of = LocalCluster(
        n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
    )
    client = stack.enter_context(Client(stack.enter_context(made_of)))
    chunks = ((asked.chunk,) * (asked.rows // asked.chunk), (asked.features,))
    lazy = da.map_blocks(made, asked.features, asked.components, chunks=chunks, dtype=np.float64)
    with client.as_current():
        lazy = client.persist(lazy)
        wait(lazy)
        OnlineFactorAnalysis(asked.components, max_iter=1).fit(lazy[: 4 * asked.chunk], n_tasks=2)
    return client, lazy


@contextmanager
def in_one_round():
    usual = round_schedule.ROUND_GROWTH, round_schedule.ROUND_SHARE
    round_schedule.ROUND_GROWTH, round_schedule.ROUND_SHARE = 10**9, 1.0
    try:
        yield
    finally:
        round_schedule.ROUND_GROWTH, round_schedule.ROUND_SHARE = usual


def spread(values):
    """What is in the middle, and the least and the most."""
    return {"median": float(np.median(values)), "of": [float(values.min()), float(values.max())]}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {
        "rows": 1_000_000, "features": 200, "components": 20, "chunk": 10_000, "tasks": 32,
        "repeats": 7,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--keep-memory", action="store_true", help="see KEPT")
    parser.add_argument("--out", help="a JSON file for the results")
    asked = parser.parse_args()
    n, m, r = asked.rows, asked.features, asked.components
    test = chunk(10**6, 20_000, m, r)

    X = np.concatenate([chunk(at, asked.chunk, m, r) for at in range(n // asked.chunk)])
    OnlineFactorAnalysis(r, max_iter=1).fit(X[:2000])  # what is compiled is loaded
    fits = {0: partial(fitted, X, r)}
    took = {0: [], 1: [], 2: []}
    unhindered = {1: [], 2: []}
    errors = {}
    with ExitStack() as stack:
        stack.enter_context(dask.config.set(KEPT if asked.keep_memory else {}))
        for workers in (1, 2):
            client, lazy = cluster(stack, workers, asked)
            fits[workers] = partial(fitted, lazy, r, n_tasks=asked.tasks, client=client)
        for _ in range(asked.repeats):
            for workers, fit in fits.items():
                model, *times = fit()
                took[workers].append(times)
                errors[workers] = error(model, test)
            for workers, times in unhindered.items():
                with in_one_round():
                    times.append(fits[workers](n_tasks=n // asked.chunk)[1])

    seconds, processor = np.moveaxis(np.array([took[0], took[1], took[2]]), 2, 0)
    rounds = len(round_schedule.round_schedule([asked.chunk] * (n // asked.chunk), asked.tasks))
    state, evidence = bytes_moved(model)
    summary = {
        "rows": n, "features": m, "components": r, "chunk": asked.chunk, "n_tasks": asked.tasks,
        "rounds": rounds, "repeats": asked.repeats,
        "overhead of one worker": spread(seconds[1] / seconds[0] - 1),
        "gain of two": spread(seconds[1] / seconds[2]),
        "gain of two in one round": spread(np.divide(unhindered[1], unhindered[2])),
        "seconds": [spread(each) for each in seconds],
        "seconds of processors": [spread(each) for each in processor],
        "errors": [errors[workers] for workers in fits],
        "error beside the plain fit's": errors[2] / errors[0] - 1,
        "bytes of a state": state, "bytes of evidence": evidence,
        "predicted bytes of the dictionary": 8 * m * (r + 1),
    }  # fmt: skip
    text = json.dumps(summary, indent=1)
    print(text)
    if asked.out:
        with open(asked.out, "w") as stream:
            stream.write(text + "\n")


if __name__ == "__main__":
    main()
