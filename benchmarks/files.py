"""What files and pipes cost beside the same fit in memory: ratios measured in one run.

Each fit runs in a process of its own, so that its peak memory is its own; kernels are warmed up
before the clock starts, and files are read once before, so that they are in the page cache.

    python benchmarks/files.py --out files.json          # minutes, and some 5 GB of disk
    python benchmarks/files.py --quick                   # seconds, small files
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from timing import Row, environment, report

N_FEATURES, N_COMPONENTS = 1000, 30
# Of a text file, ten times as long for the same rows, a part is enough.
TEXT_SHARE = 1 / 40

# What a child process runs: `seconds`, then its peak memory in MB.
CHILD = """
import json, sys, time
import numpy as np
from threadpoolctl import threadpool_limits
from omfb import OnlineFactorAnalysis

kind, path, r, threads = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
with threadpool_limits(threads):
    dtype = np.float64 if path.endswith(".csv") else np.float32
    warm = np.random.default_rng(0).random((300, 40)).astype(dtype)
    OnlineFactorAnalysis(5).fit(warm)
    if kind != "memory":
        import pyarrow.csv, pyarrow.parquet  # takes a second, once
    if kind == "memory":
        data = np.load(path)
    elif kind == "parser":
        data = None
    else:
        data = path
    start = time.perf_counter()
    if kind == "parser":
        from pyarrow import csv
        options = csv.ConvertOptions(null_values=["", "NA", "NaN"])
        rows = sum(batch.num_rows for batch in csv.open_csv(
            path, csv.ReadOptions(block_size=1 << 20, autogenerate_column_names=True),
            convert_options=options))
    else:
        OnlineFactorAnalysis(r, max_iter=1, random_state=0).fit(data)
    seconds = time.perf_counter() - start
# Not ru_maxrss: that begins with what the parent process had.
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) / 1024
print(json.dumps([seconds, peak]))
"""


def blocks(n_rows: int) -> Iterator[np.ndarray]:
    """Rows near a low rank, some thousand at a time."""
    rng = np.random.default_rng(0)
    atoms = rng.standard_normal((N_COMPONENTS, N_FEATURES)).astype(np.float32)
    for start in range(0, n_rows, 20_000):
        n = min(20_000, n_rows - start)
        codes = rng.standard_normal((n, N_COMPONENTS), dtype=np.float32)
        yield codes @ atoms + rng.standard_normal((n, N_FEATURES), dtype=np.float32)


def write_files(folder: Path, n_rows: int) -> None:
    """The same rows as .npy and .parquet; a part of them as .npy and .csv, in float64."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    shape = (n_rows, N_FEATURES)
    array = np.lib.format.open_memmap(folder / "x.npy", "w+", np.float32, shape)
    schema = pa.schema([(f"f{i}", pa.float32()) for i in range(N_FEATURES)])
    at = 0
    # A dictionary of floats that are all different only takes time and room.
    with pq.ParquetWriter(folder / "x.parquet", schema, use_dictionary=False) as writer:
        for rows in blocks(n_rows):
            array[at : at + len(rows)] = rows
            at += len(rows)
            writer.write_table(pa.table(list(rows.T.copy()), schema=schema))
    array.flush()
    part = np.array(array[: max(200, round(n_rows * TEXT_SHARE))])
    np.savetxt(folder / "part.csv", part, fmt="%.6f", delimiter=",")
    np.save(folder / "part.npy", np.round(part.astype(np.float64), 6))


def measure(kind: str, path: Path, threads: int, repeats: int) -> tuple[float, float]:
    """Median seconds, and the largest peak memory in MB, of a child process."""
    words = [sys.executable, "-c", CHILD, kind, str(path), str(N_COMPONENTS), str(threads)]
    results = []
    for _ in range(repeats):
        done = subprocess.run(words, capture_output=True, text=True, check=True)
        results.append(json.loads(done.stdout))
    return statistics.median(s for s, _ in results), max(peak for _, peak in results)


def files(folder: Path, n_rows: int, threads: int, repeats: int) -> list[Row]:
    write_files(folder, n_rows)
    size = (folder / "x.npy").stat().st_size / 1e9
    where = f"{size:.2g} GB, m={N_FEATURES}, r={N_COMPONENTS}"
    memory, _ = measure("memory", folder / "x.npy", threads, repeats)
    npy, peak = measure("file", folder / "x.npy", threads, repeats)
    parquet, parquet_peak = measure("file", folder / "x.parquet", threads, repeats)
    text_memory, _ = measure("memory", folder / "part.npy", threads, repeats)
    text, text_peak = measure("file", folder / "part.csv", threads, repeats)
    parser, _ = measure("parser", folder / "part.csv", threads, repeats)
    part = f"{(folder / 'part.csv').stat().st_size / 1e9:.2g} GB of text, m={N_FEATURES}"
    return [
        Row(".npy / in memory", where, npy / memory, most=1.3, seconds=npy),
        Row("peak MB of .npy", where, peak, most=600),
        Row(".parquet / in memory", where, parquet / memory, most=2.0, seconds=parquet),
        Row("peak MB of .parquet", where, parquet_peak),
        Row(".csv / in memory", part, text / text_memory, seconds=text),
        Row("parser / what .csv adds", part, parser / (text - text_memory), least=0.5),
        Row("peak MB of .csv", part, text_peak),
    ]  # fmt: skip


def pipe(folder: Path, n_rows: int) -> list[Row]:
    """Rows a second through `complete - --learn`, from its first line to its last."""
    from omfb import OnlineFactorAnalysis

    rng = np.random.default_rng(0)
    X = rng.standard_normal((n_rows, 10)) @ rng.standard_normal((10, 100))
    X += 0.1 * rng.standard_normal(X.shape)
    OnlineFactorAnalysis(10, random_state=0).fit(X).save(folder / "m.omfb")
    X[rng.random(X.shape) < 0.1] = np.nan
    text = "\n".join(",".join("" if v != v else f"{v:.6f}" for v in row) for row in X)
    (folder / "x.csv").write_text(text + "\n")
    words = ["complete", "-", "-m", str(folder / "m.omfb"), "--learn", "-q"]
    with (folder / "x.csv").open() as source:
        process = subprocess.Popen(
            [sys.executable, "-m", "omfb", *words], stdin=source, stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline()
        start = time.perf_counter()
        count = sum(1 for _ in process.stdout)
        seconds = time.perf_counter() - start
        assert process.wait() == 0
    where = "100 values, r=10, 10 % missing"
    return [Row("rows/s of complete --learn", where, count / seconds, least=2000, seconds=seconds)]


def checkpoints(folder: Path, m: int, repeats: int) -> list[Row]:
    """What a checkpoint every 30 s costs."""
    from omfb import Learner
    from omfb.learner.checkpoints import Checkpoints, FitPosition

    learner = Learner("broyden", 50)
    learner.learn(np.random.default_rng(0).random((200, m)))
    place = FitPosition.first(np.random.RandomState(0), m)
    saver = Checkpoints(folder / "c.omfb", "30s", {})
    taken = []
    for _ in range(repeats):
        start = time.perf_counter()
        saver.save(learner.snapshot(), place)
        taken.append(time.perf_counter() - start)
    share = statistics.median(taken) / 30.0
    size = (folder / "c.omfb").stat().st_size / 1e6
    where = f"m={m}, r=50: {size:.3g} MB"
    return [Row("share of a checkpoint every 30 s", where, share, most=0.02, seconds=share * 30)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small files, seconds")
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)  # the smoke test
    parser.add_argument("--threads", type=int, default=1, help="BLAS threads (default 1)")
    parser.add_argument("--folder", type=Path, help="where to write the files (default: temporary)")
    parser.add_argument("--out", type=Path, help="write the table as JSON")
    options = parser.parse_args()
    small = options.quick or options.tiny
    n_rows = 500 if options.tiny else 20_000 if options.quick else 500_000
    repeats = 1 if options.tiny else 3
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        rows = files(folder, n_rows, options.threads, repeats)
        rows += pipe(folder, 200 if options.tiny else 4000 if small else 20_000)
        rows += checkpoints(folder, 1000 if small else 100_000, repeats)
    report(rows, environment(options.threads), options.out)


if __name__ == "__main__":
    main()
