"""Waiting for a cluster: for as long as it takes, but not for workers that never come.

Tasks of a cluster without workers wait for ever, and it can lose all it had: a worker that is lost,
and is away 15 seconds later as well, is not replaced by Dask's own clusters any more.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...streams.base import SourceLostError

# Seconds after which to look whether there still are workers.
LOOK_AFTER = 5.0
# How long a cluster may have none, unless Dask is configured to say so.
PATIENCE = "5 minutes"


class ClusterError(SourceLostError):
    """A cluster that can do no more.

    What was learned until then is in the checkpoint, but for a dictionary that was spread over it.
    """


def client_at_hand() -> Any:
    """The client of a cluster that is in use; None if there is none."""
    if sys.modules.get("distributed") is None:  # nobody can have made one
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def gathered(client: Any, futures: Any) -> Any:
    """What futures come to, brought here."""
    return patiently(client, lambda: client.gather(futures))


def finished(client: Any, futures: list[Any]) -> None:
    """Wait for futures without asking for what they come to; the first error is raised."""
    from distributed import wait as all_of

    def all_done() -> Any:
        with client.as_current():  # it may not be the one that Dask would ask
            return all_of(futures)

    patiently(client, all_done)
    for future in futures:
        if future.status != "finished":
            gathered(client, future)


def brought(X: Any) -> NDArray[Any]:
    """A Dask array that is cut along its rows, as an array of this process."""
    client = client_at_hand()
    if client is None:
        return np.asarray(X)
    return np.concatenate(gathered(client, client.compute(X.to_delayed().ravel().tolist())))


def patiently(client: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
    """What a client answers, unless its cluster has no workers for too long."""
    import dask
    from dask.utils import parse_timedelta
    from distributed import KilledWorker

    async def answer() -> Any:
        return await ask()

    named = dask.config.get("distributed.scheduler.no-workers-timeout", None) or PATIENCE
    left = patience = parse_timedelta(named)
    look_after = min(LOOK_AFTER, patience)
    coming = asyncio.run_coroutine_threadsafe(answer(), client.loop.asyncio_loop)
    try:
        while not wait([coming], look_after).done:
            left = patience if client.nthreads() else left - look_after
            if left <= 0.0:
                raise ClusterError(
                    f"The cluster has had no workers for {named}. Start some, and fit with "
                    f"checkpoint= and resume=True to go on; Dask's distributed.scheduler."
                    f"no-workers-timeout says how long to wait for them."
                )
        return coming.result()
    except KilledWorker as error:
        raise ClusterError(
            f"The cluster gave up, as workers were lost again and again at the same task, most "
            f"often for want of memory: make chunks smaller, or give workers more ({error})"
        ) from error
    except CancelledError as error:
        raise ClusterError(
            f"The cluster has lost its scheduler or was closed ({error})."
        ) from error
    finally:
        coming.cancel()
