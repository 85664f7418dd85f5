"""Without `distributed`: what needs no cluster works, and what does says what to install."""

import subprocess
import sys

import numpy as np

from ...commands import command, one_line

ABSENT = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "distributed":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
"""
USE = """
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
from omfb import OMFB, OMFBImputer, OnlineFactorAnalysis

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 2)) @ rng.normal(size=(2, 6)) + 0.1 * rng.normal(size=(300, 6))
frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcdef")), npartitions=3)
for lazy in (da.from_array(X, chunks=(100, 3)), frame):
    for model in (OnlineFactorAnalysis(2, random_state=0), OMFB(2), OMFBImputer(2, random_state=0)):
        model.fit(lazy)
        assert isinstance(model.components_, np.ndarray)
        codes, score = model.transform(lazy), model.score(lazy)
        assert np.allclose(np.asarray(codes.compute()), model.transform(X))
        assert float(score) > 0.9
        try:
            model.fit(lazy, n_tasks=2)
        except ValueError as error:
            print(error)
"""


def test_collections_are_learned_from_in_this_process():
    done = subprocess.run(
        [sys.executable, "-c", ABSENT + USE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()
    assert len(said) == 6
    assert all("pip install 'omfb[dask]'" in line for line in said)


def test_the_command_says_what_to_install(tmp_path):
    np.save(tmp_path / "a.npy", np.eye(9))
    words = ["fit", "a.npy", "-o", "m.omfb", "--scheduler", "tcp://127.0.0.1:9"]
    done = subprocess.run(
        command(*words, prelude=ABSENT), cwd=tmp_path, capture_output=True, check=False
    )
    assert "pip install 'omfb[dask]'" in one_line(done, 2)
