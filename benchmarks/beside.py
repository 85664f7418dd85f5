"""Seconds of a fit with nothing set, beside those of 0.1.0 and of IterativeImputer.

Each fit runs in a process of its own, warmed up before the clock starts; the versions take turns.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from timing import Row, say

HERE = Path(__file__).resolve().parent

# What a child process runs; it prints seconds.
CHILD = """
import json, sys, time
import numpy as np
from threadpoolctl import threadpool_limits
import omfb

kind, n, m, r, share, threads, new = json.loads(sys.argv[1])
rng = np.random.default_rng(0)
X = rng.standard_normal((n, 2 * r), np.float32) @ rng.standard_normal((2 * r, m), np.float32)
X += rng.standard_normal(X.shape, np.float32)
if kind == "runs":  # each series is missing for stretches of 20 rows
    X = X.astype(np.float64)
    for series in X.T:
        for start in rng.integers(0, n - 20, int(share * n / 20)):
            series[start : start + 20] = np.nan
if new:
    Model = omfb.OMFBImputer if kind == "runs" else omfb.OnlineFactorAnalysis
else:
    Model = omfb.OMFB
with threadpool_limits(threads):
    Model(r, max_iter=1, random_state=0).fit(X[:2000])
    start = time.perf_counter()
    Model(r, max_iter=1, random_state=0).fit(X)
    print(time.perf_counter() - start)
"""

# Kind, rows, columns, components, share missing, at most so many times 0.1.0's seconds.
STREAMS = (
    ("complete", 20_000, 1000, 30, 0.0, 1.3),
    ("complete", 5_000, 4096, 30, 0.0, 1.3),
    ("runs", 35_064, 132, 60, 0.1, 1.6),
)


def seconds_of(source: str, arguments: list[object], script: str = CHILD) -> float:
    """Seconds that a child process measured, with omfb from that source."""
    path = os.pathsep.join([source, str(HERE)])
    done = subprocess.run(
        [sys.executable, "-c", script, json.dumps(arguments)],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    return float(done.stdout.split()[-1])


def times(size: str, before: str | None, threads: int) -> Iterator[Row]:
    """Rows of ratios; those beside 0.1.0 only if its source is given."""
    import omfb

    now = str(Path(omfb.__file__).resolve().parents[1])
    part, repeats = (1, 5) if size == "full" else (10, 1)
    for kind, n, m, r, share, most in STREAMS if before else ():
        taken: dict[str, list[float]] = {before: [], now: []}
        for _ in range(repeats):
            for source, seconds in taken.items():
                arguments = [kind, max(2000, n // part), m, r, share, threads, source == now]
                seconds.append(seconds_of(source, arguments))
        ratio = min(taken[now]) / min(taken[before])
        each = tuple(a / b for a, b in zip(taken[now], taken[before], strict=True))
        where = f"{kind} rows, {n} × {m}, r={r}"
        found = Row("seconds / those of 0.1.0", where, ratio, most=most, seconds=min(taken[now]),
                    spread=each)  # fmt: skip
        say(f"{found}")
        yield found
    yield from beside_iterative(size, now, threads)


ITERATIVE = """
import json, sys, time, warnings
import numpy as np
from sklearn.experimental import enable_iterative_imputer
from sklearn.impute import IterativeImputer
from threadpoolctl import threadpool_limits
from data import with_holes
from omfb import OMFBImputer

who, size, seed, threads = json.loads(sys.argv[1])
warnings.simplefilter("ignore")
with threadpool_limits(threads):
    problem = with_holes("Beijing air", size, seed)
    X = problem.X.astype(np.float64)
    if who == "omfb":
        OMFBImputer(max_iter=1).fit(X[:1000])
    model = (
        OMFBImputer(max_iter=1, random_state=0) if who == "omfb"
        else IterativeImputer(n_nearest_features=50, random_state=0)
    )
    start = time.perf_counter()
    filled = model.fit_transform(X)
    seconds = time.perf_counter() - start
print(problem.error(filled), file=sys.stderr)
print(seconds)
"""


def beside_iterative(size: str, now: str, threads: int) -> Iterator[Row]:
    """One pass over Beijing and filling it, beside IterativeImputer's."""
    from data import AbsentError, with_holes
    from nothing_set import SEED

    try:
        with_holes("Beijing air", size, SEED)
    except AbsentError:
        return
    ours = min(seconds_of(now, ["omfb", size, SEED, threads], ITERATIVE) for _ in range(2))
    theirs = seconds_of(now, ["IterativeImputer", size, SEED, threads], ITERATIVE)
    bound = {"most": 0.05} if size == "full" else {}
    found = Row("seconds / those of IterativeImputer", "Beijing air, one pass", ours / theirs,
                seconds=ours, **bound)  # fmt: skip
    say(f"{found}")
    yield found
