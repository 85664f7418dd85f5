"""Clients that are killed or interrupted: their fits go on elsewhere, to the same bits."""

import signal
import subprocess
import sys

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from omfb import OMFB

from ...making import rows

PASSES = 12

FIT = """
import sys
import dask.array as da
import numpy as np
from distributed import Client
from omfb import OMFB

address, forget_factor, passes, every = sys.argv[1:]
X = da.from_array(np.load("X.npy"), chunks=(100, 6))
how = {"random_state": 0, "max_iter": int(passes), "verbose": 1}
model = OMFB(3, forget_factor=float(forget_factor), **how)
with Client(address):
    model.fit(X, checkpoint="c", resume=True, every=every)
"""


@pytest.mark.parametrize("forget_factor", [1.0, 0.0], ids=["forgetting nothing", "paper"])
def test_a_client_that_is_killed_and_one_that_is_interrupted(forget_factor, rng, tmp_path):
    X = rows(rng, 300, 12)
    np.save(tmp_path / "X.npy", X)
    lazy = da.from_array(X, chunks=(100, 6))
    model = OMFB(3, forget_factor=forget_factor, random_state=0, max_iter=PASSES)

    def signalled(cluster, number, every):
        """Rows that a fit in a process of its own has kept; it is signalled in its third pass."""
        words = [FIT, cluster.scheduler_address, forget_factor, PASSES, every]
        process = subprocess.Popen(
            [sys.executable, "-c", *map(str, words)],
            cwd=tmp_path, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        for _ in range(2):
            assert process.stderr.readline().startswith("pass ")
        process.send_signal(number)
        _, said = process.communicate(timeout=60)
        assert process.returncode == -number, said
        return OMFB.load(tmp_path / "c").n_samples_seen_

    with (
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0",
            protocol="tcp",
        ) as cluster,
        Client(cluster),
    ):  # fmt: skip
        whole = np.asarray(model.fit(lazy).components_)
        killed = signalled(cluster, signal.SIGKILL, "1rows")
        interrupted = signalled(cluster, signal.SIGINT, "1h")
        assert 300 <= killed < interrupted < 300 * PASSES
        model.fit(lazy, checkpoint=tmp_path / "c", resume=True)
        assert np.array_equal(np.asarray(model.components_), whole)
