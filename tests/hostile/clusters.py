"""`python -m tests.hostile.clusters`: `kill -9` of workers at random moments of fits."""

import argparse
import logging
import os
import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from sklearn.base import clone

from omfb import OMFB, OnlineFactorAnalysis
from omfb.adapters.dask.futures import ClusterError

from ..commands import low_rank
from .page import write_section

# Fits take some seconds; one that is silent for so long after the last kill will never end.
HANGS_AFTER = 120.0
NO_WORKERS = {"distributed.scheduler.no-workers-timeout": "20s"}
SAME, TOLD, OTHER, FAILED, HANG = (
    "same bits", "no workers left, and told so", "other bits", "other errors", "hangs",
)  # fmt: skip
KINDS: dict[str, tuple[Any, tuple[int, int]]] = {
    "by rows": (OnlineFactorAnalysis(5, random_state=0, max_iter=3), (100, 300)),
    "by features": (OMFB(5, random_state=0, max_iter=3), (1000, 100)),
}


def main() -> None:
    """Let clusters lose workers while they fit, and count how the fits end."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.clusters", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="for each kind of fit")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--page", action="store_true", help="write the table to the page")
    asked = parser.parse_args()
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    outcomes = [SAME, TOLD, OTHER, FAILED, HANG]
    lines = [f"| fits | kills | {' | '.join(outcomes)} |", "|---|---:|" + "---:|" * len(outcomes)]
    for kind in KINDS:
        ends, kills = soak(kind, 60.0 * asked.minutes, np.random.default_rng(asked.seed))
        lines.append(f"| {kind} | {kills} | {' | '.join(str(ends[end]) for end in outcomes)} |")
    print("\n".join(lines), flush=True)
    if asked.page:
        words = f"python -m tests.hostile.clusters --minutes {asked.minutes:g} --seed {asked.seed}"
        write_section("clusters", f"{words} --page", lines)
    os._exit(0)  # what hangs would be waited for


def soak(kind: str, seconds: float, rng: np.random.Generator) -> tuple[Counter[str], int]:
    """How fits ended that lost workers, and how many workers they lost."""
    model, chunks = KINDS[kind]
    X = da.from_array(low_rank(3000, 300, missing=0.0), chunks=chunks)

    def fitted() -> Any:
        return np.asarray(clone(model).fit(X).components_)

    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):
        expected = fitted()
    ends: Counter[str] = Counter()
    kills, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        )
        client = Client(cluster)
        with dask.config.set(NO_WORKERS):  # of the client alone: schedulers look at their start
            fit = ThreadPoolExecutor(1).submit(fitted)
            kills += kill_some(cluster, rng, fit.done)
            end = ended(fit, expected)
        ends[end] += 1
        print(f"{kind}: {end}", flush=True)
        if end == HANG:
            for task in cluster.scheduler.tasks.values():
                print(f"  {task.key}: {task.state}, at {task.processing_on}", flush=True)
        with suppress(Exception):  # such a cluster need not end well
            client.close(timeout=5)
            cluster.close(timeout=10)
    return ends, kills


def kill_some(cluster: LocalCluster, rng: np.random.Generator, done: Any) -> int:
    """Kill one to ten workers, in rapid or slow succession, also those that have just started."""
    kills, intended, pause = 0, rng.integers(1, 11), rng.choice([0.05, 0.3, 1.0, 3.0])
    while kills < intended and cluster.workers and not done():
        time.sleep(rng.uniform(0.0, pause))
        nannies = list(cluster.workers.values())
        pid = nannies[rng.integers(len(nannies))].pid if nannies else None
        if pid is not None:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                kills += 1
    return kills


def ended(fit: Any, expected: np.ndarray) -> str:
    """How a fit ends that loses no more workers."""
    try:
        return SAME if np.array_equal(fit.result(HANGS_AFTER), expected) else OTHER
    except ClusterError:
        return TOLD
    except TimeoutError:
        return HANG
    except Exception as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        return FAILED


if __name__ == "__main__":
    main()
