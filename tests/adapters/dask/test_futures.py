"""A cluster that can do no more is told of: no fit waits for ever."""

import os
import signal
import time

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from omfb import OMFB, OnlineFactorAnalysis
from omfb.adapters.dask.futures import ClusterError, gathered

from ...making import rows

BY_ROWS, BY_FEATURES = OnlineFactorAnalysis(3, random_state=0), OMFB(3, random_state=0)
KINDS = pytest.mark.parametrize("model", [BY_ROWS, BY_FEATURES], ids=["by rows", "by features"])


@pytest.fixture
def one_worker():
    """A cluster that gives up a worker that is lost once."""
    once = {
        "distributed.deploy.lost-worker-timeout": "0s", "distributed.scheduler.allowed-failures": 0,
    }  # fmt: skip
    with (
        dask.config.set(once),
        LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster),
    ):
        yield cluster


def test_workers_that_are_lost_for_good(one_worker, rng, tmp_path):
    """Dask's own clusters do not replace a worker that is away some seconds after it was lost."""
    X = da.from_array(rows(rng, 400, 12), chunks=(100, 5))
    sharded = OMFB(3, random_state=0).fit(X)
    (nanny,) = one_worker.workers.values()
    os.kill(nanny.pid, signal.SIGKILL)
    for _ in range(200):
        time.sleep(0.05 if one_worker.workers else 0.0)
    assert not one_worker.workers
    with dask.config.set({"distributed.scheduler.no-workers-timeout": "1s"}):
        for model in (BY_ROWS, BY_FEATURES):
            with pytest.raises(ClusterError, match="no workers for 1s"):
                model.fit(X)
            assert not hasattr(model, "components_")
        with pytest.raises(ClusterError, match="no workers for 1s"):
            sharded.save(tmp_path / "model.omfb")
    assert not list(tmp_path.iterdir())


@KINDS
def test_a_task_that_no_worker_survives(one_worker, model):
    def deadly(block_info):
        os.kill(os.getpid(), signal.SIGKILL)

    X = da.map_blocks(deadly, chunks=((100, 100), (6, 6)), dtype=np.float64, meta=np.empty((0, 0)))
    with pytest.raises(ClusterError, match="lost again and again"):
        model.fit(X)


def test_a_scheduler_that_is_lost():
    """Then Dask takes back all that was asked for."""
    with Client(processes=False, n_workers=1, dashboard_address=":0") as client:
        future = client.submit(abs, -1)
        assert gathered(client, future) == 1
        client.cancel(future)
        with pytest.raises(ClusterError, match="lost its scheduler"):
            gathered(client, future)
