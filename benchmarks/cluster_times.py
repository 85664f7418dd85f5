"""How long fits by a cluster would take: a simulation from step times that are measured here.

    python benchmarks/cluster_times.py [--bandwidth 1e9] [--latency 0.001] [--task 0.001]

In each round all tasks pass one scheduler; the state goes from the client to each
worker; a worker learns from its chunks; evidence comes together by a tree, and the state returns.
"""

import argparse
import math
import time

import numpy as np

from omfb.adapters.dask.round_schedule import round_schedule
from omfb.core.factor import merge
from omfb.core.factor.config import FactorConfig
from omfb.core.factor.init import init
from omfb.core.factor.step import step
from omfb.core.linalg.threads import products_in_one_thread

CHUNK, TASKS = 100_000, 1000


@products_in_one_thread()
def measured(n_features, components, rows=8192):
    """Seconds to learn from a row, and to gather and merge a task, as workers do it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, components)) @ rng.standard_normal((components, n_features))
    X += 0.5 * rng.standard_normal(X.shape)
    config = FactorConfig(n_components=components, scale=False, noise="isotropic")
    model = step(init(X[:400], config, seed=0), X)[0]
    began = time.process_time()
    part = step(model, X)[0]
    learned = time.process_time()
    evidence = merge.gather(model, part)
    gathered = time.process_time()
    merge.merged(model, evidence)
    ended = time.process_time()
    return (learned - began) / rows, gathered - learned, ended - gathered


def seconds_of_a_pass(n_rows, n_features, components, workers, times, asked):
    """Seconds of one pass, and the parts of it: learning, scheduler, network, merging."""
    each_row, gather, merged = times
    size = 8 * n_features * (components + 1) / asked.bandwidth + asked.latency
    lengths = [CHUNK] * (n_rows // CHUNK)
    learning = scheduler = network = merging = 0.0
    for tasks in round_schedule(lengths, min(TASKS, max(workers, 32))):
        chunks = max(map(len, tasks)) * math.ceil(len(tasks) / workers)
        depth = math.ceil(math.log2(len(tasks))) if len(tasks) > 1 else 0
        learning += chunks * CHUNK * each_row
        scheduler += (sum(map(len, tasks)) + 3 * len(tasks)) * asked.task
        network += (min(workers, len(tasks)) + depth + 1) * size
        merging += math.ceil(len(tasks) / workers) * gather + merged
    return learning, scheduler, network, merging


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bandwidth", type=float, default=1e9, help="bytes a second")
    parser.add_argument("--latency", type=float, default=1e-3, help="seconds a message")
    parser.add_argument("--task", type=float, default=1e-3, help="seconds a task of the scheduler")
    asked = parser.parse_args()
    n_rows, n_features, components = 10**9, 1000, 20
    times = measured(n_features, components)
    print(f"{n_features} features, {components} components: {times[0] * 1e6:.1f} µs a row,")
    print(f"{times[1] * 1e3:.1f} ms to gather a task, {times[2] * 1e3:.1f} ms to merge a round")
    print("| workers | minutes | learning | scheduler | network | merging |")
    print("|---:|---:|---:|---:|---:|---:|")
    for workers in (1, 10, 100, 1000, 10_000):
        parts = seconds_of_a_pass(n_rows, n_features, components, workers, times, asked)
        shown = " | ".join(f"{100 * part / sum(parts):.1f} %" for part in parts)
        print(f"| {workers} | {sum(parts) / 60:.1f} | {shown} |")
    state = 8 * 10**8 * (components + 1)
    print(f"1e8 features: a state of {state / 1e9:.0f} GB, {state / asked.bandwidth:.0f} s to send")


if __name__ == "__main__":
    main()
