"""Several files in one fit, in one process or by a cluster."""

import numpy as np
import pandas as pd
import pytest
from distributed import LocalCluster

from omfb import OMFBImputer

from ..commands import low_rank, one_line, run, succeeded

NAMES = [f"f{i}" for i in range(6)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    X = low_rank(3000, 6)
    for at in range(6):
        frame = pd.DataFrame(X[500 * at : 500 * (at + 1)], columns=NAMES)
        frame.to_parquet(folder / f"{at}.parquet", row_group_size=250)
        frame.to_csv(folder / f"{at}.csv", index=False)
    pd.DataFrame(X, columns=NAMES).to_csv(folder / "all.csv", index=False)
    np.save(folder / "first.npy", X[:1500])
    np.save(folder / "last.npy", X[1500:])
    frame[NAMES[::-1]].to_parquet(folder / "other.parquet")
    return folder


FIT = ["--seed", 0, "-q", "--no-shuffle", "--max-iter", 1]


def model(folder, name):
    return (folder / name).read_bytes()


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_several_files_are_one_stream(server, folder, kind):
    files = [f"{at}.{kind}" for at in range(6)]
    succeeded(server.run("fit", *files, *FIT, "-o", "many.omfb", cwd=folder))
    succeeded(server.run("fit", "all.csv", *FIT, "-o", "one.omfb", cwd=folder))
    many, one = (OMFBImputer.load(folder / f"{name}.omfb") for name in ("many", "one"))
    # To rounding: the last touch for short tables takes rows in the order of their groups.
    np.testing.assert_allclose(many.components_, one.components_, rtol=0, atol=1e-12)


def test_files_without_groups_are_read_whole(server, folder):
    succeeded(
        server.run("fit", "first.npy", "last.npy", "--seed", 0, "-q", "-o", "n.omfb", cwd=folder)
    )
    assert OMFBImputer.load(folder / "n.omfb").n_samples_seen_ == 3000 * 2


def test_a_resumed_fit_of_several_files_is_the_same(server, folder):
    files = [f"{at}.parquet" for at in range(6)]
    words = ["fit", *files, "--seed", 0, "-q", "--checkpoint", "c", "--every", "100rows"]
    succeeded(server.run(*words, "-o", "a.omfb", cwd=folder))
    succeeded(server.run(*words, "--resume", "-o", "b.omfb", cwd=folder))
    assert model(folder, "a.omfb") == model(folder, "b.omfb")


def test_what_does_not_fit_together_is_refused(server, folder):
    done = server.run("fit", "0.parquet", "other.parquet", "-o", "x.omfb", cwd=folder)
    assert "other.parquet: other columns than" in one_line(done, 1)
    done = server.run("fit", "0.parquet", "-", "-o", "x.omfb", cwd=folder)
    assert "standard input cannot be one of several" in one_line(done, 2)
    done = server.run("fit", "0.parquet", "-o", "x.omfb", "--n-tasks", 3, cwd=folder)
    assert "--n-tasks is for a cluster" in one_line(done, 2)
    words = ["--scheduler", "tcp://127.0.0.1:9"]
    done = server.run(
        "fit", "0.parquet", "-o", "x.omfb", *words, "--forget-factor", 0.9, cwd=folder
    )
    assert "--scheduler needs --forget-factor 1" in one_line(done, 2)


def test_a_cluster_learns_from_files(folder):
    with LocalCluster(
        n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0"
    ) as cluster:
        words = ["--scheduler", cluster.scheduler_address, "--n-tasks", 4, "--seed", 0, "-q"]
        files = [f"{at}.parquet" for at in range(6)]
        succeeded(run("fit", *files, *words, "-o", "cluster.omfb", cwd=folder))
    fitted = OMFBImputer.load(folder / "cluster.omfb")
    assert fitted.n_samples_seen_ == 3000 * 2
    assert fitted.feature_names_in_.tolist() == NAMES
