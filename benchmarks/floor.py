"""How far omfb is from the floor, and from the textbook loop: ratios measured in one run.

The floor is the work that no exact method can avoid: the two products C₀ᵀY and Y B of a block.

    python benchmarks/floor.py --out floor.json          # some minutes
    python benchmarks/floor.py --quick                   # seconds, small shapes
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import scipy.sparse
from scipy.linalg.blas import dger
from threadpoolctl import threadpool_limits
from timing import Row, environment, interleaved, report

import omfb
from omfb import OMFB, Rule
from omfb.core.kernels.sequence import block_length

HERE = Path(__file__).resolve().parent
SHAPES = [(4096, 30), (4096, 100), (100_000, 50)]
QUICK_SHAPES = [(512, 10)]


def naive(Y: np.ndarray, C: np.ndarray, lam: float) -> np.ndarray:
    """The paper's Algorithm 1, and 2 where Y has holes, as one writes it down."""
    for row in Y:
        seen = ~np.isnan(row)
        mask, y, C_before = seen[:, None], np.where(seen, row, 0), C
        for _ in range(2):
            C_seen = C if seen.all() else mask * C
            x = np.linalg.inv(C_seen.T @ C_seen) @ (C_seen.T @ y)
            error = y - C_before @ x
            C = C_before + np.outer(error if seen.all() else seen * error, x) / (lam + x @ x)
    return C


def against_floor(m: int, r: int, dtype: type, repeats: int) -> list[Row]:
    rng = np.random.default_rng(0)
    q = block_length(r)
    n = q * (6 if m < 50_000 else 2)
    Y = rng.random((n, m)).astype(dtype)
    first = rng.random((r, m))
    paper = omfb.init(Y, r, Rule(memory=0.0), init=first)
    full = omfb.init(Y, r, Rule(memory=1.0), init=first)
    B = rng.random((q, r)).astype(dtype)
    into_P, into_C = np.empty((q, r), dtype), np.empty((m, r), dtype)
    few = max(2, min(8, 400_000 // m))

    def floor() -> None:
        for start in range(0, n, q):
            block = Y[start : start + q]
            np.matmul(block, paper.C, out=into_P)
            np.matmul(block.T, B, out=into_C)

    floor_s, paper_s, full_s, naive_s = interleaved(
        [
            floor,
            lambda: omfb.step(paper, Y),
            lambda: omfb.step(full, Y),
            lambda: naive(Y[:few], paper.C, 1.0),
        ],
        repeats,
    )
    where = f"{m} x {r}, {np.dtype(dtype).name}"
    most = 2.0 if m >= 100_000 else 2.5
    return [
        Row("Algorithm 1 / floor", where, paper_s / floor_s, most=most, seconds=paper_s / n),
        Row("naive loop / Algorithm 1", where, naive_s / few / (paper_s / n), least=10.0),
        Row("memory=1 / memory=0", where, full_s / paper_s, most=1.3, seconds=full_s / n),
    ]


def with_holes(m: int, r: int, repeats: int) -> list[Row]:
    rng = np.random.default_rng(0)
    Y = rng.random((64, m))
    Y[rng.random(Y.shape) < 0.25] = np.nan
    state = omfb.init(Y, r, Rule(memory=0.0), init=rng.random((r, m)))
    ours, loop = interleaved(
        [lambda: omfb.step(state, Y), lambda: naive(Y[:8], state.C, 1.0)], repeats
    )
    return [
        Row("naive masked loop / Algorithm 2", f"{m} x {r}, 25 % missing", loop / 8 / (ours / 64),
            least=6.0, seconds=ours / 64)
    ]  # fmt: skip


def rows_with(observed: int, features: int, n: int = 500) -> scipy.sparse.csr_array:
    """Rows with one entry in each of `observed` equal runs of the features."""
    rng = np.random.default_rng(0)
    run = features // observed
    columns = run * np.arange(observed) + rng.integers(run, size=(n, observed))
    starts = observed * np.arange(n + 1)
    return scipy.sparse.csr_array(
        (rng.random(columns.size), columns.ravel(), starts), shape=(n, features)
    )


def sparse(m: int, r: int, repeats: int) -> list[Row]:
    """Twice the entries should cost about twice; ten times the features, nothing."""

    def learner(features: int, observed: int):
        X = rows_with(observed, features)
        state = omfb.init(X, r, Rule(ridge=0.1), seed=0)
        # The state is used up and replaced, as a stream does: no copy of the dictionary.
        holder = [omfb.step(state, X)[0]]

        def learn() -> None:
            holder[0] = omfb.step(holder[0], X, reuse=True)[0]

        return learn

    observed = m // 100
    base, wide, dense = interleaved(
        [learner(m, observed), learner(10 * m, observed), learner(m, 2 * observed)], repeats
    )
    where = f"{m} x {r}, {observed} observed in a row"
    return [
        Row("10 times the features, same entries", where, wide / base, most=1.5),
        Row("twice the entries", where, dense / base, most=2.5, seconds=base / 500),
    ]


def single_row(m: int, r: int, repeats: int) -> list[Row]:
    rng = np.random.default_rng(0)
    Y = rng.random((200, m))
    model = OMFB(r, random_state=0).partial_fit(Y)
    C, k = rng.random((m, r)), 1e-9 * rng.random(r)
    rows = [Y[i : i + 1] for i in range(100)]

    def learn() -> None:
        for row in rows:
            model.partial_fit(row)

    def least() -> None:
        for row in rows:
            C.T @ row[0]
            dger(1.0, k, row[0], a=C.T, overwrite_a=True)

    ours, unavoidable = (s / 100 for s in interleaved([learn, least], repeats))
    over = 1e6 * (ours - unavoidable)
    return [Row("partial_fit of a row, µs above C.T @ y and a rank-one update",
                f"{m} x {r}", over, most=150.0, seconds=ours)]  # fmt: skip


STARTS = {
    "import omfb": "import omfb",
    "from omfb import OMFB": "from omfb import OMFB",
    "import sklearn.base (for comparison)": "import sklearn.base",
}
FIT = (
    "import time, numpy as np; from omfb import OMFB; X = np.random.rand(60, 50);"
    "t = time.perf_counter(); OMFB(5).fit(X); print(time.perf_counter() - t)"
)


def starting() -> list[Row]:
    """Seconds of a new process, less those of an empty one; and the first fit, cold and cached."""

    def python(code: str, cache: str) -> str:
        command = [sys.executable, "-c", code]
        env = {"NUMBA_CACHE_DIR": cache, "PATH": ""}
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    rows = []
    with tempfile.TemporaryDirectory() as cache:
        empty, *taken = interleaved(
            [lambda code=code: python(code, cache) for code in ["pass", *STARTS.values()]], 3
        )
        for name, seconds in zip(STARTS, taken, strict=True):
            most = 1.0 if name == "import omfb" else None
            rows.append(Row(f"seconds of `{name}`", "new process", seconds - empty, most=most))
        cold, cached = float(python(FIT, cache)), float(python(FIT, cache))
    rows.append(Row("seconds of the first fit", "new machine, compiling", cold, most=15.0))
    rows.append(Row("seconds of the first fit", "compiled kernels on disk", cached, most=1.5))
    return rows


MEMMAP = """
import sys, numpy as np
from omfb import OMFB
X = np.load(sys.argv[1], mmap_mode="r")
OMFB(20, shuffle=sys.argv[2] == "True", random_state=0).fit(X)
sys.path.insert(0, sys.argv[3])
from timing import resident
print(resident(peak=True))
"""


def memory(gigabytes: float) -> list[Row]:
    """Peak memory of fitting a memory-mapped float32 file."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.npy"
        n, m = int(gigabytes * 2**30 / 4 / 4096), 4096
        rng = np.random.default_rng(0)
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, m))
        for start in range(0, n, 4096):
            X[start : start + 4096] = rng.random((len(X[start : start + 4096]), m), np.float32)
        X.flush()
        del X
        for shuffle in (False, True):
            command = [sys.executable, "-c", MEMMAP, str(path), str(shuffle), str(HERE)]
            out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            where = f"{gigabytes:g} GB float32 memmap, shuffle={shuffle}"
            rows.append(Row("peak memory of fit, MB", where, float(out), most=600.0))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small shapes, seconds")
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)  # the smoke test
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads for all (default 1)")
    parser.add_argument("--out", type=Path, help="write the table as JSON")
    options = parser.parse_args()
    options.quick |= options.tiny
    repeats = 1 if options.tiny else 3 if options.quick else 21
    m, r = QUICK_SHAPES[0] if options.quick else SHAPES[0]
    rows: list[Row] = []
    with threadpool_limits(options.threads):
        for shape in QUICK_SHAPES if options.quick else SHAPES:
            for dtype in (np.float64, np.float32):
                rows += against_floor(*shape, dtype, repeats)
        rows += with_holes(m, r, repeats)
        rows += single_row(m, r, repeats)
        rows += sparse(10_000 if options.quick else 100_000, r, repeats)
    if not options.tiny:  # a minute of starting processes
        rows += starting()
    rows += memory(0.002 if options.tiny else 0.05 if options.quick else 2.0)
    report(rows, environment(options.threads), options.out)


if __name__ == "__main__":
    main()
