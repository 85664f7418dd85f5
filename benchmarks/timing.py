"""What the benchmarks share: interleaved timing, a table of ratios, what machine it was."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path


@dataclass(frozen=True)
class Row:
    """One measured number, and what was expected of it."""

    what: str
    where: str
    value: float
    most: float | None = None
    least: float | None = None
    seconds: float | None = None

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


def interleaved(functions: list[Callable[[], object]], repeats: int) -> list[float]:
    """Median seconds of each function; all are warmed up first, then called in turn."""
    for function in functions:
        function()
    seconds: list[list[float]] = [[] for _ in functions]
    for _ in range(repeats):
        for function, taken in zip(functions, seconds, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in seconds]


def environment(threads: int) -> dict[str, object]:
    """Versions and machine, as they go into every result."""
    packages = ("omfb", "numpy", "scipy", "numba", "scikit-learn")
    return {
        "python": platform.python_version(),
        **{name: version(name) for name in packages},
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "blas_threads": threads,
    }


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    names = (
        [line for line in info.read_text().splitlines() if "model name" in line]
        if info.exists()
        else []
    )
    return names[0].partition(":")[2].strip() if names else platform.processor()


def report(rows: list[Row], machine: dict[str, object], out: Path | None) -> None:
    """Print the table as Markdown; write it as JSON."""
    print("| what | where | measured | expected | µs each | |")
    print("|---|---|---:|---|---:|---|")
    for row in rows:
        each = "" if row.seconds is None else f"{1e6 * row.seconds:.1f}"
        mark = "" if not row.expected else "met" if row.met else "**not met**"
        print(f"| {row.what} | {row.where} | {row.value:.2f} | {row.expected} | {each} | {mark} |")
    if out is not None:
        table = [{**asdict(row), "met": row.met} for row in rows]
        out.parent.mkdir(parents=True, exist_ok=True)
        out.write_text(json.dumps({"machine": machine, "rows": table}, indent=1) + "\n")
