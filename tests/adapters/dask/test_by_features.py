"""Fits by features: the algorithm of one machine, the same bits on any cluster."""

import os
import signal
import threading
from contextlib import suppress
from copy import copy

import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis
from omfb.adapters.dask import by_features as features
from omfb.adapters.dask import feature_tasks as tasks
from omfb.adapters.dask.by_features import FeatureSource
from omfb.learner.checkpoints import CheckpointError
from omfb.learner.fit_stream import StopFitting

from ...making import rows, same


def paper(**parameters):
    return OMFB(3, random_state=0, **({"shuffle": False} | parameters))


def atoms(model):
    """The dictionary, gathered."""
    assert isinstance(model.components_, da.Array)
    return model.components_.compute()


RULES = [
    {},
    {"lam": 10.0, "init": "random", "inner_iter": 3},
    {"batch_size": 50, "max_iter": 2},
    {"shuffle": True, "max_iter": 2},
    {"smooth": 0.3, "max_iter": 2},
    {"forget_factor": 1.0},
    {"forget_factor": 0.99, "ridge": 0.1, "shuffle": True, "max_iter": 2},
    {"forget_factor": 1.0, "batch_size": 50},
    {"forget_factor": 1.0, "positive_code": True},
]


@pytest.mark.parametrize("chunks", [(100, 5), (37, (1, 2, 9))], ids=str)
@pytest.mark.parametrize("rule", RULES, ids=str)
def test_as_on_one_machine(rule, chunks, one_process, rng):
    X = rows(rng, 400, 12)
    lazy = da.from_array(X, chunks=chunks)
    model = paper(**rule).fit(lazy)
    # Shuffled rows of a Dask array come in an order of their own, on one machine as well.
    alone = paper(**rule).fit(lazy.rechunk({1: -1}) if rule.get("shuffle") else X)
    assert model.components_.chunks == ((3,), lazy.chunks[1])
    assert same(atoms(model), alone.components_)
    assert model.n_features_in_ == 12
    assert model.n_samples_seen_ == alone.n_samples_seen_
    assert model.n_iter_ == alone.n_iter_
    assert model.prequential_error_ == pytest.approx(alone.prequential_error_, rel=1e-10)


@pytest.mark.parametrize(
    "X",
    [
        lambda X: X.astype(np.float32),
        lambda X: (10 * X).astype(int),
        lambda X: X[:4],  # fewer than the first dictionary is drawn from
        lambda X: 1e-80 * X,  # in units of a power of two
    ],
    ids=["float32", "integers", "few rows", "tiny"],
)
def test_rows_of_any_kind(X, one_process, rng):
    X = X(rows(rng, 300, 12))
    model = paper().fit(da.from_array(X, chunks=(100, 5)))
    alone = paper().fit(X)
    assert model.components_.dtype == alone.components_.dtype
    tolerance = 1e-3 if X.dtype == np.float32 else 1e-10
    assert same(atoms(model), alone.components_, tolerance)


def test_a_first_dictionary_that_is_given(one_process, rng):
    X, init = rows(rng, 300, 12), rng.normal(size=(3, 12))
    for n_components in (3, None):  # as many as it has
        model = paper(init=init).set_params(n_components=n_components)
        alone = copy(model).fit(X)
        assert same(atoms(model.fit(da.from_array(X, chunks=(100, 5)))), alone.components_)


def test_steps_of_many_slices_and_blocks(one_process, rng, monkeypatch):
    """More slices than one task adds up, and blocks of several steps."""
    monkeypatch.setattr(tasks, "BRANCHES", 2)
    monkeypatch.setattr(features, "longest_step", lambda *_: 8)
    monkeypatch.setattr("omfb.learner.fit_stream.rows_per_block", lambda *_: 20)
    monkeypatch.setattr("omfb.learner.fit_stream.WHOLE_BYTES", 0)
    X = rows(rng, 70, 12)
    model = paper().fit(da.from_array(X, chunks=(15, 2)))
    assert same(atoms(model), paper().fit(X).components_)


def test_chunks_of_unknown_length(one_process, rng):
    X = rows(rng, 300, 12)
    lazy = da.from_array(X, chunks=(100, 5))
    even = [da.from_array(np.arange(size) % 2 == 0, chunks=size // 3) for size in (300, 12)]
    model = paper().fit(lazy[even[0]])
    assert same(atoms(model), paper().fit(X[::2]).components_)
    model = paper().fit(lazy[:, even[1]])
    assert same(atoms(model), paper().fit(X[:, ::2]).components_)


def test_chunks_of_nothing(one_process, rng):
    X = rows(rng, 300, 12)
    model = paper().fit(da.from_array(X, chunks=((100, 0, 200), (5, 0, 7))))
    assert same(atoms(model), paper().fit(X).components_)
    joined = paper().fit(da.from_array(X, chunks=(100, (0, 12))))
    assert same(joined.components_, paper().fit(X).components_)
    assert isinstance(joined.components_, np.ndarray)


def test_what_cannot_be_learned_from_is_refused_by_its_place(one_process, rng):
    X = rows(rng, 300, 12)
    lazy = da.from_array(X, chunks=(100, 5))
    model = paper().fit(lazy)
    before = atoms(model)
    for row in (237, 2):
        for value, message in [(np.nan, "has no value at"), (np.inf, "contains infinity at")]:
            gappy = X.copy()
            gappy[row, 7] = value
            with pytest.raises(ValueError, match=f"{message} row {row + 1}, column 8"):
                model.fit(da.from_array(gappy, chunks=(100, 5)))
    with pytest.raises(ValueError, match=r"the Dask array contains values .*too large"):
        model.fit(lazy * np.where(np.arange(300) < 200, 1.0, 1e170)[:, None])
    with pytest.raises(ValueError, match="shuffle='uniform'"):
        paper(shuffle="uniform").fit(lazy)
    with pytest.raises(ValueError, match="complex"):
        paper().fit(lazy * 1j)
    assert np.array_equal(atoms(model), before)


def test_what_is_not_spread(one_process, rng):
    """The factor model, a prior on the dictionary, `n_tasks`: there columns are joined."""
    X = da.from_array(rows(rng, 600, 6), chunks=(100, 3))
    for model, n_tasks in (
        (OMFBImputer(2), None), (OnlineFactorAnalysis(2), None),
        (OMFB(2, forget_factor=1.0, shrink=1.0), None), (OMFB(2, alpha=0.1), None),
        (OMFB(2, forget_factor=1.0), 2),
    ):  # fmt: skip
        model.fit(X, n_tasks=n_tasks)
        assert isinstance(model.components_, np.ndarray)


def test_a_saved_model_is_whole(one_process, rng, tmp_path):
    X = rows(rng, 400, 12)
    model = paper().fit(da.from_array(X, chunks=(100, 5)))
    with pytest.raises(ValueError, match="To continue learning, the dictionary must be"):
        model.partial_fit(X[:5])
    with pytest.raises(ValueError, match="To continue learning, the dictionary must be"):
        model.partial_fit(X[:1])
    model.save(tmp_path / "model.omfb")
    loaded = OMFB.load(tmp_path / "model.omfb")
    assert np.array_equal(loaded.components_, atoms(model))
    alone = paper().fit(X).partial_fit(X[:50])
    assert same(loaded.partial_fit(X[:50]).components_, alone.components_)


def test_a_dictionary_that_does_not_fit_into_memory_is_not_gathered(
    one_process, rng, tmp_path, monkeypatch
):
    monkeypatch.setattr("omfb.adapters.dask.sharded.MEMORY_SHARE", 0.0)
    model = paper().fit(da.from_array(rows(rng, 100, 12), chunks=(100, 5)))
    with pytest.raises(ValueError, match=r"more than fits into memory.*to_npy_stack"):
        model.save(tmp_path / "model.omfb")
    assert not list(tmp_path.iterdir())


def test_a_fit_that_was_stopped_goes_on_to_the_same_bits(one_process, rng, tmp_path, monkeypatch):
    monkeypatch.setattr("omfb.learner.fit_stream.rows_per_block", lambda *_: 30)
    monkeypatch.setattr("omfb.learner.fit_stream.WHOLE_BYTES", 0)
    monkeypatch.setattr(features, "longest_step", lambda *_: 64)
    X = da.from_array(rows(rng, 600, 12), chunks=(100, 5))
    fit = {"checkpoint": tmp_path / "c", "every": "1rows"}
    parameters = {"shuffle": True, "max_iter": 2}
    whole = atoms(paper(**parameters).fit(X))
    left = [StopFitting, *[None] * 13]

    def stop(progress):
        if left.pop() is StopFitting:
            raise StopFitting

    with pytest.raises(StopFitting):
        paper(**parameters).fit_source(FeatureSource(X, one_process, 3), on_block=stop, **fit)
    assert OMFB.load(tmp_path / "c").n_samples_seen_ > 600
    with pytest.raises(CheckpointError, match="other data"):
        paper(**parameters).fit(X.rechunk((100, 4)), resume=True, **fit)
    model = paper(**parameters).fit(X, resume=True, **fit)
    assert np.array_equal(atoms(model), whole)


@pytest.mark.parametrize("shuffle", [False, True])
def test_how_far_it_is(shuffle, one_process, rng, monkeypatch):
    """Within chunks, and while a window of rows is shuffled, too."""
    monkeypatch.setattr("omfb.learner.fit_stream.rows_per_block", lambda *_: 30)
    monkeypatch.setattr("omfb.learner.fit_stream.WHOLE_BYTES", 0)
    monkeypatch.setattr(features, "longest_step", lambda *_: 30)
    source = FeatureSource(da.from_array(rows(rng, 300, 12), chunks=(150, 5)), one_process, 3)
    done = []
    paper(shuffle=shuffle, max_iter=2).fit_source(
        source, on_block=lambda progress: done.append(round(20 * progress.done))
    )
    assert sorted(set(done)) == list(range(1, 21))
    assert done == sorted(done)


def test_an_interrupt_takes_tasks_back_and_leaves_the_model(one_process, rng, monkeypatch):
    X = rows(rng, 300, 12)
    model = paper().fit(da.from_array(X, chunks=(100, 5)))
    before = atoms(model)
    taken_back = []

    def interrupted(client, futures):
        taken_back.extend(futures)
        raise KeyboardInterrupt

    monkeypatch.setattr(features, "finished", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(da.from_array(2 * X, chunks=(100, 5)))
    assert all(future.cancelled() for future in taken_back)
    assert np.array_equal(atoms(model), before)


def test_workers_change_nothing(rng):
    """One or two, killed or added: the bits stay, also of what was learned before."""
    lazy = da.from_array(rows(rng, 2000, 300), chunks=(1000, 100))
    model = OMFB(5, random_state=0, max_iter=2)
    with Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0"):
        expected = atoms(model.fit(lazy))
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        killed, blocks = [], []

        def kill(count):
            pids = [nanny.pid for nanny in cluster.workers.values() if nanny.pid is not None]
            for pid in pids[:count]:
                with suppress(ProcessLookupError):  # it may be gone already
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

        def disturb(progress):
            blocks.append(progress)
            if len(blocks) == 1:
                kill(1)
                cluster.scale(3)
            if len(blocks) == 2:
                threading.Timer(0.02, kill, [3]).start()  # all, while a block is on its way

        model.fit_source(FeatureSource(lazy, client, 5), on_block=disturb)
        assert len(blocks) > 3
        assert len(killed) > 2
        assert np.array_equal(atoms(model), expected)
        kill(1)
        assert np.array_equal(atoms(model), expected)


def test_slices_have_homes():
    class Cluster:
        def __init__(self, *workers):
            self.workers = workers

        def nthreads(self):
            return dict.fromkeys(self.workers, 1)

    assert tasks.hosts_of(Cluster(), 2) == [{}, {}]
    assert tasks.hosts_of(Cluster("tcp://10.0.0.1:5", "tcp://10.0.0.1:6"), 2) == [{}, {}]
    two = Cluster("tcp://10.0.0.2:5", "tcp://10.0.0.1:6", "tcp://10.0.0.1:7")
    assert [home["workers"] for home in tasks.hosts_of(two, 3)] == [
        ["10.0.0.1"], ["10.0.0.1"], ["10.0.0.2"],
    ]  # fmt: skip
    assert all(home["allow_other_workers"] for home in tasks.hosts_of(two, 3))
