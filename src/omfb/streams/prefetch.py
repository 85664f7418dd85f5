"""Reading the next block while this one is learned from."""

import queue
import threading
from collections.abc import Callable, Generator, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_END = object()
# As many blocks as a shuffle buffer gives at once: while they are in use, the next is filled.
AHEAD = 8
# How long the consumer, and whoever wants it to stop, may have to wait for a thread that is stuck.
PATIENCE_SECONDS = 0.2


def read_ahead(
    items: Iterator[Item], idle: Callable[[], None] | None = None, most: int = AHEAD
) -> Generator[Item, None, None]:
    """Yield the same items, made in a thread while those before are in use.

    An error of the iterator comes where it would have come. If the consumer stops early, the
    thread ends after the item it is at; nobody waits for one that does not come.

    Parameters
    ----------
    items : iterator
    idle : callable or None
        Called every now and then while no item comes; it may raise to end the wait.
    most : int
        How many items may be ahead.
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
