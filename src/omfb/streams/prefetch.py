"""Prefetching: the next blocks are read while the model learns from this one."""

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_END = object()
# Blocks in the queue: as many as a shuffle buffer yields, so the next buffer is filled meanwhile.
AHEAD = 8
# Interval of `idle` calls, and a tenth of the time that closing waits for a stuck thread.
PATIENCE_SECONDS = 0.2


def prefetched(
    items: Iterator[Item], idle: Callable[[], None] | None = None, most: int = AHEAD
) -> Generator[Item, None, None]:
    """Yield the same items, produced by a thread while earlier ones are in use.

    An error of the iterator is raised at the same place as without prefetching. If the consumer
    stops early, the thread ends after its current item; closing does not wait for an item that
    never arrives.

    Parameters
    ----------
    items : iterator
    idle : callable or None
        Called from time to time while no item arrives; it may raise to end the wait.
    most : int
        Largest number of items in the queue.
    """
    made: queue.Queue[tuple[object, BaseException | None]] = queue.Queue(most)
    unwanted = threading.Event()

    def hand_over(item: object, error: BaseException | None = None) -> None:
        while not unwanted.is_set():
            try:
                made.put((item, error), timeout=0.1)
            except queue.Full:
                continue
            return

    def work() -> None:
        try:
            for item in items:
                hand_over(item)
                if unwanted.is_set():
                    return
            hand_over(_END)
        except BaseException as error:
            hand_over(_END, error)

    thread = threading.Thread(target=work, name="omfb reads ahead", daemon=True)
    thread.start()
    try:
        while True:
            try:
                item, error = made.get(timeout=PATIENCE_SECONDS)
            except queue.Empty:
                if idle is not None:
                    idle()
                continue
            if error is not None:
                raise error
            if item is _END:
                return
            yield item  # type: ignore[misc]
    finally:
        unwanted.set()
        thread.join(10 * PATIENCE_SECONDS)
