"""A minute of `make hostile`, which runs for as long as one likes: nothing breaks."""

import os
import subprocess
import sys


def test_nothing_breaks():
    """In a process of its own: trials are forked, which those that have had threads cannot be."""
    words = ["-W", "ignore", "-m", "tests.hostile", "--minutes", "1", "--count", "60"]
    env = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, env=env, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    tried = [int(line.split("|")[2].replace(",", "")) for line in done.stdout.splitlines()[2:]]
    assert min(tried) > 0, done.stdout
