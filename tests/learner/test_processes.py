"""Forked processes, damaged compile caches, and kernels that Python interprets."""

import os
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import omfb
from omfb import OMFB, OMFBImputer

from ..making import ALL, rows

SCRIPT = """
import sys
import numpy as np
from omfb import OMFB, OMFBImputer
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 5)) + 0.1 * rng.normal(size=(40, 5))
Z = np.where(rng.random(X.shape) < 0.1, np.nan, X)
imputer = OMFBImputer(2, random_state=0).fit(Z)
for row in Z[:3]:
    imputer.partial_fit(row[None])
found = [imputer.complete(Z), *imputer.interval(Z), OMFB(2, random_state=0).fit(X).components_]
np.savez(sys.argv[1], *found, OMFB(2, random_state=0).fit(Z).components_)
"""


def results(path, **variables):
    """What a new process finds."""
    source = str(Path(omfb.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source, **variables}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, path], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    with np.load(path) as arrays:
        return [arrays[name] for name in arrays.files]


def test_interpreted_kernels_find_what_compiled_ones_do(tmp_path):
    compiled = results(tmp_path / "a.npz")
    interpreted = results(tmp_path / "b.npz", NUMBA_DISABLE_JIT="1")
    for one, other in zip(compiled, interpreted, strict=True):
        assert np.allclose(one, other, rtol=1e-8, atol=1e-8)


def test_a_damaged_compile_cache_is_rebuilt(tmp_path, monkeypatch):
    """Of one small kernel: compiling all would take long."""
    from omfb.core.linalg import compiling

    source = tmp_path / "kernels.py"
    source.write_text("def double(x):\n    return 2.0 * x\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import kernels

    for damage in ("*.nbi", "*.nbc"):
        compiled = compiling.jit(kernels.double)
        assert compiled(2.0) == 4.0
        (found,) = {Path(compiled._cache.cache_path)}
        for path in found.glob(f"kernels.double{damage}"):
            path.write_bytes(b"not a pickle")
        again = compiling.jit(kernels.double)
        assert again(2.0) == 4.0
        third = compiling.jit(kernels.double)
        assert third(2.0) == 4.0
        assert sum(third.stats.cache_hits.values()) == 1
    shutil.rmtree(found, ignore_errors=True)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@ALL
def test_a_fork_while_a_thread_learns_can_learn_on(rng, estimator):
    X = rows(rng, 600)
    model = estimator(3, random_state=0).fit(X)
    held, go_on = threading.Event(), threading.Event()

    def hold():
        with model.learner_._lock:  # as while another thread learns
            held.set()
            go_on.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            threading.Timer(20.0, os._exit, (2,)).start()
            model.partial_fit(X[:1]).complete(X[:1])
            code = 0
        finally:
            os._exit(code)
    go_on.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@ALL
def test_a_lazy_frame_is_refused_in_one_line(rng, estimator):
    X = pl.DataFrame(rows(rng))
    model = estimator(3, random_state=0)
    for call in (model.fit, model.partial_fit, model.fit(X).transform, model.complete, model.score):
        with pytest.raises(TypeError, match=r"LazyFrame.*X\.collect\(\)"):
            call(X.lazy())


def test_a_model_of_the_papers_algorithm_is_no_imputer(rng, tmp_path):
    OMFB(3, random_state=0).fit(rows(rng)).save(tmp_path / "m.omfb")
    with pytest.raises(ValueError, match="a model of OMFB, whose algorithm is another one"):
        OMFBImputer.load(tmp_path / "m.omfb")
