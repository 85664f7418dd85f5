"""Every benchmark runs on tiny data, with whichever peers are there; the page follows from it."""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("matplotlib")

BENCHMARKS = Path(__file__).resolve().parent.parent / "benchmarks"
NAMES = ["nothing_set", "complete", "holes", "drift", "scaling", "floor", "files"]


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
    if name in ("complete", "holes", "drift", "scaling"):
        assert out.with_suffix(".svg").read_text().startswith("<?xml")
    for found in result.get("sets", []):
        ours, *others = found["peers"]
        assert ours["name"] == "omfb"
        assert "reason" not in ours
        assert all({"reason", "times", "rmse"} & peer.keys() for peer in others)
    if name == "nothing_set":
        assert all(np.isfinite(row["value"]) for row in result["rows"])
        assert {"% above the oracle", "% in 90 % intervals"} <= {r["what"] for r in result["rows"]}
    page = tmp_path / "RESULTS.md"
    run("page", "--results", str(tmp_path), "--out", str(page))
    assert "| omfb" in page.read_text() or name in ("nothing_set", "scaling", "floor", "files")


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
