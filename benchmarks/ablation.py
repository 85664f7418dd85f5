"""What each mechanism of the factor model buys: it is switched off by a field of `Hyper`.

    python benchmarks/ablation.py                    # all, some minutes; writes docs/ablation.md
    python benchmarks/ablation.py --only clipping    # one of them, printed only

Every case is filled by `OMFBImputer` as it is and without the mechanism. Masks are of this page's
own: no table of results is made with them, but constants were chosen with them.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import panels
from data import AbsentError

from omfb import OMFBImputer
from omfb.core.factor.hyper import Hyper

MASKS = (7, 101)
# Panels with more entries take too long for a page that is made often.
MOST_ENTRIES = 600_000
LEVEL = 0.9
HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "ablation.md"
RESULTS = HERE / "results" / "ablation.json"


@dataclass(frozen=True)
class Case:
    """A table with hidden entries whose truth is known."""

    name: str
    kind: str
    X: np.ndarray
    truth: np.ndarray
    hidden: np.ndarray
    temporal: bool


@dataclass(frozen=True)
class Outcome:
    """Root mean squared error, share of hidden entries in the 90 % intervals, seconds."""

    error: float
    coverage: float
    seconds: float


# -- cases --------------------------------------------------------------------------------------


def panel_cases() -> list[Case]:
    """The small panels of the benchmarks."""
    found = []
    for panel in panels.PANELS:
        if panel.large or panel.origin.startswith("a file"):
            continue
        for mask in MASKS:
            try:
                holes = panel.problem(mask)
            except AbsentError:
                continue
            if holes.X.size <= MOST_ENTRIES:
                kind = "series" if holes.in_time else "tables"
                found.append(
                    Case(panel.name, kind, holes.X, holes.truth, holes.hidden, holes.in_time)
                )
    return found


def _low_rank(rng: np.random.Generator, n: int, m: int, r: int, noise: float) -> np.ndarray:
    X = rng.standard_normal((n, r)) @ rng.standard_normal((r, m))
    return X + noise * rng.standard_normal((n, m))


def late_sensor(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A column that begins after 80 % of the rows, beside a near-duplicate."""
    X = _low_rank(rng, 600, 10, 3, 0.3)
    X[:, 1] = X[:, 0] + 0.1 * rng.standard_normal(len(X))
    hidden = np.zeros(X.shape, bool)
    hidden[: int(0.8 * len(X)), 1] = True
    return X, hidden


def drifting_late_sensor(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """The same where levels are random walks."""
    X = np.cumsum(_low_rank(rng, 600, 10, 3, 0.1), axis=0)
    X[:, 1] = X[:, 0] + X.std() * 0.02 * rng.standard_normal(len(X))
    hidden = np.zeros(X.shape, bool)
    hidden[: int(0.8 * len(X)), 1] = True
    return X, hidden


def zero_inflated(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Counts that are zero in nine of ten entries, beside ordinary columns."""
    X = _low_rank(rng, 1000, 12, 2, 0.3)
    X[:, 6:] = np.where(rng.random((1000, 6)) < 0.9, 0.0, rng.poisson(np.exp(X[:, 6:] / 2)) + 1.0)
    return X, rng.random(X.shape) < 0.1


def heavy_tails(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Noise of Student's t with three degrees of freedom."""
    X = _low_rank(rng, 1000, 15, 3, 0.0) + 0.5 * rng.standard_t(3, (1000, 15))
    return X, rng.random(X.shape) < 0.1


def storms(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Rare rows in which all columns rise far together."""
    X = _low_rank(rng, 1500, 20, 3, 0.3)
    struck = rng.random(1500) < 0.01
    X[struck] += 40.0 * (1.0 + 0.1 * rng.standard_normal((struck.sum(), 20)))
    return X, rng.random(X.shape) < 0.1


def level_changes(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Columns whose level jumps for good."""
    X = _low_rank(rng, 1500, 12, 3, 0.3)
    for column in range(4):
        X[rng.integers(300, 1200) :, column] += 15.0
    return X, rng.random(X.shape) < 0.1


def rare_columns(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Columns with some ten entries, beside full ones."""
    X = 5.0 + _low_rank(rng, 300, 20, 3, 0.3)
    hidden = np.zeros(X.shape, bool)
    hidden[:, :6] = rng.random((300, 6)) > 0.04
    return X, hidden


def constant_columns(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Ten columns beside as many that never vary."""
    X = np.hstack([_low_rank(rng, 400, 10, 3, 0.3), np.full((400, 10), 7.0)])
    hidden = rng.random(X.shape) < 0.1
    hidden[:, 10:] = False
    return X, hidden


GENERATED: tuple[Callable[[np.random.Generator], tuple[np.ndarray, np.ndarray]], ...] = (
    late_sensor, drifting_late_sensor, zero_inflated, heavy_tails, storms, level_changes,
    rare_columns, constant_columns,
)  # fmt: skip


def generated_cases() -> list[Case]:
    """Tables made to need a mechanism."""
    found = []
    for make in GENERATED:
        for mask in MASKS:
            truth, hidden = make(np.random.default_rng(mask))
            truth = (truth - truth.mean(axis=0)) / np.maximum(truth.std(axis=0), 1e-9)
            X = np.where(hidden, np.nan, truth)
            found.append(Case(make.__name__, "generated", X, truth, hidden, False))
    return found


# -- mechanisms ---------------------------------------------------------------------------------

OFF: dict[str, Hyper] = {
    "robust head": replace(Hyper(), spike_limit=np.inf),
    "clipping": replace(Hyper(), clip_limit=1e12),
    "dropping outliers": replace(Hyper(), outlier_gain=2.0),
    "changes of level": replace(Hyper(), level_change=2**60),
    "first noise": replace(Hyper(), first_noise=1.0),
    "shrunk means": replace(Hyper(), few_entries=0),
    "noise prior": replace(Hyper(), noise_prior=1e-6),
    "noise floor": replace(Hyper(), least_noise=0.0),
    "fading": replace(Hyper(), fade=(0.0, 0.0)),
    "weight of further passes": replace(Hyper(), max_passes_weight=1e9),
    "autoregression of codes and residuals": replace(Hyper(), temporal_gain=2.0),
    "univariate AR": replace(Hyper(), series_gain=2.0, series_prior=1e12),
    "variational rounds": replace(Hyper(), refine_rounds=(0, 0)),
    "temper": replace(Hyper(), max_temper=1.0),
    "shrinking weak components": replace(Hyper(), weak_information=0.0),
}
"""A mechanism, and the constants that switch it off."""


def imputer(hyper: Hyper, temporal: bool) -> OMFBImputer:
    """An imputer with these constants."""

    class Ablated(OMFBImputer):
        def _config(self, temporal: bool):
            return replace(super()._config(temporal), hyper=hyper)

    return Ablated(temporal=temporal, random_state=0)


def measured(case: Case, hyper: Hyper) -> Outcome:
    """What an imputer with these constants makes of a case."""
    began = time.process_time()
    model = imputer(hyper, case.temporal).fit(case.X)
    filled = model.complete(case.X)
    seconds = time.process_time() - began
    low, high = model.interval(case.X, LEVEL)
    hidden, truth = case.hidden, case.truth
    error = float(np.sqrt(np.mean((filled - truth)[hidden] ** 2)))
    inside = (low <= truth) & (truth <= high)
    return Outcome(error, float(inside[hidden].mean()), seconds)


# -- the page -----------------------------------------------------------------------------------


def compared(before: list[Outcome], after: list[Outcome], cases: list[Case], kind: str) -> dict:
    """Error without a mechanism beside that with it, over the cases of a kind."""
    which = [at for at, case in enumerate(cases) if case.kind == kind]
    ratios = np.array([after[at].error / before[at].error for at in which])
    off = np.mean([abs(after[at].coverage - LEVEL) > 0.05 for at in which])
    seconds = sum(after[at].seconds for at in which) / sum(before[at].seconds for at in which)
    worst = int(np.argmax(ratios))
    return {
        "error": float(np.exp(np.mean(np.log(ratios)))),
        "worst": float(ratios[worst]),
        "worst case": cases[which[worst]].name,
        "coverage off": float(off),
        "seconds": float(seconds),
    }


KINDS = ("tables", "series", "generated")


def page(results: dict[str, dict[str, dict]]) -> str:
    """The results as a page of the docs."""
    lines = [
        "# What each mechanism buys", "",
        "`python benchmarks/ablation.py` wrote this page. Each row switches one mechanism off, by "
        "fields of `Hyper` (`src/omfb/core/factor/hyper.py`). Errors are those without the "
        "mechanism over those with it: the geometric mean over the cases, and the largest with its "
        "name. *off* is the share of cases whose 90 % intervals hold less than 85 or more than "
        "95 %.", "",
        "| switched off | "
        + " | ".join(f"{kind} | worst | off" for kind in KINDS)
        + " | seconds |",
        "|---|" + "---:|---|---:|" * len(KINDS) + "---:|",
    ]  # fmt: skip
    for name, by_kind in results.items():
        cells = []
        for kind in KINDS:
            part = by_kind[kind]
            worst = f"{part['worst']:.2f} ({part['worst case'].replace('_', ' ')})"
            cells += [f"{part['error']:.3f}", worst, f"{part['coverage off']:.0%}"]
        seconds = np.mean([by_kind[kind]["seconds"] for kind in KINDS])
        lines.append(f"| {name} | " + " | ".join(cells) + f" | {seconds:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="a mechanism, or several with commas")
    parser.add_argument("--page", action="store_true", help="write the page with --only, too")
    parser.add_argument("--cases", action="store_true", help="print every case")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    chosen = arguments.only.split(",") if arguments.only else list(OFF)
    cases = panel_cases() + generated_cases()
    measured(cases[0], Hyper())  # compiles
    before = [measured(case, Hyper()) for case in cases]
    if arguments.cases:
        for case, outcome in zip(cases, before, strict=True):
            print(
                f"{case.name:25} {outcome.error:.4f} {outcome.coverage:.3f} {outcome.seconds:.2f}"
            )
    results = {"nothing": {kind: compared(before, before, cases, kind) for kind in KINDS}}
    for name in chosen:
        after = [measured(case, OFF[name]) for case in cases]
        results[name] = {kind: compared(before, after, cases, kind) for kind in KINDS}
        print(name, json.dumps(results[name]), flush=True)
        if arguments.cases:
            for case, one, other in zip(cases, before, after, strict=True):
                print(f"  {case.name:25} {other.error / one.error:.3f} {other.coverage:.3f}")
    if arguments.only and RESULTS.exists():
        results = {**json.loads(RESULTS.read_text()), **results}
    if not arguments.only or arguments.page:
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
        PAGE.write_text(page(results))


if __name__ == "__main__":
    main()
