"""Trials in forked processes, watched from outside: what dies, hangs or takes memory is told."""

import json
import os
import resource
import select
import signal
import tempfile
import time
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, NoReturn

import numpy as np

from .trial import FOREIGN, HANG, MEMORY, TRACEBACK, Broken, Trial

SECONDS_OF_SILENCE = 60.0
# What one trial may need beyond what its process had: all arrays and files here are small.
MEMORY_BOUND = 256 << 20
# No trial shall be able to harm the machine.
ADDRESS_SPACE = 16 << 30


class Result(NamedTuple):
    """How the inputs of one trial ended, and what was wrong, if anything."""

    seed: int
    outcomes: list[str]
    what: str = ""


def run(trial: Trial, first: int, last: int, seconds: float = 1e9) -> Iterator[Result]:
    """Run the trials of the seeds from `first` to before `last`, or until the time is up."""
    end = time.monotonic() + seconds
    while first < last and time.monotonic() < end:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            _work(trial, range(first, last), end, writer)
        os.close(writer)
        silent = False
        with os.fdopen(reader, "rb") as results:
            while line := _line(results):
                result = Result(*json.loads(line))
                first = result.seed + 1
                yield result
            silent = line is None
        if silent:
            os.killpg(pid, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        if status == 0:
            return
        how = HANG if silent else TRACEBACK
        yield Result(first, [how], "silence" if silent else f"the process ended with {status}")
        first += 1


def _line(results: BinaryIO) -> bytes | None:
    """The next result, nothing at the end, None if it takes too long."""
    ready, _, _ = select.select([results], [], [], SECONDS_OF_SILENCE)
    return results.readline() if ready else None


def _work(trial: Trial, seeds: range, end: float, writer: int) -> NoReturn:
    """In the child: one trial after the other, each in a folder of its own."""
    os.setpgid(0, 0)  # a trial may start processes; they end with it
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for seed in seeds:
        with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
            result = one(trial, seed, Path(folder))
        os.write(writer, json.dumps(result).encode() + b"\n")
        if time.monotonic() > end:
            break
    os._exit(0)


def one(trial: Trial, seed: int, folder: Path) -> Result:
    """Run the trial of a seed in this process."""
    before = _forget_peak()
    try:
        outcomes = trial(np.random.default_rng(seed), folder)
    except Broken as broken:
        return Result(seed, [broken.how], _told(broken))
    except BaseException as error:
        return Result(seed, [FOREIGN], _told(error))
    grown = _peak() - before
    if grown > MEMORY_BOUND:
        return Result(seed, [MEMORY], f"{grown >> 20} MB")
    return Result(seed, outcomes)


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)[-3:]
    places = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in reversed(frames))
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]} ({places})"


def _forget_peak() -> int:
    """Let the system count the peak of memory anew; what there is now, in bytes."""
    Path("/proc/self/clear_refs").write_text("5")
    return _peak()


def _peak() -> int:
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10
