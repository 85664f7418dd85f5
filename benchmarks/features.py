"""What a step by features costs: its time, the bytes it moves, and what that comes to at scale.

    python benchmarks/features.py [--rows 1024] [--features 400000] [--slices 8] [--components 20]

A fit by one worker and by two, each with a thread and an address of its own, as if they were
machines, beside `fit` of the array. Workers make their chunks and keep them. In a step each slice
sends 8 (q r + q²) bytes, and 8 r² more if G is due, and is sent 16 q r: what that is pickled to is
told beside it, and what two workers have counted between them. Then one pass over rows of 1e8
features is simulated, with the same parameters as in `cluster_times.py`, from seconds of processors
that are measured here. Reading rows is not in it.
"""

import argparse
import json
import math
import pickle
import time

import dask.array as da
import numpy as np
import psutil
from cluster import processor_time
from distributed import Client, LocalCluster, Nanny, Scheduler, SpecCluster, wait

from omfb import OMFB
from omfb.adapters.dask.feature_tasks import BRANCHES
from omfb.broyden import init
from omfb.core.broyden.sharded import addends, decide, longest_step, updated, without_features

NOISE = 0.5


def made(rank, block_info):
    """A chunk: its atoms follow from its columns, its codes from its rows."""
    place = block_info[None]
    (row, column), (n_rows, width) = place["chunk-location"], place["chunk-shape"]
    atoms = np.random.default_rng([0, column]).standard_normal((rank, width))
    codes = np.random.default_rng([1, row]).standard_normal((n_rows, rank))
    return codes @ atoms + NOISE * np.random.default_rng([2, row, column]).standard_normal(
        (n_rows, width)
    )


def collection(asked, chunk=256):
    widths = np.diff(np.linspace(0, asked.features, asked.slices + 1).astype(int))
    lengths = (chunk,) * (asked.rows // chunk)
    return da.map_blocks(
        made, asked.components, chunks=(lengths, tuple(widths.tolist())), dtype=np.float64
    )


def fitted(X, r, client=None):
    """The model, seconds, and seconds of processors."""
    began, used = time.perf_counter(), processor_time(client)
    model = OMFB(r, shuffle=False, random_state=0).fit(X)
    return model, time.perf_counter() - began, processor_time(client) - used


def received(dask_worker):
    """Bytes that a worker has had from others, by what they are."""
    total = {}
    for transfer in dask_worker.transfer_incoming_log:
        for key, size in transfer["keys"].items():
            name = key.rpartition("-")[0] if isinstance(key, str) else "chunk"
            name = name.partition("-")[0]
            total[name] = total.get(name, 0) + size
    return total


def laid_out(client, X):
    """The chunks in memory, those of neighbouring columns with one worker."""
    workers, n = sorted(client.nthreads()), X.numblocks[1]
    columns = [
        client.persist(X.blocks[:, at], workers=[workers[at * len(workers) // n]])
        for at in range(n)
    ]
    wait(columns)
    return da.concatenate(columns, axis=1)


def by_workers(asked, workers):
    """A fit by so many: what it took, and what was moved."""
    hosts = [f"127.0.0.{1 + at}" for at in range(workers)]
    spec = {
        host: {"cls": Nanny, "options": {"host": host, "nthreads": 1, "dashboard_address": ":0"}}
        for host in hosts
    }
    scheduler = {"cls": Scheduler, "options": {"host": hosts[0], "dashboard_address": ":0"}}
    with SpecCluster(workers=spec, scheduler=scheduler) as cluster, Client(cluster) as client:
        X = laid_out(client, collection(asked))
        fitted(X[:512], asked.components, client)  # what is compiled is loaded
        before = client.run(received)
        model, seconds, processor = fitted(X, asked.components, client)
        moved = {}
        for worker, after in client.run(received).items():
            for name, size in after.items():
                moved[name] = moved.get(name, 0) + size - before[worker].get(name, 0)
        return {
            "workers": workers, "seconds": seconds, "processor": processor, "moved": moved,
            "error": model.prequential_error_,
        }  # fmt: skip


def kept_by_task(n_steps=400, slices=8):
    """Bytes that the scheduler, here in the client's process, keeps of each task of a fit."""
    X = np.random.default_rng(0).standard_normal((4 * n_steps, 5 * slices))
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        options = {"shuffle": False, "random_state": 0, "batch_size": 4}
        lazy = da.from_array(X, chunks=(n_steps, 5))
        OMFB(5, **options).fit(lazy[: n_steps // 4])
        before = psutil.Process().memory_info().rss
        model = OMFB(5, **options).fit(lazy)  # as long as it is held
        kept = (psutil.Process().memory_info().rss - before) / len(cluster.scheduler.tasks)
        del model
    return kept


def step_times(r, q, width=100_000):
    """Seconds of processors of a step of q rows: per feature of a slice, and in the rest."""
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((q, width))
    state = init(Y, r, seed=0)
    small = without_features(state)
    decide(small, addends(state.C, Y, True), width)  # what is compiled is loaded
    times = []
    for _ in range(5):
        began = time.process_time()
        sums = addends(state.C, Y, True)
        added = time.process_time()
        _, X, B, _ = decide(small, sums, width)
        decided = time.process_time()
        updated(state.C, Y, X, B)
        times.append((added - began + time.process_time() - decided, decided - added))
    slices, small = np.median(times, axis=0)
    return float(slices) / width, float(small)


def bytes_moved(r, q):
    """Of a step, pickled: what a slice sends, and what it is sent."""
    state = init(np.random.default_rng(0).standard_normal((q, 4 * r)), r, seed=0)
    sums = addends(state.C, np.random.default_rng(1).standard_normal((q, 4 * r)), False)
    _, X, B, _ = decide(without_features(state), sums, 4 * r)
    return [len(pickle.dumps(part, protocol=5)) for part in (sums, (X, B))]


def pass_at_scale(n_rows, n_features, r, workers, asked):
    """Rows of a step, and seconds of a pass in slices, reduced space, scheduler and network."""
    q = longest_step(r, [n_features // workers] * workers)
    each_feature, small = step_times(r, q)
    tasks, parts, levels = 2 * workers + 1, workers, 1
    while parts > BRANCHES:
        parts, levels = math.ceil(parts / BRANCHES), levels + 1
        tasks += parts
    together = min(workers, BRANCHES) * 8 * q * (q + r) / asked.bandwidth
    up = levels * (together + asked.latency)
    down = workers * 16 * q * r / asked.bandwidth + asked.latency
    steps = n_rows / q
    parts = (n_features / workers * each_feature, small, tasks * asked.task, up + down)
    return q, [steps * part for part in parts]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, value in {
        "rows": 1024, "features": 400_000, "slices": 8, "components": 20,
    }.items():  # fmt: skip
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--bandwidth", type=float, default=1e9, help="bytes a second")
    parser.add_argument("--latency", type=float, default=1e-3, help="seconds a message")
    parser.add_argument("--task", type=float, default=1e-3, help="seconds a task of the scheduler")
    parser.add_argument("--out", help="a JSON file for the results")
    asked = parser.parse_args()
    r, width = asked.components, -(-asked.features // asked.slices)
    q = longest_step(r, [width] * asked.slices)
    steps = asked.rows / q

    whole = collection(asked).compute(scheduler="synchronous")
    fitted(whole[:256], r)
    alone, seconds, processor = fitted(whole, r)
    del whole
    runs = [
        {
            "workers": 0, "seconds": seconds, "processor": processor,
            "error": alone.prequential_error_,
        }
    ]  # fmt: skip
    runs += [by_workers(asked, workers) for workers in (1, 2)]
    sent, got = bytes_moved(r, q)
    times = step_times(r, q)
    results = {
        "rows": asked.rows, "features": asked.features, "slices": asked.slices, "components": r,
        "rows of a step": q, "steps": steps, "runs": runs,
        "bytes a slice sends in a step": sent, "predicted": 8 * (q * r + q * q),
        "bytes it is sent": got, "predicted of these": 16 * q * r,
        "bytes between two workers in a step":
            {name: size / steps for name, size in runs[-1]["moved"].items()},
        "bytes that the scheduler keeps of a task": kept_by_task(),
        "bytes of the dictionary": 8 * asked.features * r,
        "µs of a processor for 1000 features in a step": 1e9 * times[0],
        "ms of small space": 1e3 * times[1],
    }  # fmt: skip
    text = json.dumps(results, indent=1, ensure_ascii=False)
    print(text)
    if asked.out:
        with open(asked.out, "w") as stream:
            stream.write(text + "\n")
    print("1e8 features, 1e5 rows, 20 components, a slice for each worker:")
    print("| workers | rows of a step | hours | slices | small space | scheduler | network |")
    print("|---:|---:|---:|---:|---:|---:|---:|")
    for workers in (10, 100, 300, 1000, 10_000):
        length, parts = pass_at_scale(10**5, 10**8, 20, workers, asked)
        shown = " | ".join(f"{100 * part / sum(parts):.1f} %" for part in parts)
        print(f"| {workers} | {length} | {sum(parts) / 3600:.2f} | {shown} |")


if __name__ == "__main__":
    main()
