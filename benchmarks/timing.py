"""What the benchmarks share: interleaved timing, a table of ratios, what machine it was."""

import argparse
import hashlib
import json
import math
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numba
from threadpoolctl import threadpool_limits

RESULTS = Path(__file__).resolve().parent / "results"
# A snapshot is judged when so much more time has passed than at the last one: judging is slow.
GROWTH = 1.25


@dataclass(frozen=True)
class Row:
    """One measured number, and what was expected of it."""

    what: str
    where: str
    value: float
    most: float | None = None
    least: float | None = None
    seconds: float | None = None
    spread: tuple[float, ...] = ()

    @property
    def met(self) -> bool:
        """Whether the number is as expected."""
        return (self.most is None or self.value <= self.most) and (
            self.least is None or self.value >= self.least
        )

    @property
    def expected(self) -> str:
        """The expectation in words."""
        if self.most is not None:
            return f"at most {self.most:g}"
        return f"at least {self.least:g}" if self.least is not None else ""


def interleaved(
    functions: list[Callable[[], object]],
    repeats: int,
    of: Callable[[Sequence[float]], float] = statistics.median,
    pause: float = 0.0,
) -> list[float]:
    """Median seconds of each function (or `of`); all are warmed up first, then called in turn.

    After a product in several threads OpenBLAS's own spin for a tenth of a second, on a core that
    the next function needs: `pause` waits for that, and for as long the function then is called
    without being timed, so that its own threads are awake and each on its core.
    """
    for function in functions:
        function()
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, taken in zip(functions, seconds, strict=True):
            time.sleep(pause)
            warm = time.perf_counter() + pause
            while time.perf_counter() < warm:
                function()
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [of(taken) for taken in seconds]


PACKAGES = ("omfb", "numpy", "scipy", "numba", "scikit-learn")
PEERS = (
    "spams-bin", "gensim", "cmfrec", "NonnegMFPy", "pysubtracking", "statsmodels", "river",
    "vega_datasets",
)  # fmt: skip


def environment(threads: int) -> dict[str, object]:
    """Versions and machine, as they go into every result."""
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        **{name: found for name in PEERS if (found := _version(name))},
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "blas_threads": threads,
    }


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return names[0].partition(":")[2].strip() if names else platform.processor()


def shown(seconds: float) -> str:
    """Seconds in a unit that suits them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size or unit == "µs":
            break
    return f"{seconds / size:.3g} {unit}"


def report(rows: list[Row], machine: dict[str, object], out: Path | None) -> None:
    """Print the table as Markdown; write it as JSON."""
    print("| what | where | measured | expected | takes | |")
    print("|---|---|---:|---|---:|---|")
    for row in rows:
        each = "" if row.seconds is None else shown(row.seconds)
        mark = "" if not row.expected else "met" if row.met else "**not met**"
        print(f"| {row.what} | {row.where} | {row.value:.2f} | {row.expected} | {each} | {mark} |")
    if out is not None:
        table = [{**asdict(row), "met": row.met} for row in rows]
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"machine": machine, "rows": table}, indent=1) + "\n")


# -- contests: what complete.py, holes.py, drift.py and scaling.py share ----------------------


def options(description: str, name: str, argv: Sequence[str] | None, *more: str) -> Any:
    """What every benchmark asks on its command line; `more` are hidden names of strings."""
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--quick", dest="size", action="store_const", const="quick",
                        default="full", help="small sizes, half a minute")  # fmt: skip
    parser.add_argument("--tiny", dest="size", action="store_const", const="tiny",
                        help=argparse.SUPPRESS)  # fmt: skip
    parser.add_argument("--threads", type=int, default=1, help="threads for all (default 1)")
    parser.add_argument("--out", type=Path, default=RESULTS / f"{name}.json", help="JSON to write")
    for hidden in more:
        parser.add_argument(f"--{hidden}", help=argparse.SUPPRESS)
    return parser.parse_args(argv)


@contextmanager
def limited(threads: int) -> Iterator[None]:
    """The same number of threads for all; everything that has threads must be imported before."""
    before = numba.get_num_threads()
    numba.set_num_threads(min(threads, numba.config.NUMBA_NUM_THREADS))
    with threadpool_limits(threads), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers are stopped before they converge, and say so
        yield
    numba.set_num_threads(before)


Snapshot = Callable[[], Any]
Judge = Callable[[Snapshot], float]  # lower is better


class Point(NamedTuple):
    """How good a contestant was, after so much time and so many steps; lower is better."""

    seconds: float
    score: float
    steps: int


Curve = list[Point]


def race(steps: Iterator[Snapshot], judge: Judge, limit: float, enough: float = -math.inf) -> Curve:
    """Seconds and score of the snapshots that a contestant yields while it learns.

    Seconds are of the processor: what else the machine does is not counted, nor is judging. Ends
    when the steps do, after `limit` seconds, or when the score is good enough.
    """
    curve: Curve = []
    seconds, judged = 0.0, 0.0
    for done in count(1):
        start = time.process_time()
        snapshot = next(steps, None)
        seconds += time.process_time() - start
        last = seconds > limit
        if snapshot is None:
            break
        if seconds >= GROWTH * judged or last:
            judged = seconds
            score = judge(snapshot)
            curve.append(Point(seconds, score, done))
            last = last or score <= enough or not math.isfinite(score)
        if last:
            break
    return curve


def replay(steps: Iterator[Snapshot], judged: Curve) -> Curve:
    """The same steps once more with nothing in between: a judge leaves the caches cold."""
    curve: Curve = []
    done = 0
    start = time.process_time()
    for point in judged:
        for _ in range(point.steps - done):
            next(steps)
        done = point.steps
        curve.append(point._replace(seconds=time.process_time() - start))
    return curve


def reached(curve: Curve, target: float) -> float:
    """Seconds until the score was at most the target; infinity if it never was."""
    return min((point.seconds for point in curve if point.score <= target), default=math.inf)


def spread(values: Sequence[float]) -> dict[str, float | int | None]:
    """Median, least and most; None where a number is not finite."""

    def known(value: float) -> float | None:
        return value if math.isfinite(value) else None

    return {
        "median": known(statistics.median(values)),
        "least": known(min(values)),
        "most": known(max(values)),
        "repeats": len(values),
    }


def resident(peak: bool) -> float:
    """Megabytes of this process in memory, now or at most so far."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss would start from the size of the process that started this one
        key = "VmHWM:" if peak else "VmRSS:"
        line = next(line for line in status.read_text().splitlines() if line.startswith(key))
        return int(line.split()[1]) / 1024
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


def cpu_seconds() -> float:
    """Seconds of the processor that this process and its threads took so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@cache
def source_digest() -> str:
    """Tells one state of omfb's source from another: its version and a digest of what it holds."""
    import omfb

    folder = Path(omfb.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.read_bytes())
    return f"{version('omfb')}+{digest.hexdigest()[:8]}"


def say(what: str) -> None:
    """Where a long benchmark is."""
    print(what, file=sys.stderr, flush=True)


def child(script: str, arguments: Sequence[str], timeout: float) -> dict[str, Any]:
    """What a benchmark prints as JSON in a process of its own, or the reason why it does not."""
    command = [sys.executable, script, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    except subprocess.TimeoutExpired:
        return {"reason": f"did not end within {timeout:.0f} s"}
    if done.returncode:
        return {"reason": (done.stderr.strip().splitlines() or ["it died"])[-1]}
    return json.loads(done.stdout.strip().splitlines()[-1])


def measured(chosen: Any) -> bool:
    """Whether a result is there, of this size and of this source of omfb."""
    if not chosen.out.exists():
        return False
    found = json.loads(chosen.out.read_text())
    same = (found.get("size"), found.get("source")) == (chosen.size, source_digest())
    if same:
        say(f"what is in {chosen.out} is not measured again")
    return same


def write(out: Path, chosen: Any, content: dict[str, Any]) -> None:
    """Write a result with its size and its machine."""
    out.parent.mkdir(parents=True, exist_ok=True)
    result = {"size": chosen.size, "source": source_digest(),
              "machine": environment(chosen.threads), **content}  # fmt: skip
    part = out.with_suffix(".part")
    part.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    part.replace(out)  # as a whole, or not at all
