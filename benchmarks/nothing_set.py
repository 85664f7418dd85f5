"""How good omfb is with nothing set: error on hidden entries, intervals, and time beside 0.1.0.

What is hidden here was never looked at while the model was made. Every number is the mean over
several masks; the spread is from the least to the most.

    python benchmarks/nothing_set.py                          # half an hour
    python benchmarks/nothing_set.py --quick                  # small tables, one mask
    python benchmarks/nothing_set.py --set ratings            # one part
    python benchmarks/nothing_set.py --before ../omfb-0.1.0   # and time beside that source
"""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from beside import times
from data import AbsentError, Holes, faces, with_holes
from tables import (
    Table,
    biases,
    cmfrec_filled,
    cmfrec_settings,
    drifting,
    low_rank,
    oracle,
    ratings,
    rms,
    soft_impute,
)
from timing import Row, limited, measured, options, say, write

from omfb import OMFBImputer, OnlineFactorAnalysis

SEED = 20262001  # the first of those that say what is hidden; no constant was ever chosen by them
MASKS = {"tiny": 1, "quick": 1, "full": 3}
HELD = {"least": 87.0, "most": 93.0}


def seeds(size: str) -> range:
    return range(SEED, SEED + MASKS[size])


def fewer(n: int, size: str) -> int:
    """Rows of a generated table: all, or a part of them."""
    return n if size == "full" else max(120, n // (2 if size == "quick" else 10))


def row(what: str, where: str, values: Sequence[float], **bound: float) -> Row:
    """The mean of what was measured with several masks, and its spread."""
    found = Row(what, where, float(np.mean(values)), spread=tuple(values), **bound)
    say(f"{what}, {where}: {found.value:.4f} {found.expected} {'' if found.met else 'NOT MET'}")
    return found


def filled(X: Any, **given: Any) -> np.ndarray:
    return np.asarray(OMFBImputer(random_state=0, **given).fit_transform(X))


def held(model: OMFBImputer, X: np.ndarray, truth: np.ndarray, hidden: np.ndarray) -> float:
    """Percentage of the hidden entries that lie in their 90 % intervals."""
    low, high = model.interval(X, 0.9)
    return 100.0 * float(np.mean((low <= truth)[hidden] & (truth <= high)[hidden]))


# -- public panels ----------------------------------------------------------------------------


def panel(name: str, size: str, most: float, **given: Any) -> Iterator[Row]:
    """RMSE on the hidden entries of a panel, and the share that their intervals hold."""
    errors, shares = [], []
    for seed in seeds(size):
        problem: Holes = with_holes(name, size, seed)
        model = OMFBImputer(random_state=0, **given).fit(problem.X)
        errors.append(problem.error(model.transform(problem.X)))
        shares.append(held(model, problem.X, problem.truth, problem.hidden))
    how = ", ".join(f"{key}={value}" for key, value in given.items())
    where = f"{name}, {how}"
    yield row("RMSE", where, errors, most=most)
    yield row("% in 90 % intervals", where, shares, **HELD)


def panels(size: str) -> Iterator[Row]:
    yield from panel("faces, blocks", size, 0.0750, max_iter=2)
    yield from panel("faces, pixels", size, 0.0550, max_iter=4)
    yield from panel("Beijing air", size, 0.289, max_iter=1)
    yield from panel("METR-LA traffic", size, 0.577, max_iter=1)
    yield from panel("METR-LA traffic", size, 0.570, max_iter=1, temporal=True)
    yield from panel("METR-LA traffic", size, 0.60, max_iter=1, shuffle=False)
    yield from panel("METR-LA traffic", size, 0.60, max_iter=1, shuffle=False, temporal=True)
    # Bounds of series are figures of one mask, and masks differ by more than methods do.
    yield from of_the_bound("Beijing air", size, 0.289)
    yield from of_the_bound("METR-LA traffic", size, 0.577)
    yield from of_the_bound("METR-LA traffic", size, 0.570, temporal=True)
    yield from of_the_bound("METR-LA traffic", size, 0.60, shuffle=False)


def of_the_bound(name: str, size: str, most: float, **given: Any) -> Iterator[Row]:
    """One pass under the mask that the bound was measured with, in its units."""
    X = with_holes(name, size).truth
    X = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    rng = np.random.default_rng(1)
    hidden = np.zeros(X.shape, bool)
    while hidden.mean() < 0.1:
        column, first = rng.integers(X.shape[1]), rng.integers(len(X) - 20)
        hidden[first : first + 20, column] = True
    problem = Holes(name, np.where(hidden, np.nan, X), X, hidden & ~np.isnan(X), "runs")
    error = problem.error(filled(problem.X, max_iter=1, **given))
    how = ", ".join(f"{key}={value}" for key, value in {"max_iter": 1, **given}.items())
    yield row("RMSE", f"{name}, {how}, the mask of which the bound is", [error], most=most)


# -- generated tables -------------------------------------------------------------------------


def above(ours: float, other: float) -> float:
    """By how many percent an error is above another."""
    return 100.0 * (ours / other - 1.0)


def generated(size: str) -> Iterator[Row]:
    """Rank 5: above one who knows the loadings and the noise."""
    bounds = {0.1: 1.0, 0.5: 1.0, 0.9: 5.0}
    for n, m in ((2000, 200), (500, 50), (10_000, 100)):
        n, asked = fewer(n, size), (n, m) == (2000, 200)
        for missing, most in bounds.items():
            excess, shares = [], []
            for seed in seeds(size):
                table = low_rank(seed, n, m, missing)
                model = OMFBImputer(random_state=0).fit(table.X)
                excess.append(
                    above(table.error(model.transform(table.X)), table.error(oracle(table)))
                )
                shares.append(held(model, table.X, table.truth, table.hidden))
            where = f"{n} × {m}, rank 5, {100 * missing:.0f} % missing"
            yield row("% above the oracle", where, excess, **({"most": most} if asked else {}))
            yield row("% in 90 % intervals", where, shares, **(HELD if asked else {}))


def units(size: str) -> Iterator[Row]:
    """Columns with offsets and units from 1e-3 to 1e6, above the same in their true units."""
    excess = []
    for seed in seeds(size):
        table = low_rank(seed, fewer(2000, size))
        rng = np.random.default_rng(seed)
        unit = 10.0 ** rng.permutation(np.linspace(-3, 6, table.X.shape[1]))
        offset = 10.0 * rng.standard_normal(len(unit)) * unit
        raw = (filled(table.X * unit + offset) - offset) / unit
        excess.append(above(table.error(raw), table.error(filled(table.X))))
    yield row("% above the same data standardised", "units from 1e-3 to 1e6", excess, most=3.0)


def rare_column(size: str) -> Iterator[Row]:
    """One column missing in 80 % of the rows, above least squares of it on the codes."""
    for m in (50, 200):
        excess = []
        for seed in seeds(size):
            table = low_rank(seed, fewer(2000, size), m, 0.1)
            rng = np.random.default_rng(seed)
            hidden = table.hidden.copy()
            hidden[:, 0] = rng.random(len(hidden)) < 0.8
            table = table.hiding(hidden)
            model = OMFBImputer(random_state=0).fit(table.X)
            ours = rms((model.transform(table.X) - table.truth)[hidden[:, 0], 0])
            excess.append(above(ours, _solved_again(model, table)))
        where = f"column missing in 80 % of the rows, of {m}"
        yield row("% above solving it exactly", where, excess, most=10.0)


def _solved_again(model: OMFBImputer, table: Table) -> float:
    """RMSE of the first column by least squares on codes that do not see it."""
    without, hidden = table.X.copy(), table.hidden[:, 0]
    without[:, 0] = np.nan
    # Only of components in use: codes of the others are noise, which least squares would fit.
    codes = model.learner_.encode(without)[:, : model.n_components_]
    codes = np.column_stack([codes, np.ones(len(codes))])
    solution = np.linalg.lstsq(codes[~hidden], table.X[~hidden, 0], rcond=None)[0]
    return rms(codes[hidden] @ solution - table.truth[hidden, 0])


def long_block(size: str) -> Iterator[Row]:
    """One column missing for a fifth of the time, beside SoftImpute with its best threshold."""
    errors: dict[str, list[float]] = {"not temporal": [], "temporal=True": [], "SoftImpute": []}
    for seed in range(SEED, SEED + (8 if size == "full" else 2)):
        table = drifting(seed, fewer(1000, size))
        errors["not temporal"].append(table.error(filled(table.X)))
        errors["temporal=True"].append(table.error(filled(table.X, temporal=True)))
        thresholds = (0.3, 0.1, 0.03, 0.01, 0.003)
        errors["SoftImpute"].append(
            min(table.error(soft_impute(table.X, share)) for share in thresholds)
        )
    best = rms(np.array(errors["SoftImpute"]))
    for name in ("not temporal", "temporal=True"):
        ratio = rms(np.array(errors[name])) / best
        each = [a / b for a, b in zip(errors[name], errors["SoftImpute"], strict=True)]
        where = f"one column missing for 200 of 1000 rows, {name}"
        found = Row("RMSE / SoftImpute's", where, ratio, most=1.0, spread=tuple(each))
        say(f"{found}")
        yield found


def spikes(size: str) -> Iterator[Row]:
    """1 % of the seen entries off by ten deviations: rise of the error in percent."""

    def rise(X: np.ndarray, error: Callable[[np.ndarray], float], seed: int, **given: Any) -> float:
        rng = np.random.default_rng(seed)
        signs = rng.choice([-10.0, 10.0], X.shape) * np.nanstd(X, axis=0)
        spiked = np.where(rng.random(X.shape) < 0.01, X + signs, X).astype(X.dtype)
        return above(error(filled(spiked, **given)), error(filled(X, **given)))

    rises = []
    for seed in seeds(size):
        table = low_rank(seed, fewer(2000, size))
        rises.append(rise(table.X, table.error, seed))
    yield row("% rise by 1 % of spikes", "generated, rank 5, 25 % missing", rises, most=9.0)
    rises = []
    for seed in seeds(size):
        problem = with_holes("METR-LA traffic", size, seed)
        rises.append(rise(problem.X, problem.error, seed, max_iter=1))
    yield row("% rise by 1 % of spikes", "METR-LA traffic, one pass", rises, most=9.0)


# -- complete rows ----------------------------------------------------------------------------


def outside(X: np.ndarray, mean: np.ndarray, components: np.ndarray) -> float:
    """‖X − mean − projection‖ on the span of the components."""
    centred = X - mean
    Q = np.linalg.qr(np.asarray(components, float).T)[0]
    return float(np.linalg.norm(centred - (centred @ Q) @ Q.T))


def best_outside(X: np.ndarray, r: int) -> float:
    """The same of the centred SVD: the least that r components can leave."""
    centred = X - X.mean(axis=0)
    small = centred @ centred.T if len(X) < X.shape[1] else centred.T @ centred
    return float(np.sqrt(np.linalg.eigvalsh(small)[:-r].sum()))


def complete_tables(size: str) -> dict[str, tuple[np.ndarray, int]]:
    """Tables of about 1000 rows, and how many components."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_wine
    from sklearn.preprocessing import scale

    def decaying(seed: int, power: float) -> np.ndarray:
        rng = np.random.default_rng(seed)
        # IncrementalPCA's batches have five rows for each column: with 200 columns its first
        # batch would be the whole table, and what it does an SVD.
        sizes = np.arange(1, 101) ** -power
        mixing = np.linalg.qr(rng.standard_normal((100, 100)))[0]
        return (rng.standard_normal((fewer(1000, size), 100)) * sizes) @ mixing + 3.0

    return {
        "digits": (load_digits().data, 10),
        "breast cancer, standardised": (scale(load_breast_cancer().data), 10),
        "wine, standardised": (scale(load_wine().data), 5),
        "spectrum like 1/k": (decaying(SEED, 1.0), 20),
        "spectrum like 1/√k": (decaying(SEED, 0.5), 20),
    }


def complete(size: str) -> Iterator[Row]:
    """Above the centred SVD, in percent; beside IncrementalPCA, in the same percent."""
    from sklearn.decomposition import IncrementalPCA

    X = faces().astype(float)
    for r in (30,):
        best = best_outside(X, r)
        excess = []
        for seed in range(MASKS[size]):
            model = OnlineFactorAnalysis(r, max_iter=1, random_state=seed).fit(X)
            excess.append(above(outside(X, model.mean_, model.components_), best))
        yield row("% above the SVD", f"faces, r={r}, one pass", excess, most=0.6)
    for name, (X, r) in complete_tables(size).items():
        best = best_outside(X, r)
        peer = IncrementalPCA(r).fit(X)
        theirs = above(outside(X, peer.mean_, peer.components_), best)
        for passes in (None, 1):
            excess = []
            for seed in range(MASKS[size]):
                model = OnlineFactorAnalysis(r, max_iter=passes, random_state=seed).fit(X)
                excess.append(above(outside(X, model.mean_, model.components_), best))
            how = "nothing set" if passes is None else "one pass"
            where = f"{name}, {X.shape[0]} × {X.shape[1]}, r={r}, {how}"
            yield row("% above the SVD, IncrementalPCA's the bound", where, excess, most=theirs)


# -- ratings ----------------------------------------------------------------------------------


def tuned(known: Any, predict: Callable[..., np.ndarray], settings: list[dict[str, Any]]) -> float:
    """Error with the settings that are best on ratings hidden for this."""
    trial = known.again(2)
    errors = [trial.error(predict(trial, **one)) for one in settings]
    chosen = settings[int(np.argmin(errors))]
    say(f"chosen {chosen}")
    return float(known.error(predict(known, **chosen)))


def sparse_ratings(size: str) -> Iterator[Row]:
    """Generated ratings, as sparse rows: beside tuned offsets, and beside cmfrec tuned."""
    found: dict[str, list[float]] = {"OnlineFactorAnalysis()": [], "OMFBImputer()": []}
    plain, als = [], []
    for seed in seeds(size):
        known = ratings(seed, *((300, 400) if size != "full" else (943, 1682)))
        for make in (OnlineFactorAnalysis, OMFBImputer):
            name = f"{make.__name__}()"
            model = make(random_state=0).fit(known.matrix())
            found[name].append(known.error(np.asarray(model.complete(known.matrix()))))
        strengths = [{"strength": s} for s in (2.0, 4.0, 8.0, 16.0)]
        plain.append(tuned(known, biases, strengths))
        try:
            als.append(tuned(known, cmfrec_filled, list(cmfrec_settings())))
        except ImportError as reason:
            say(f"no cmfrec: {reason}")
    yield row("RMSE", "ratings, tuned offsets", plain)
    if als:
        yield row("RMSE", "ratings, cmfrec tuned", als)
    for name, errors in found.items():
        yield row("RMSE", f"ratings, {name}", errors, most=float(np.mean(plain)))
        if als:
            excess = [above(a, b) for a, b in zip(errors, als, strict=True)]
            yield row("% above cmfrec tuned", f"ratings, {name}", excess, most=1.0)


PARTS: dict[str, Callable[[str], Iterator[Row]]] = {
    "generated": generated, "units": units, "rare column": rare_column,
    "long block": long_block, "complete": complete, "ratings": sparse_ratings,
    "panels": panels, "spikes": spikes,
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    chosen = options(__doc__, "nothing_set", argv, "set", "before")
    parts = {**PARTS, "time": lambda size: times(size, chosen.before, chosen.threads)}
    done: dict[str, Any] = json.loads(chosen.out.read_text()) if measured(chosen) else {}
    table: list[dict[str, Any]] = done.get("rows", [])
    absent: list[dict[str, Any]] = done.get("absent", [])
    there = {one["part"] for one in [*table, *absent]}
    for name, part in parts.items():
        if chosen.set not in (None, name) or name in there:
            continue
        start = time.perf_counter()
        try:
            with limited(chosen.threads):
                rows = list(part(chosen.size))
        except AbsentError as reason:
            absent.append({"part": name, "reason": str(reason)})
            continue
        if chosen.size != "full":  # what must be reached, must be with the full sizes
            rows = [replace(one, most=None, least=None) for one in rows]
        table.extend({**asdict(one), "met": one.met, "part": name} for one in rows)
        write(chosen.out, chosen, {"rows": table, "absent": absent})
        say(f"{name}: {time.perf_counter() - start:.0f} s")
    write(chosen.out, chosen, {"rows": table, "absent": absent})


if __name__ == "__main__":
    main()
