"""Tasks for each slice of the features, as futures of a cluster."""

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from .futures import gathered

# So many are added up by one task.
ADDED_AT_ONCE = 8


class Tasks:
    """The tasks of a block: of a fit that is interrupted they are taken back."""

    def __init__(self, client: Any, n_slices: int) -> None:
        self._client = client
        self._homes = homes_of(client, n_slices)
        self._made: list[Any] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not None:
            self._client.cancel(self._made)

    def one(self, function: Any, *args: Any, **where: Any) -> Any:
        """A task, wherever it is done."""
        made = self._client.submit(function, *args, pure=False, **where)
        self._made.append(made)
        return made

    def each(self, function: Any, *args: Any) -> list[Any]:
        """A task for each slice, where it lies; lists among the arguments have one for each."""
        return [
            self.one(function, *(arg[at] if isinstance(arg, list) else arg for arg in args), **home)
            for at, home in enumerate(self._homes)
        ]

    def sent(self, parts: list[NDArray[Any]]) -> list[Any]:
        """Arrays of this process, one for each slice, as what tasks come to.

        They go with the tasks: what is sent ahead would be lost with its worker.
        """
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TiB"}):
            return self.each(np.array, parts)

    def sum(self, parts: list[Any], add: Callable[[Any, Any], Any] = operator.add) -> Any:
        """The sum of parts, brought here; in an order that follows from their number."""
        while len(parts) > ADDED_AT_ONCE:
            starts = range(0, len(parts), ADDED_AT_ONCE)
            parts = [self.one(reduce, add, parts[at : at + ADDED_AT_ONCE]) for at in starts]
        total = reduce(add, gathered(self._client, parts))
        self._made.clear()  # nothing is left to be taken back
        return total


def homes_of(client: Any, n_slices: int) -> list[dict[str, Any]]:
    """Where the tasks of each slice are best done: neighbouring slices at the same host.

    A hint for the scheduler, so that a slice stays where it is: any other worker will do. Not the
    worker itself: should all be away at once, tasks would wait for that very one for ever.
    """
    from distributed.comm import get_address_host

    hosts = sorted({get_address_host(worker) for worker in client.nthreads()})
    if len(hosts) < 2:
        return [{}] * n_slices
    return [
        {"workers": [hosts[at * len(hosts) // n_slices]], "allow_other_workers": True}
        for at in range(n_slices)
    ]
