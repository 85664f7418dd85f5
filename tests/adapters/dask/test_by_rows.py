"""Fits by a cluster: the same bits whoever does the work, near to one stream, nothing lost."""

import os
import signal
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster, futures_of
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.adapters.dask import by_rows as rounds
from omfb.adapters.dask.by_rows import RoundSource
from omfb.adapters.dask.round_schedule import (
    NEIGHBOURS,
    ROUND_GROWTH,
    ROUND_SHARE,
    round_schedule,
    scattered,
)
from omfb.learner.checkpoints import CheckpointError
from omfb.learner.fit_stream import StopFitting

from ...making import ALL, PREDICTIVE, rows


@pytest.fixture(scope="module")
def client():
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        yield client


@given(lengths=st.lists(st.integers(0, 50), min_size=1, max_size=60), n_tasks=st.integers(1, 8))
def test_a_pass_is_cut_into_rounds_that_grow(lengths, n_tasks):
    rounds = round_schedule(lengths, n_tasks)
    assert [at for tasks in rounds for task in tasks for at in task] == list(range(len(lengths)))
    done = 0
    for tasks in rounds:
        assert 1 <= len(tasks) <= n_tasks
        chunks = [at for task in tasks for at in task]
        n_rows = sum(lengths[at] for at in chunks)
        assert len(chunks) == 1 or n_rows <= min(ROUND_GROWTH * done, ROUND_SHARE * sum(lengths))
        done += n_rows


@given(n=st.integers(1, 400), seed=st.integers(0, 2**32 - 1), data=st.data())
def test_chunks_of_a_round_lie_all_over_the_table_and_with_all_workers(n, seed, data):
    order = scattered(n, np.random.RandomState(seed))
    assert sorted(order) == list(range(n))
    first = data.draw(st.integers(0, n - 1))
    last = data.draw(st.integers(first + 1, n))
    # A random order would be off by √(last − first): here three runs of neighbours, and the ends.
    below = np.count_nonzero(order[first:last] < n / 2)
    assert abs(below - (last - first) / 2) <= 3 * NEIGHBOURS
    for workers in (2, 4):  # which were given chunks in turn
        loads = np.bincount(order[first:last] % workers, minlength=workers)
        assert loads.max() - loads.min() <= 3


def saved(model, folder):
    model.save(folder / "model.omfb")
    return (folder / "model.omfb").read_bytes()


@ALL
@pytest.mark.parametrize("holes", [0.0, 0.2])
def test_tasks_end_near_to_one_stream(estimator, holes, rng, one_process):
    X = rows(rng, 6000, 12, holes=holes)
    # In the same order: another order of rows can change the error by more than tasks do.
    model = estimator(3, forget_factor=1.0, random_state=0, shuffle=False)
    alone = clone(model).fit(X)
    model.fit(da.from_array(X, chunks=(250, 5)), n_tasks=4)
    assert model.n_samples_seen_ == alone.n_samples_seen_ == 6000
    assert (1 - model.score(X)) ** 0.5 == pytest.approx((1 - alone.score(X)) ** 0.5, rel=1e-2)
    assert model.n_components_ == alone.n_components_


def test_passes_are_shuffled_anew_and_all_rows_count(rng, one_process, tmp_path):
    X = rows(rng, 2000, 8, holes=0.1)
    lazy = da.from_array(X, chunks=(100, 8))
    once, twice, again = (
        OMFBImputer(3, random_state=0, max_iter=n).fit(lazy, n_tasks=3) for n in (1, 2, 2)
    )
    assert (once.n_samples_seen_, twice.n_samples_seen_) == (2000, 4000)
    assert saved(twice, tmp_path) == saved(again, tmp_path)
    other = OMFBImputer(3, random_state=1, max_iter=2).fit(lazy, n_tasks=3)
    assert saved(twice, tmp_path) != saved(other, tmp_path)


def test_the_columns_of_a_frame_are_the_features(rng, one_process):
    table = pd.DataFrame(rows(rng, 900, 4, holes=0.1), columns=list("abcd"))
    table["town"] = "Oslo"
    lazy = dd.from_pandas(table, npartitions=6)
    model = OMFBImputer(2, random_state=0).fit(lazy, n_tasks=2)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert not model.complete(table).isna().any().any()
    with pytest.raises(ValueError, match="column 'town' holds text"):
        OnlineFactorAnalysis(2).fit(lazy)


def test_what_cannot_be_learned_from_is_refused_by_its_row(rng, one_process):
    X = rows(rng, 600, 4)
    X[437, 2] = np.inf
    with pytest.raises(ValueError, match="infinity at row 438, column 3"):
        OnlineFactorAnalysis(2, random_state=0).fit(da.from_array(X, chunks=(100, 4)))
    with pytest.raises(ValueError, match="shuffle='uniform'"):
        OnlineFactorAnalysis(2, shuffle="uniform").fit(da.from_array(X, chunks=(100, 4)))


def test_a_fit_that_fails_leaves_the_cluster_and_what_others_hold_there(rng, one_process):
    held = da.ones((10, 10), chunks=5).persist()
    X = rows(rng, 3000, 8, holes=0.1)
    X[2777, 4] = np.inf
    for estimator in (OMFB, OnlineFactorAnalysis):
        with pytest.raises(ValueError, match="infinity at row 2778, column 5"):
            estimator(2, forget_factor=1.0, random_state=0).fit(da.from_array(X, chunks=(150, 8)))
        time.sleep(0.5)
        assert held.sum().compute() == 100.0
        assert {future.status for future in futures_of(held)} == {"finished"}


@pytest.mark.parametrize("lengths", [(0, 600), (0, 0, 300, 0, 300), (600, 0)])
def test_chunks_without_rows(lengths, rng, one_process, tmp_path):
    X = rows(rng, 600, 6)
    model = OnlineFactorAnalysis(2, random_state=0).fit(da.from_array(X, chunks=(lengths, (6,))))
    filled = tuple(length for length in lengths if length)
    without = OnlineFactorAnalysis(2, random_state=0).fit(da.from_array(X, chunks=(filled, (6,))))
    assert saved(model, tmp_path) == saved(without, tmp_path)
    lazy = da.from_array(X, chunks=(300, 6))
    with pytest.raises(ValueError, match="no rows"):
        OnlineFactorAnalysis(2).fit(lazy[da.from_array(X[:, 0] > 1e9, chunks=300)])


def test_n_tasks_needs_a_cluster(rng):
    X = rows(rng, 600, 4)
    with pytest.raises(ValueError, match=r"pip install 'omfb\[dask\]'"):
        OnlineFactorAnalysis(2).fit(X, n_tasks=2)
    with pytest.raises(TypeError, match="n_tasks must be a whole number"):
        OnlineFactorAnalysis(2).fit(X, n_tasks=2.5)


@pytest.mark.parametrize(
    "forgetting",
    [
        OMFB(2),
        OMFB(2, forget_factor=0.99),
        OMFB(2, forget_factor=1.0, shrink=1.0),
        OMFB(2, forget_factor=1.0, positive_dict=True),
        OMFBImputer(2, forget_factor=0.99),
    ],
    ids=str,
)
def test_what_does_not_add_up_is_learned_in_one_stream(forgetting, rng, one_process, tmp_path):
    X = da.from_array(rows(rng, 600, 4), chunks=(100, 4))
    model = clone(forgetting).set_params(random_state=0).fit(X)
    with dask.config.set(scheduler="synchronous"):
        assert model.n_samples_seen_ >= 600


def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(rng, one_process, tmp_path):
    X = da.from_array(rows(rng, 3000, 8, holes=0.2), chunks=(100, 8))
    fit = {"checkpoint": tmp_path / "c", "every": "1rows"}
    whole = OMFBImputer(3, random_state=0, max_iter=2).fit(X, n_tasks=4)
    for count in (1, 4, 9):
        (tmp_path / "c").unlink(missing_ok=True)
        left = [StopFitting, *[None] * count]

        def stop(progress, left=left):
            if left.pop() is StopFitting:
                raise StopFitting

        stopped = OMFBImputer(3, random_state=0, max_iter=2)
        with pytest.raises(StopFitting):
            stopped.fit_source(RoundSource.of_collection(X, one_process, 4), on_block=stop, **fit)
        assert OMFBImputer.load(tmp_path / "c").n_samples_seen_ > 0
        with pytest.raises(CheckpointError, match="other data"):  # other lanes, other rounds
            OMFBImputer(3, random_state=0, max_iter=2).fit(X, n_tasks=5, resume=True, **fit)
        model = OMFBImputer(3, random_state=0, max_iter=2).fit(X, n_tasks=4, resume=True, **fit)
        assert saved(model, tmp_path) == saved(whole, tmp_path)


def test_the_next_round_waits_at_the_cluster_and_is_taken_back_if_the_fit_stops(rng, one_process):
    X = da.from_array(rows(rng, 3000, 8, holes=0.2), chunks=(100, 8))
    scheduler = one_process.cluster.scheduler
    others, ahead = set(scheduler.tasks), []

    def stop(progress):
        ahead.append(sum(key.startswith("learn_last") for key in map(str, list(scheduler.tasks))))
        if len(ahead) == 4:
            raise StopFitting

    model = OMFBImputer(3, random_state=0)
    with pytest.raises(StopFitting):
        model.fit_source(RoundSource.of_collection(X, one_process, 4), on_block=stop)
    assert ahead[0] == 0  # of a young learner: what it becomes decides how to go on
    assert min(ahead[2:]) > 0
    for _ in range(100):
        if set(scheduler.tasks) <= others:
            break
        time.sleep(0.05)
    assert set(scheduler.tasks) <= others


def test_much_evidence_is_added_up_by_a_tree(rng, one_process, monkeypatch):
    X = da.from_array(rows(rng, 3000, 8, holes=0.2), chunks=(100, 8))

    def components():
        model = OMFBImputer(3, random_state=0)
        model.fit_source(RoundSource.of_collection(X, one_process, 9))
        return model.components_

    at_once = components()
    monkeypatch.setattr(rounds, "BRANCHES", 2)
    monkeypatch.setattr(rounds, "BRANCHES_BYTES", 0)
    by_tree = components()
    assert (by_tree != at_once).any()  # rounded in another order
    np.testing.assert_allclose(by_tree, at_once, rtol=1e-6, atol=1e-9)


def test_workers_change_nothing(one_process, client, rng, tmp_path):
    """Killed, added, or none at all: the bits stay."""
    X = da.from_array(rows(rng, 3000, 12, holes=0.2), chunks=(100, 12))
    here = OMFBImputer(5, random_state=0)
    here.fit_source(RoundSource.of_collection(X, one_process, 8))
    expected = saved(here, tmp_path)
    assert saved(OMFBImputer(5, random_state=0).fit(X, n_tasks=8), tmp_path) == expected

    killed, rounds = [], []

    def kill_one():
        pids = list(client.run(os.getpid).values())
        os.kill(pids[len(killed) % len(pids)], signal.SIGKILL)
        killed.append(pids)

    def disturb(progress):
        rounds.append(progress)
        if len(rounds) == 2:
            kill_one()
        if len(rounds) == 4:
            client.cluster.scale(3)
            threading.Timer(0.1, kill_one).start()  # while a round is on its way

    model = OMFBImputer(5, random_state=0)
    model.fit_source(RoundSource.of_collection(X, client, 8), on_block=disturb)
    assert len(killed) == 2
    assert saved(model, tmp_path) == expected


@PREDICTIVE
def test_a_column_may_begin_after_the_first_chunks(rng, one_process, estimator):
    """Tasks estimate a scale of their own for it; the merged model has one, from all of them."""
    T = rows(rng, 4000, 8) + 100.0
    X = T.copy()
    X[:1500, 0] = np.nan
    model = estimator(3, random_state=0, shuffle=False).fit(da.from_array(X, chunks=(250, 8)))
    assert abs(model.mean_[0] - 100.0) < 1.0
    hidden = T[3000:].copy()
    hidden[:, 0] = np.nan
    error = (model.complete(hidden) - T[3000:])[:, 0]
    assert np.sqrt(np.mean(error**2)) < 0.5 * T[:, 0].std()
