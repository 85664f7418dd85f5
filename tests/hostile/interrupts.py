"""Interrupts: KeyboardInterrupt at any moment, as Ctrl-C raises it, leaves the old or the new."""

import copy
import signal
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np

from omfb.learner.records import parts_of

from ..making import sparse
from .models import demand_sound, fitted, fresh, good_rows
from .trial import ACCEPTED, CHANGED, REFUSED, demand


def try_interrupt(rng: np.random.Generator, folder: Path) -> list[str]:
    """Interrupt learning, fitting, filling or saving at a random moment."""
    X = good_rows()[: int(rng.choice([1, 2, 40]))]
    kind = rng.choice(["partial_fit", "partial_fit", "partial_fit", "fit", "complete", "save"])
    if rng.random() < 0.2:
        X = sparse(X)
    model = fresh(rng) if rng.random() < 0.1 and kind in ("fit", "partial_fit") else fitted(rng)
    if model.__sklearn_is_fitted__():
        X = X.astype(model.learner_.dtype)
        model.partial_fit(X[:1])
    path = folder / "m.omfb"
    calls: dict[str, Callable[[Any], Any]] = {
        "partial_fit": lambda one: one.partial_fit(X),
        "fit": lambda one: one.fit(X),
        "complete": lambda one: one.complete(X),
        "save": lambda one: one.save(path),
    }
    call = calls[str(kind)]
    whole = copy.deepcopy(model)
    old = parts(model)
    began = time.perf_counter()
    call(whole)
    took = time.perf_counter() - began
    new = parts(whole)
    if kind == "save":
        model.save(path)
    try:
        with interrupted_after(rng.uniform(0.0, 1.1 * took)):
            call(model)
    except KeyboardInterrupt:
        pass
    except SystemError as error:  # what Numba makes of an interrupt while it hands back results
        if "KeyboardInterrupt" not in "".join(traceback.format_exception(error)):
            raise
    after = parts(model)
    demand(after in (old, new), CHANGED, f"{kind} was interrupted, and half done")
    if kind == "save":
        demand([file.name for file in folder.iterdir()] == [path.name], CHANGED, "a file was left")
        demand_sound(type(model).load(path))
    elif after == old and kind != "complete":
        call(model)  # no lock is held, nothing is half done
        demand(parts(model) == new, CHANGED, f"after an interrupt {kind} does something else")
    return [ACCEPTED if after == new else REFUSED]


def parts(model: Any) -> Any:
    """All that a model has learned, to compare bit by bit."""
    if not model.__sklearn_is_fitted__():
        return None
    made = parts_of(model.learner_.snapshot())
    return made.header, {name: tensor.tobytes() for name, tensor in made.tensors.items()}


@contextmanager
def interrupted_after(seconds: float) -> Iterator[None]:
    """Raise KeyboardInterrupt after so many seconds, unless all is done by then."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
