"""Tasks for each slice of the features, as futures of a cluster."""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .futures import gathered

# Parts that one task adds up.
BRANCHES = 8


class Tasks:
    """The tasks of a block; if the fit is interrupted, they are cancelled."""

    def __init__(self, client: Any, n_slices: int) -> None:
        self._client = client
        self._hosts = hosts_of(client, n_slices)
        self._made: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None:
            self._client.cancel(self._made)

    def one(self, function: Any, *args: Any, **where: Any) -> Any:
        """A task, on any worker."""
        made = self._client.submit(function, *args, pure=False, **where)
        self._made.append(made)
        return made

    def each(self, function: Any, *args: Any) -> list[Any]:
        """A task for each slice, where it lies; lists among the arguments have one for each."""
        return [
            self.one(function, *(arg[at] if isinstance(arg, list) else arg for arg in args), **host)
            for at, host in enumerate(self._hosts)
        ]

    def sent(self, parts: list[NDArray[Any]]) -> list[Any]:
        """Arrays of this process, one for each slice, as futures.

        They go with the tasks: scattered data would be lost with their worker.
        """
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self.each(np.array, parts)

    def sum(self, parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
        """The sum of parts, in an order that depends on their number only."""
        while len(parts) > BRANCHES:
            starts = range(0, len(parts), BRANCHES)
            parts = [self.one(reduce, add, parts[at : at + BRANCHES]) for at in starts]
        total = reduce(add, gathered(self._client, parts))
        self._made.clear()  # nothing is left to cancel
        return total


def hosts_of(client: Any, n_slices: int) -> list[dict[str, Any]]:
    """Where the tasks of each slice run best: adjacent slices on the same host.

    A hint for the scheduler, so that a slice stays where it is: any other worker will do. It names
    hosts, not workers: if a named worker were lost, its tasks would wait for it for ever.
    """
    from distributed.comm import get_address_host

    hosts = sorted({get_address_host(worker) for worker in client.nthreads()})
    if len(hosts) < 2:
        return [{}] * n_slices
    return [
        {"workers": [hosts[at * len(hosts) // n_slices]], "allow_other_workers": True}
        for at in range(n_slices)
    ]
