"""How far omfb is from the floor, and from the textbook loop: ratios measured in one run.

The floor is the work that no exact method can avoid: the two products C₀ᵀY and Y B of a block.

    python benchmarks/floor.py --out floor.json          # some minutes
    python benchmarks/floor.py --quick                   # seconds, small shapes
"""

import argparse
import itertools
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import scipy.sparse
from peers import ALL_ROWS
from scipy.linalg.blas import dger
from threadpoolctl import ThreadpoolController
from timing import Row, environment, interleaved, report

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis, broyden
from omfb.broyden import BroydenConfig
from omfb.core.broyden.block import block_length
from omfb.core.broyden.encode import encode, fill

HERE = Path(__file__).resolve().parent
# Found once: to look for libraries takes milliseconds, as long as some of what is timed.
LIBRARIES = ThreadpoolController()
SHAPES = [(4096, 30), (4096, 100), (100_000, 50)]
QUICK_SHAPES = [(512, 10)]
ALL_CONFIG = BroydenConfig(**ALL_ROWS)
# Features of the single rows that are learned with nothing set.
SINGLE = (10, 100, 1000)
WIDE_SHAPES = [(4096, 30), (10_000, 30), (100_000, 50), (300_000, 20)]


def naive(Y: np.ndarray, C: np.ndarray, lam: float) -> np.ndarray:
    """The paper's Algorithm 1, and 2 where Y misses entries, as one writes it down."""
    for row in Y:
        seen = ~np.isnan(row)
        mask, y, C_before = seen[:, None], np.where(seen, row, 0), C
        for _ in range(2):
            C_seen = C if seen.all() else mask * C
            x = np.linalg.inv(C_seen.T @ C_seen) @ (C_seen.T @ y)
            error = y - C_before @ x
            C = C_before + np.outer(error if seen.all() else seen * error, x) / (lam + x @ x)
    return C


class Floor:
    """A stream of blocks, the two products that each needs, and our steps over it."""

    def __init__(self, m: int, r: int, dtype: type) -> None:
        rng = np.random.default_rng(0)
        self.q = block_length(m, r)
        self.n = self.q * (6 if m < 50_000 else 3)
        self.Y = rng.random((self.n, m)).astype(dtype)
        first = rng.random((r, m))
        self.states = {
            factor: broyden.init(self.Y, r, BroydenConfig(forget_factor=factor), init=first)
            for factor in (0.0, 1.0)
        }
        self.B = rng.random((self.q, r)).astype(dtype)
        self.P, self.C = np.empty((self.q, r), dtype), np.empty((m, r), dtype)
        self.where = f"{m} x {r}, {np.dtype(dtype).name}"

    def products(self, threads: int) -> None:
        """The floor."""
        with LIBRARIES.limit(limits=threads):
            for start in range(0, self.n, self.q):
                block = self.Y[start : start + self.q]
                np.matmul(block, self.states[0.0].C, out=self.P)
                np.matmul(block.T, self.B, out=self.C)

    def learn(self, forget_factor: float, threads: int) -> None:
        """The same rows by `step`."""
        with LIBRARIES.limit(limits=threads):
            broyden.step(self.states[forget_factor], self.Y)


def against_floor(m: int, r: int, dtype: type, repeats: int) -> list[Row]:
    case = Floor(m, r, dtype)
    few = max(2, min(8, 400_000 // m))
    floor_s, paper_s, full_s, naive_s = interleaved(
        [
            lambda: case.products(1),
            lambda: case.learn(0.0, 1),
            lambda: case.learn(1.0, 1),
            lambda: naive(case.Y[:few], case.states[0.0].C, 1.0),
        ],
        repeats,
        of=min,
    )
    n, where = case.n, case.where
    return [
        Row("Algorithm 1 / floor", where, paper_s / floor_s, most=2.2, seconds=paper_s / n),
        Row("forget_factor=1 / floor", where, full_s / floor_s, most=2.2, seconds=full_s / n),
        Row("naive loop / Algorithm 1", where, naive_s / few / (paper_s / n), least=10.0),
    ]


@contextmanager
def busy_process() -> Iterator[None]:
    """Let another process keep a core busy."""
    other = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        other.kill()
        other.wait()


def in_two_threads(m: int, r: int, repeats: int, busy: bool) -> list[Row]:
    """Two threads beside one, and beside the floor in two; `busy`: another process has a core."""
    case = Floor(m, r, np.float64)
    with busy_process() if busy else nullcontext():
        floor_s, one, two = interleaved(
            [lambda: case.products(2), lambda: case.learn(0.0, 1), lambda: case.learn(0.0, 2)],
            repeats,
            of=statistics.median if busy else min,
            pause=0.2,
        )
    if busy:
        what = "two threads / one, while another process keeps a core busy"
        return [Row(what, case.where, two / one, most=1.3, seconds=two / case.n)]
    least = 1.6 if m >= 10_000 else None
    return [
        Row("Algorithm 1 / floor, two threads", case.where, two / floor_s, most=2.2),
        Row("one thread / two", case.where, one / two, least=least, seconds=two / case.n),
    ]


def using(m: int, r: int, repeats: int) -> list[Row]:
    """What is done with complete rows once there is a dictionary, beside the product X @ C."""
    rng = np.random.default_rng(0)
    X = rng.random((max(512, min(20_000, 10_000_000 // m)), m))
    state = broyden.init(X, r, ALL_CONFIG, seed=0)
    product, coded, filled = interleaved(
        [lambda: X @ state.C, lambda: encode(state, X), lambda: fill(state, X)], repeats, of=min
    )
    most = 1.6 if m >= 1000 else 3.0
    where = f"{m} x {r}"
    return [
        Row("encode / X @ C", where, coded / product, most, seconds=coded / len(X)),
        Row("fill / X @ C, nothing missing", where, filled / product, most),
    ]


def through_the_estimator(m: int, r: int, repeats: int) -> list[Row]:
    """`fit` beside `partial_fit` of the same rows, and `score` beside the product X @ C."""
    rng = np.random.default_rng(0)
    n = max(200, min(20_000, 40_000_000 // m))
    X = rng.random((n, m))
    options = {"random_state": 0, **ALL_ROWS, "max_iter": 1}
    part, plain, shuffled = interleaved(
        [
            lambda: OMFB(r, **options).partial_fit(X),
            lambda: OMFB(r, shuffle=False, **options).fit(X),
            lambda: OMFB(r, shuffle=True, **options).fit(X),
        ],
        repeats,
        of=min,
    )
    rows = [
        Row("fit / partial_fit", f"{m} x {r}, in order", plain / part, most=1.15),
        Row("fit / partial_fit", f"{m} x {r}, shuffled", shuffled / part, most=1.15),
    ]
    if m <= 4096:
        fitted = OMFB(r, **options).fit(X)
        C = np.ascontiguousarray(fitted.components_.T)
        product, scored, coded = interleaved(
            [lambda: X @ C, lambda: fitted.score(X), lambda: fitted.transform(X)], repeats, of=min
        )
        most = 1.6 if m >= 1000 else 3.0
        rows.append(Row("OMFB.score / X @ C", f"{m} x {r}", scored / product, most))
        rows.append(Row("OMFB.transform / X @ C", f"{m} x {r}", coded / product, most))
    return rows


def small_rows(repeats: int) -> list[Row]:
    rng = np.random.default_rng(0)
    rows = []
    for m, factor in itertools.product((10, 30, 100), (0.0, 1.0)):
        X = rng.random((10_000, m))
        state = broyden.init(X, 5, BroydenConfig(forget_factor=factor), seed=0)
        model = OMFB(5, forget_factor=factor, random_state=0)
        free_model = OnlineFactorAnalysis(5, max_iter=1, random_state=0)
        fits = [lambda e=e, X=X: e.fit(X) for e in (model, free_model)]
        stepped, fitted, free = interleaved(
            [lambda s=state, X=X: broyden.step(s, X), *fits], repeats, of=min
        )
        where = f"{m} x 5, forget_factor={factor:g}"
        rows.append(Row("µs a row, step", where, 1e6 * stepped / len(X), most=3.0))
        rows.append(Row("µs a row, fit", where, 1e6 * fitted / len(X), most=3.0))
        if factor:
            rows.append(Row("µs a row, fit with nothing set", f"{m} x 5", 1e6 * free / len(X)))
    return rows


def more_components_than_features(repeats: int) -> list[Row]:
    X = np.random.default_rng(0).random((500, 20))
    rows = []
    for factor in (0.0, 1.0):
        state = broyden.init(X, 30, BroydenConfig(forget_factor=factor), seed=0)
        (taken,) = interleaved([lambda s=state: broyden.step(s, X)], repeats, of=min)
        where = f"20 x 30, forget_factor={factor:g}"
        rows.append(Row("µs a row, m below r", where, 1e6 * taken / len(X), most=20.0))
    return rows


def missing(m: int, r: int, most: float, repeats: int) -> list[Row]:
    """Rows that miss entries beside complete ones: at random, and all rows the same."""
    rng = np.random.default_rng(0)
    Y = rng.random((256, m))
    scattered, outage = Y.copy(), Y.copy()
    scattered[rng.random(Y.shape) < 0.1] = np.nan
    outage[:, m // 10 : m // 5] = np.nan
    state = broyden.init(Y, r, ALL_CONFIG, seed=0)
    functions = [lambda X=X: broyden.step(state, X) for X in (Y, scattered, outage)]
    functions += [lambda X=X: encode(state, X) for X in (Y, scattered, outage)]
    whole, random, same, code, code_random, code_same = interleaved(functions, repeats, of=min)
    where = f"{m} x {r}, 10 % missing"
    return [
        Row("missing at random / complete", where, random / whole, most, seconds=random / 256),
        Row("missing alike / complete", where, same / whole, most=1.5, seconds=same / 256),
        Row("transform, missing at random / complete", where, code_random / code),
        Row("transform, missing alike / complete", where, code_same / code),
    ]


def with_missing(m: int, r: int, repeats: int) -> list[Row]:
    rng = np.random.default_rng(0)
    Y = rng.random((64, m))
    Y[rng.random(Y.shape) < 0.25] = np.nan
    state = broyden.init(Y, r, BroydenConfig(), init=rng.random((r, m)))
    ours, loop = interleaved(
        [lambda: broyden.step(state, Y), lambda: naive(Y[:8], state.C, 1.0)], repeats
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
        state = broyden.init(X, r, BroydenConfig(forget_factor=1.0, ridge=0.1), seed=0)
        # The state is used up and replaced, as a stream does: no copy of the dictionary.
        holder = [broyden.step(state, X)[0]]

        def learn() -> None:
            holder[0] = broyden.step(holder[0], X, reuse=True)[0]

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
    model = OMFB(r, random_state=0, **ALL_ROWS).partial_fit(Y)
    found = OnlineFactorAnalysis(r, random_state=0).partial_fit(Y)
    C, k = rng.random((m, r)), 1e-9 * rng.random(r)
    rows = [Y[i : i + 1] for i in range(100)]

    def learn(model: OMFB | OnlineFactorAnalysis) -> None:
        for row in rows:
            model.partial_fit(row)

    def least() -> None:
        for row in rows:
            C.T @ row[0]
            dger(1.0, k, row[0], a=C.T, overwrite_a=True)

    ours, free, unavoidable = (
        s / 100 for s in interleaved([lambda: learn(model), lambda: learn(found), least], repeats)
    )
    what = "partial_fit of a row, µs above C.T @ y and a rank-one update"
    return [
        Row(what, f"{m} x {r}", 1e6 * (ours - unavoidable), most=150.0, seconds=ours),
        Row(f"{what}, nothing set", f"{m} x {r}", 1e6 * (free - unavoidable), seconds=free),
    ]


def single_rows_with_nothing_set(m: int, n: int, repeats: int, busy: bool) -> Row:
    """`partial_fit` of rows with 10 % missing, one by one, once 1000 have been learned."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1000 + n, 5)) @ rng.standard_normal((5, m))
    X += 0.1 * rng.standard_normal(X.shape)
    X[rng.random(X.shape) < 0.1] = np.nan
    model = OnlineFactorAnalysis(random_state=0).partial_fit(X[:1000])
    rows = [X[i : i + 1] for i in range(1000, 1000 + n)]

    def learn() -> None:
        for row in rows:
            model.partial_fit(row)

    with busy_process() if busy else nullcontext():
        (taken,) = interleaved([learn], repeats, of=statistics.median if busy else min)
    where = f"{m} features, 10 % missing" + (", beside a busy process" if busy else "")
    return Row("µs of partial_fit of a row, nothing set", where, 1e6 * taken / n, seconds=taken / n)


def small_table(repeats: int) -> list[Row]:
    """Fit and fill a table as small as many are, its kernels being compiled."""
    from sklearn.datasets import load_diabetes

    X = load_diabetes().data.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    (taken,) = interleaved([lambda: OMFBImputer(random_state=0).fit_transform(X)], repeats, of=min)
    return [Row("seconds to fit and fill", "442 x 10, 10 % missing", taken, seconds=taken)]


STARTS = {
    "import omfb": "import omfb",
    "from omfb import OMFB": "from omfb import OMFB",
    "import sklearn.base (for comparison)": "import sklearn.base",
}
FIT = """
import sys, time
import numpy as np
from omfb import OMFB, OnlineFactorAnalysis
X = np.random.default_rng(0).random((60, 50))
Z = X.copy()
Z[::3, 5:9] = np.nan
taken = []
for kind in sys.argv[1:]:
    data = (Z if "missing" in kind else X).astype("f4" if "float32" in kind else "f8")
    options = {"batch_size": 10} if "batch" in kind else {}
    options |= {"smooth": 1, "shuffle": False} if "smooth" in kind else {}
    start = time.perf_counter()
    if "nothing set" in kind:
        model = OnlineFactorAnalysis(5)
    else:
        model = OMFB(5, forget_factor=1, ridge=1, **options)
    model.fit(data).transform(data)
    taken.append(time.perf_counter() - start)
print(sum(taken))
"""
KINDS = ["complete", "missing", "batch", "batch missing", "smooth", "smooth batch missing",
         "float32", "float32 missing", "float32 batch missing"]  # fmt: skip


def starting() -> list[Row]:
    """Seconds of a new process, less those of an empty one; and the first fit, cold and cached."""

    def python(code: str, cache: str, *arguments: str) -> str:
        command = [sys.executable, "-c", code, *arguments]
        env = {"NUMBA_CACHE_DIR": cache, "PATH": "", "PYTHONPATH": os.environ.get("PYTHONPATH", "")}
        return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout

    rows = []
    with tempfile.TemporaryDirectory() as cache:
        empty, *taken = interleaved(
            [lambda code=code: python(code, cache) for code in ["pass", *STARTS.values()]], 3
        )
        for name, seconds in zip(STARTS, taken, strict=True):
            most = 1.0 if name == "import omfb" else None
            rows.append(Row(f"seconds of `{name}`", "new process", seconds - empty, most=most))
        cold, cached = (float(python(FIT, cache, "complete")) for _ in range(2))
    what = "seconds of the first fit and transform"
    rows.append(Row(what, "complete, compiling", cold, most=10.0))
    rows.append(Row(what, "complete, compiled kernels on disk", cached, most=1.5))
    found = ["complete nothing set", "missing nothing set"]
    measured = (("missing", ["missing"], 10.0), ("all kinds", KINDS, 20.0),
                ("nothing set", found, None))  # fmt: skip
    for name, kinds, most in measured:
        with tempfile.TemporaryDirectory() as cache:
            rows.append(Row(what, f"{name}, compiling", float(python(FIT, cache, *kinds)), most))
    return rows


MEMMAP = """
import sys, numpy as np
from omfb import OnlineFactorAnalysis
X = np.load(sys.argv[1], mmap_mode="r")
OnlineFactorAnalysis(20, shuffle=sys.argv[2] == "True", random_state=0).fit(X)
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
    parser.add_argument("--repeats", type=int, default=21, help="of each timing (default 21)")
    parser.add_argument("--out", type=Path, help="write the table as JSON")
    options = parser.parse_args()
    options.quick |= options.tiny
    repeats = 1 if options.tiny else 3 if options.quick else options.repeats
    m, r = QUICK_SHAPES[0] if options.quick else SHAPES[0]
    rows: list[Row] = []
    for shape in QUICK_SHAPES if options.quick else SHAPES:
        for dtype in (np.float64, np.float32):
            rows += against_floor(*shape, dtype, repeats)
    for shape in QUICK_SHAPES if options.quick else WIDE_SHAPES:
        rows += in_two_threads(*shape, repeats, busy=False)
        rows += in_two_threads(*shape, repeats, busy=True)
    with LIBRARIES.limit(limits=1):
        for shape in QUICK_SHAPES if options.quick else [(100, 30), (1000, 30), (4096, 30)]:
            rows += using(*shape, repeats)
        wide = [] if options.quick else [(1000, 30), (4096, 30), (300_000, 20)]
        for shape in [(100, 30), *wide]:
            rows += through_the_estimator(*shape, min(repeats, 7))
        rows += small_rows(min(repeats, 5)) if not options.tiny else []
        rows += more_components_than_features(min(repeats, 5))
        rows += missing(m, r, 3.0, repeats)
        rows += missing(4096, 100, 4.0, repeats) if not options.quick else []
        rows += with_missing(m, r, repeats)
        rows += single_row(m, r, repeats)
        rows += small_table(min(repeats, 7))
        rows += sparse(10_000 if options.quick else 100_000, r, repeats)
    n = 20 if options.tiny else 200
    for features, busy in itertools.product(SINGLE, (False, True)):  # with BLAS threads as usual
        rows.append(single_rows_with_nothing_set(features, n, min(repeats, 7), busy))
    if not options.tiny:  # a minute of starting processes
        rows += starting()
    rows += memory(0.002 if options.tiny else 0.05 if options.quick else 2.0)
    report(rows, environment(1), options.out)


if __name__ == "__main__":
    main()
