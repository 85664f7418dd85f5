"""`python -m tests.hostile.soak`: millions of single rows, and nothing drifts, grows or breaks."""

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from omfb import OMFB, OnlineFactorAnalysis

from .page import write_section

WIDTH, CHUNK = 6, 10_000


class Kind(NamedTuple):
    """How a model learns, from numbers of which type, and how many rows it gets at a time."""

    name: str
    model: Any
    dtype: Any = np.float64
    at_once: int = 1


PAPER = {
    f"OMFB, `forget_factor={factor:g}`": OMFB(2, forget_factor=factor, random_state=0)
    for factor in (1.0, 0.0, 0.999, 0.9)
}
FACTORS = OnlineFactorAnalysis(2, random_state=0)
KINDS = [
    Kind("OnlineFactorAnalysis", FACTORS, at_once=100),
    Kind("OnlineFactorAnalysis", FACTORS, np.float32, at_once=100),
    *(Kind(name, model) for name, model in PAPER.items()),
    *(Kind(name, model, np.float32) for name, model in PAPER.items()),
]


class Soaked(NamedTuple):
    """What is left of a model after a long stream."""

    rows: int
    refused: int
    drift: float
    finite: bool
    grown: float
    seconds: float


def main() -> None:
    """Soak each kind of model in both types of numbers, and write the table to the page."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.soak", description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000_000)
    parser.add_argument("--page", action="store_true", help="write the table to the page")
    asked = parser.parse_args()
    lines = [
        "| model | type | rows | at once | refused | drift | finite | memory grown | seconds |",
        "|---|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    print("\n".join(lines), flush=True)
    # A process for each, as many at a time as there are cores: what it has in memory is its own.
    with ProcessPoolExecutor(mp_context=get_context("spawn"), max_tasks_per_child=1) as pool:
        soaked = pool.map(soak, KINDS, repeat(asked.rows))
        for kind, made in zip(KINDS, soaked, strict=True):
            lines.append(
                f"| {kind.name} | {np.dtype(kind.dtype)} | {made.rows:,} | {kind.at_once} | "
                f"{made.refused} | {made.drift:.1e} | {'yes' if made.finite else '**no**'} | "
                f"{made.grown:.1f} MB | {made.seconds:.0f} |"
            )
            print(lines[-1], flush=True)
    if asked.page:
        write_section("soak", f"python -m tests.hostile.soak --rows {asked.rows} --page", lines)


def soak(kind: Kind, n_rows: int) -> Soaked:
    """Learn from so many rows."""
    first = next(stream(CHUNK, kind.dtype))[:1]
    learner = clone(kind.model).partial_fit(first).learner_
    refused, settled, began, finite = 0, 0.0, time.perf_counter(), True
    for number, rows in enumerate(stream(n_rows, kind.dtype)):
        for at in range(0, CHUNK, kind.at_once):
            try:
                learner.learn(rows[at : at + kind.at_once])
            except ValueError:
                refused += 1
        finite = finite and bool(np.isfinite(learner.fill(rows[:5])).all())
        if number == n_rows // CHUNK // 10:
            settled = resident()
    seconds = time.perf_counter() - began
    state = learner.state
    paper = isinstance(kind.model, OMFB)
    C, kept = (state.C, state.G) if paper else (state.coding, state.batch.G)
    G = C.T.astype(np.float64) @ C
    drift = float(np.linalg.norm(kept - G) / np.linalg.norm(G))
    return Soaked(learner.n_seen - 1, refused, drift, finite, resident() - settled, seconds)


def stream(n_rows: int, dtype: Any) -> Iterator[np.ndarray]:
    """Chunks of rows of rank 2 with noise, a tenth missing; twice they jump by a factor of 1e6.

    After a third of the rows one column is silent for 100,000 of them.
    """
    rng = np.random.default_rng(0)
    atoms = rng.normal(size=(2, WIDTH))
    for start in range(0, n_rows, CHUNK):
        rows = rng.normal(size=(CHUNK, 2)) @ atoms + 0.1 * rng.normal(size=(CHUNK, WIDTH))
        rows *= 1e6 if n_rows // 2 <= start < n_rows // 2 + n_rows // 10 else 1.0
        rows[rng.random(rows.shape) < 0.1] = np.nan
        if n_rows // 3 <= start < n_rows // 3 + 100_000:
            rows[:, 2] = np.nan
        yield rows.astype(dtype)


def resident() -> float:
    """What the process has in memory now, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


if __name__ == "__main__":
    main()
