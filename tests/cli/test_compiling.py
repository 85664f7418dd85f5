"""A fit that has to compile says so, once; with a warm cache it does not."""

import os
import pty
import subprocess
import sys

import pytest

from ..commands import low_rank, start, succeeded, write_csv

LOGGED = """
import numpy as np
from omfb import OMFB
OMFB(2, verbose={verbose}).fit(np.random.default_rng(0).random((50, 6)))
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """An environment whose kernels are not compiled yet."""
    folder = tmp_path_factory.mktemp("cache")
    return {**os.environ, "NUMBA_CACHE_DIR": str(folder), "TERM": "xterm", "COLUMNS": "100"}


def _shown(words, environment, folder):
    """What a terminal shows of a command."""
    ours, theirs = pty.openpty()
    process = start(*words, stderr=theirs, env=environment, cwd=folder)
    os.close(theirs)
    shown = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        shown += part
    os.close(ours)
    assert process.wait() == 0
    return shown


def _logged(environment, verbose=1):
    code = LOGGED.format(verbose=verbose)
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
    return succeeded(done).stderr


def test_a_terminal_is_told_only_if_the_cache_is_cold(cache, tmp_path):
    write_csv(tmp_path / "x.csv", low_rank(200, 6))
    words = ["fit", "x.csv", "-r", 2, "-o", "m.omfb"]
    assert _shown(words, cache, tmp_path).count(b"compiling, once: about 8 s") == 1
    assert b"compiling" not in _shown(words, cache, tmp_path)


def test_the_log_says_so_only_if_asked_and_the_cache_is_cold(tmp_path):
    cold = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    assert _logged(cold, verbose=1).count(b"compiling, once: about 8 s\n") == 1
    assert b"compiling" not in _logged(cold, verbose=1)
    silent = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "other")}
    assert _logged(silent, verbose=0) == b""
