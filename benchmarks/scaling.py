"""Scaling: seconds and memory for a row against features, rows, components, holes and threads.

python benchmarks/scaling.py
python benchmarks/scaling.py --quick
"""

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.sparse
from figures import Panel, draw
from timing import child, limited, measured, options, resident, spread, write

from omfb import OMFBImputer, broyden
from omfb.broyden import BroydenConfig

Step = Callable[[], int]  # learns from some rows, returns how many

# Of each axis: its values at each size, and what else is fixed.
AXES: dict[str, dict[str, Any]] = {
    "features": {
        "tiny": (100, 200), "quick": (1000, 10_000, 100_000),
        "full": (1000, 10_000, 100_000, 1_000_000),
    },
    "rows": {"tiny": (100, 200), "quick": (1000, 8000), "full": (1000, 10_000, 100_000)},
    "components": {"tiny": (5, 10), "quick": (5, 20, 80), "full": (5, 10, 20, 50, 100, 200)},
    "observed": {
        "tiny": (0.5, 1.0), "quick": (0.01, 0.1, 0.5, 1.0),
        "full": (0.01, 0.03, 0.1, 0.3, 0.5, 0.75, 0.9, 1.0),
    },
    "observed, sparse": {
        "tiny": (0.5,), "quick": (0.01, 0.1), "full": (0.01, 0.03, 0.1, 0.3, 0.5),
    },
    "observed, nothing set": {
        "tiny": (0.5,), "quick": (0.1, 0.5, 1.0), "full": (0.1, 0.3, 0.5, 0.75, 0.9, 1.0),
    },
    "observed, filling": {
        "tiny": (0.5,), "quick": (0.1, 0.5, 1.0), "full": (0.1, 0.3, 0.5, 0.75, 0.9, 1.0),
    },
    "threads": {"tiny": (1, 2), "quick": (1, 2), "full": (1, 2)},
    "threads, nothing set": {"tiny": (1, 2), "quick": (1, 2), "full": (1, 2)},
    "threads, filling": {"tiny": (1, 2), "quick": (1, 2), "full": (1, 2)},
}  # fmt: skip
FIXED = {"tiny": (100, 5), "quick": (10_000, 20), "full": (10_000, 20)}
# Features of the axes that are not about them: rows are many, threads need large products.
FEATURES = {"rows": 0.1, "threads": 10}
REPEATS = {"tiny": 1, "quick": 3, "full": 7}
IN_CHILDREN = ("features", "rows")


def rows_of(n: int, m: int, observed: float = 1.0, sparse: bool = False) -> Any:
    rng = np.random.default_rng(0)
    if sparse:
        return scipy.sparse.random(
            n, m, density=observed, format="csr", random_state=0, dtype=np.float32
        )
    X = rng.random((n, m), np.float32)
    if observed < 1:
        X[rng.random(X.shape, np.float32) > observed] = np.nan
    return X


def estimator(axis: str, value: float, size: str) -> Step:
    """`OMFBImputer` as it learns or fills; where the axis is threads, a quarter is missing."""
    m, r = FIXED[size]
    m //= 10  # tables have fewer columns than pictures have pixels
    X = rows_of(4 * m if size == "full" else m, m, 0.75 if axis.startswith("threads") else value)
    model = OMFBImputer(r, random_state=0).partial_fit(X)

    def use() -> int:
        model.transform(X) if axis.endswith("filling") else model.partial_fit(X)
        return len(X)

    return use


def stepper(axis: str, value: float, size: str) -> Step:
    """What is timed at one value of an axis."""
    if axis.endswith(("filling", "nothing set")):
        return estimator(axis, value, size)
    m, r = FIXED[size]
    m = int(m * FEATURES.get(axis, 1))
    if axis == "features":
        m = int(value)
    if axis == "components":
        r = int(value)
    holes = axis.startswith("observed")
    block = 60 if holes else int(np.clip(6 * r, 60, 2e8 / m))  # at most 800 MB of rows
    X = rows_of(block, m, value if holes else 1.0, axis.endswith("sparse"))
    # A little ridge: a row with few entries does not determine its code.
    holder = [
        broyden.init(X, r, BroydenConfig(forget_factor=1.0, ridge=0.1 if holes else 0.0), seed=0)
    ]
    times = int(np.ceil(value / block)) if axis == "rows" else 1

    def learn() -> int:
        for _ in range(times):
            holder[0] = broyden.step(holder[0], X, reuse=True)[0]
        return times * block

    return learn


def seconds(axis: str, size: str, threads: int) -> list[dict[str, Any]]:
    """Seconds for a row at each value of the axis, all values in turn."""
    values = AXES[axis][size]
    steps = [stepper(axis, value, size) for value in values]
    taken: list[list[float]] = [[] for _ in values]
    for turn in range(REPEATS[size] + 1):
        for value, step, mine in zip(values, steps, taken, strict=True):
            # Of the processor, as others may use the machine; threads save only time by the clock.
            clock = time.perf_counter if axis.startswith("threads") else time.process_time
            with limited(int(value) if axis.startswith("threads") else threads):
                start = clock()
                rows = step()
                each = (clock() - start) / rows
            if turn:  # the first is to warm up
                mine.append(each)
    return [{"value": v, "seconds": spread(t)} for v, t in zip(values, taken, strict=True)]


def memory(axis: str, value: float, size: str) -> dict[str, float]:
    """Peak memory of learning from blocks that come and go, above that of the imports."""
    m, r = FIXED[size]
    m = int(value) if axis == "features" else int(m * FEATURES.get(axis, 1))
    n = 120 if axis == "features" else int(value)
    config = BroydenConfig(forget_factor=1.0)
    state = broyden.step(broyden.init(rows_of(60, 50), r, config, seed=0), rows_of(60, 50))[0]
    before = resident(peak=False)
    state = broyden.init(rows_of(2 * r, m), r, config, seed=0)
    for _ in range(0, n, 60):
        state = broyden.step(state, rows_of(60, m), reuse=True)[0]
    return {"memory": resident(peak=True) - before}


def slope(points: list[tuple[float, float]]) -> float:
    """Of a straight line through the logarithms: y grows like x to this power."""
    xs, ys = np.log([x for x, _ in points]), np.log([y for _, y in points])
    return float(np.polyfit(xs, ys, 1)[0])


def fitted(axis: str, points: list[dict[str, Any]], key: str) -> float | None:
    """The slope over the larger half of the axis, where what is constant no longer shows."""
    known = []
    for point in points:
        y = point["seconds"]["median"] if key == "seconds" else point.get("memory")
        if y is not None and y > 0:
            known.append((point["value"], y))
    if axis.startswith("observed"):  # complete rows are learned by the block, another way
        known = [point for point in known if point[0] <= 0.5]
    elif axis != "rows":
        known = known[-max(2, (len(known) + 2) // 2) :]
    return slope(known) if len(known) > 1 else None


def measure(axis: str, chosen: Any) -> dict[str, Any]:
    points = seconds(axis, chosen.size, chosen.threads)
    if axis in IN_CHILDREN:
        size = [] if chosen.size == "full" else [f"--{chosen.size}"]
        for point in points:
            words = ["--axis", axis, "--value", str(point["value"]), *size]
            point |= child(__file__, words, timeout=120)
    m, r = FIXED[chosen.size]
    m = m // 10 if axis.endswith(("filling", "nothing set")) else int(m * FEATURES.get(axis, 1))
    one, two = (points[place]["seconds"]["median"] for place in (0, -1))
    return {
        "axis": axis,
        "m": None if axis == "features" else m,
        "r": None if axis == "components" else r,
        "points": points,
        "slope": None if axis.startswith("threads") else fitted(axis, points, "seconds"),
        "speedup": one / two if axis.startswith("threads") else None,
        "memory_slope": fitted(axis, points, "memory") if axis in IN_CHILDREN else None,
    }


def panels(found: list[dict[str, Any]]) -> list[Panel]:
    def line(one: dict[str, Any], scale: float = 1e6) -> tuple[list[float], list[float]]:
        points = one["points"]
        return [p["value"] for p in points], [scale * p["seconds"]["median"] for p in points]

    by_axis = {one["axis"]: one for one in found}
    each = "µs for a row"
    shown = [Panel(axis, axis, each, {"omfb": line(by_axis[axis])})
             for axis in ("features", "rows", "components")]  # fmt: skip
    kinds = {"omfb": "observed", "omfb, sparse": "observed, sparse"}
    lines = {name: line(by_axis[axis]) for name, axis in kinds.items()}
    shown.append(Panel("share observed", "share observed", each, lines))
    kinds = {"learning": "observed, nothing set", "filling": "observed, filling"}
    lines = {name: line(by_axis[axis]) for name, axis in kinds.items()}
    shown.append(Panel("nothing set", "share observed", each, lines))
    return shown


def main(argv: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, "scaling", argv, "axis", "value")
    if chosen.axis:
        with limited(chosen.threads):
            print(json.dumps(memory(chosen.axis, float(chosen.value), chosen.size)))
        return
    if measured(chosen):
        return
    found = [measure(axis, chosen) for axis in AXES]
    write(chosen.out, chosen, {"axes": found})
    draw(chosen.out.with_suffix(".svg"), panels(found))


if __name__ == "__main__":
    main()
