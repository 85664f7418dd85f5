"""Reading the next block while this one is learned from."""

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

Item = TypeVar("Item")
_END = object()
# As many blocks as a shuffle buffer gives at once: while they are in use, the next is filled.
AHEAD = 8


def read_ahead(items: Iterator[Item], most: int = AHEAD) -> Iterator[Item]:
    """Yield the same items, made in a thread while those before are in use, up to `most` ahead.

    An error of the iterator comes where it would have come. If the consumer stops early, the
    thread ends after the item it is at.
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
            item, error = made.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item  # type: ignore[misc]
    finally:
        unwanted.set()
        thread.join()
