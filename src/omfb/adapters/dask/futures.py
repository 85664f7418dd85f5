"""Waiting for the futures of a cluster: as long as it has workers, but not for ever without.

Tasks of a cluster without workers wait for ever, and a cluster can lose all of them: Dask's own
clusters do not replace a worker that is still away after 15 seconds.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from concurrent.futures import CancelledError, wait
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...streams.base import SourceLostError

# Seconds between two looks at the number of workers.
POLL_SECONDS = 5.0
# How long a cluster may have none, unless Dask's configuration says otherwise.
NO_WORKERS_TIMEOUT = "5 minutes"


class ClusterError(SourceLostError):
    """A cluster that cannot continue.

    What was learned until then is in the checkpoint, unless the dictionary was sharded over it.
    """


def current_client() -> Any:
    """Dask's current client; None if there is none."""
    if sys.modules.get("distributed") is None:  # then there can be no client
        return None
    from distributed import default_client

    try:
        return default_client()
    except ValueError:
        return None


def gathered(client: Any, futures: Any) -> Any:
    """The results of futures."""
    return with_timeout(client, lambda: client.gather(futures))


def finished(client: Any, futures: list[Any]) -> None:
    """Wait for futures without fetching their results; the first error is raised."""
    from distributed import wait as all_of

    def all_done() -> Any:
        with client.as_current():  # it may not be Dask's default client
            return all_of(futures)

    with_timeout(client, all_done)
    for future in futures:
        if future.status != "finished":
            gathered(client, future)


def local_array(X: Any) -> NDArray[Any]:
    """A Dask array that is cut along its rows, as an array of this process."""
    client = current_client()
    if client is None:
        return np.asarray(X)
    return np.concatenate(gathered(client, client.compute(X.to_delayed().ravel().tolist())))


def with_timeout(client: Any, ask: Callable[[], Awaitable[Any]]) -> Any:
    """What a client returns, unless its cluster has no workers for too long."""
    import dask
    from dask.utils import parse_timedelta
    from distributed import KilledWorker

    async def answer() -> Any:
        return await ask()

    named = dask.config.get("distributed.scheduler.no-workers-timeout", None) or NO_WORKERS_TIMEOUT
    left = timeout = parse_timedelta(named)
    poll_seconds = min(POLL_SECONDS, timeout)
    coming = asyncio.run_coroutine_threadsafe(answer(), client.loop.asyncio_loop)
    try:
        while not wait([coming], poll_seconds).done:
            left = timeout if client.nthreads() else left - poll_seconds
            if left <= 0.0:
                raise ClusterError(
                    f"The cluster has had no workers for {named}. Start some, and fit with "
                    f"checkpoint= and resume=True to continue; Dask's distributed.scheduler."
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
