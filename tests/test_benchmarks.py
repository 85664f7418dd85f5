"""Every benchmark runs on tiny data, with whichever peers are there; the page follows from it."""

import argparse
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("matplotlib")

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
NAMES = ["nothing_set", "complete", "holes", "drift", "scaling", "floor", "files", "priors"]


def run(name: str, *arguments: str) -> None:
    file = BENCHMARKS / f"{name}.py"
    if not file.exists():
        pytest.skip(f"{file.name} is not there")
    done = subprocess.run(
        [sys.executable, str(file), *arguments], capture_output=True, text=True, env=os.environ
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_writes_its_numbers_and_its_figure(name: str, tmp_path: Path) -> None:
    out = tmp_path / f"{name}.json"
    run(name, "--tiny", "--out", str(out))
    result = json.loads(out.read_text())
    assert {"omfb", "numpy", "cpu", "blas_threads"} <= result["machine"].keys()
    if name in ("complete", "drift", "scaling"):
        assert out.with_suffix(".svg").read_text().startswith("<?xml")
    for found in result.get("sets", []):
        ours, *others = found["peers"]
        assert ours["name"] == "omfb"
        assert "reason" not in ours
        assert all({"reason", "times", "rmse"} & peer.keys() for peer in others)
    if name == "holes":
        ours = next(one for one in result["results"] if one["method"] == "omfb")
        assert {"rmse", "coverage", "crps", "learning_cpu", "memory"} <= ours.keys()
        assert all({"reason", "rmse"} & one.keys() for one in result["results"])
    if name == "nothing_set":
        assert all(np.isfinite(row["value"]) for row in result["rows"])
        assert {"% above the oracle", "% in 90 % intervals"} <= {r["what"] for r in result["rows"]}
    page = tmp_path / "RESULTS.md"
    run("page", "--results", str(tmp_path), "--out", str(page))
    alone = ("nothing_set", "scaling", "floor", "files", "priors")
    assert any(row in page.read_text() for row in ("| omfb", "| **omfb**")) or name in alone


def test_ratings_are_compared() -> None:
    run("ratings", "--tiny", "--peers", "omfb,offsets")


@pytest.fixture
def benchmark(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """A function that imports a module of the benchmarks."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module


def test_soft_impute_ends_where_the_update_of_its_paper_changes_nothing(benchmark) -> None:
    soft_impute = benchmark("tables").soft_impute
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 12))
    X[rng.random(X.shape) < 0.2] = np.nan
    missing = np.isnan(X)
    scaled = (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    level = 0.1 * np.linalg.norm(np.where(missing, 0.0, scaled), 2)
    for table in (X, X[:8]):  # tall, and wide
        filled = soft_impute(table, 0.1, rounds=2000)
        np.testing.assert_array_equal(np.isnan(filled), False)
        np.testing.assert_allclose(filled[~np.isnan(table)], table[~np.isnan(table)], rtol=1e-9)
    filled = soft_impute(X, 0.1, rounds=2000)
    Z = (filled - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)
    U, sizes, Vt = np.linalg.svd(Z, full_matrices=False)
    shrunk = (U * np.maximum(sizes - level, 0.0)) @ Vt
    np.testing.assert_allclose(Z[missing], shrunk[missing], atol=1e-3)


def naive_psmf(X, C, codes, rho, q, robust):
    """One pass of the paper's equations with matrices of all features, as they are written."""
    m, r = C.shape
    V, P, R, Q, freedom = 2.0 * np.eye(r), np.eye(r), rho * np.eye(m), q * np.eye(r), 1.8
    x = codes[-1]
    found = np.empty((len(X), r))
    for t, row in enumerate(X):
        M = np.eye(m)[~np.isnan(row)]
        y = M @ np.nan_to_num(row)
        P_bar, C_seen = P + Q, M @ C
        s = x @ V @ x
        eta = np.trace(M @ R @ M.T + C_seen @ P_bar @ C_seen.T) / m
        S = C_seen @ P_bar @ C_seen.T + M @ R @ M.T + s * np.eye(len(y))
        gain = P_bar @ C_seen.T @ np.linalg.inv(S)
        e = y - C_seen @ x
        C = C + M.T @ np.outer(e, V @ x) / (s + eta)
        V = V - np.outer(V @ x, V @ x) / (s + eta)
        P = P_bar - gain @ C_seen @ P_bar
        if robust:
            omega = (freedom + e @ np.linalg.inv(S) @ e) / (freedom + m)
            V = V * (freedom + e @ e / (s + eta)) / (freedom + m)
            P, Q, R, freedom = omega * P, omega * Q, omega * R, freedom + m
        x = x + gain @ e
        found[t] = x
    return found @ C.T


@pytest.mark.parametrize("robust", [False, True])
def test_psmf_follows_the_equations_of_its_paper(benchmark, robust: bool) -> None:
    psmf = benchmark("psmf").psmf
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 6))
    X[rng.random(X.shape) < 0.3] = np.nan
    start = np.random.default_rng(0)
    C, codes = start.random((6, 2)), start.random((30, 2))
    filled, deviations = psmf(X, rank=2, rho=1.0, q=0.1, passes=1, robust=robust, seed=0)
    np.testing.assert_allclose(filled, naive_psmf(X, C, codes, 1.0, 0.1, robust), rtol=1e-8)
    assert (deviations > 0).all()


def test_the_table_of_a_text_is_exchanged_between_its_markers(benchmark) -> None:
    page = benchmark("page")
    text = "a\n<!-- results -->\nold\n<!-- /results -->\nb\n"
    expected = "a\n<!-- results -->\nnew\n<!-- /results -->\nb\n"
    assert page.with_table(text, "new\n") == expected
    with pytest.raises(SystemExit, match="results"):
        page.with_table("no markers", "new")


def test_a_result_that_is_there_is_not_computed_again(tmp_path: Path) -> None:
    out = tmp_path / "holes.json"
    arguments = ("--tiny", "--out", str(out))
    run("holes", *arguments)
    before = json.loads(out.read_text())["results"]
    run("holes", *arguments)
    assert json.loads(out.read_text())["results"] == before  # seconds included


def test_a_peer_that_is_not_installed_is_named_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import peers

    absent = peers.Peer("nobody", "a_package_that_nobody_wrote", lambda data, threads: iter(()))
    assert "a_package_that_nobody_wrote" in (absent.missing() or "")
    assert peers.COMPLETE[0].missing() is None


def test_the_times_of_a_cluster_are_simulated() -> None:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        from cluster_times import seconds_of_a_pass
    finally:
        sys.path.remove(str(BENCHMARKS))
    asked = argparse.Namespace(bandwidth=1e9, latency=1e-3, task=1e-3)
    few, many = (
        sum(seconds_of_a_pass(10**8, 1000, 20, workers, (1e-5, 1e-3, 1e-3), asked))
        for workers in (10, 100)
    )
    assert many < few < 10 * many


def test_settings_are_chosen_without_a_look_at_what_is_hidden(benchmark) -> None:
    data = benchmark("data")
    X = np.random.default_rng(0).standard_normal((80, 12))
    for pattern in ("points", "runs", "spans"):
        problem = data.standardised("any", X, pattern, seed=3)
        trial = problem.again(seed=2)
        assert np.isnan(problem.X[problem.hidden]).all()
        assert np.isnan(trial.X[problem.hidden]).all()
        assert trial.hidden.any()
        assert not (trial.hidden & problem.hidden).any()


def test_each_method_has_twelve_settings_to_choose_from_or_none(benchmark) -> None:
    fillers = benchmark("fillers")
    for peer in (*fillers.METHODS, *fillers.IN_TIME, *fillers.RATINGS):
        wide = fillers.possible(peer, (2000, 200))
        assert len(wide) in (1, fillers.SETTINGS), peer.name
        narrow = fillers.possible(peer, (300, 10))
        assert len({repr(one) for one in narrow}) == len(narrow) <= fillers.SETTINGS


def test_the_crps_of_a_certain_guess_is_its_error(benchmark) -> None:
    holes, fillers, data = benchmark("holes"), benchmark("fillers"), benchmark("data")
    problem = data.standardised("any", np.arange(40.0).reshape(10, 4), "points", seed=0)
    guess = np.zeros_like(problem.truth)
    sure = fillers.Filled.normal(guess, np.full_like(guess, 1e-8))
    found = holes.scores(problem, sure)
    np.testing.assert_allclose(found["crps"], np.abs(problem.truth[problem.hidden]).mean())
    assert found["coverage"] == np.mean(problem.truth[problem.hidden] == 0.0)
    assert holes.scores(problem, fillers.Filled(guess)).keys() == {"rmse"}


def test_one_method_is_ahead_of_another_only_under_every_mask(benchmark) -> None:
    page = benchmark("holes_page")

    def entry(*errors: float):
        return page.Entry("any", {mask: {"rmse": error} for mask, error in enumerate(errors)})

    assert entry(0.9, 0.8).ahead_of(entry(1.0, 1.0))
    assert not entry(0.5, 1.1).ahead_of(entry(1.0, 1.0))
    assert not entry(0.995, 0.995).ahead_of(entry(1.0, 1.0))  # by less than 1 %
    assert not entry(0.97).ahead_of(entry(1.0))  # one mask: by less than 5 %
    assert entry(0.9).ahead_of(entry(1.0))


@pytest.mark.parametrize("name", ["seasons", "random walks", "spikes", "ratings", "diabetes"])
def test_a_panel_hides_what_it_judges_and_each_mask_hides_something_else(
    benchmark, name: str
) -> None:
    panel = next(one for one in benchmark("panels").PANELS if one.name == name)
    first, second = panel.masked(0), panel.masked(1)
    assert np.isnan(first.X[first.hidden]).all()
    assert np.isfinite(first.truth[first.hidden]).all()
    assert (first.hidden != second.hidden).any()
    np.testing.assert_array_equal(first.hidden, panel.masked(0).hidden)
