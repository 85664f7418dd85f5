"""Checkpoints of a fit: when they are written, what they hold, and which fits can use them."""

import math
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..core.require import require
from ..persistence import ModelFileError, locked, read_model, write_model
from ..persistence.modelfile import Tensors
from ..streams import Position, Source
from .learner import Learner
from .records import (
    FAULTS,
    Parts,
    not_written_by_omfb,
    parts_of,
    row_numbers,
    rows_of,
    rows_parts,
    snapshot_of,
)
from .row_sample import RowSample
from .snapshot import Snapshot

# A checkpoint that takes long is written less often, so that it never costs more than 2 %.
LONGEST_SHARE = 0.02
SECONDS = {"s": 1.0, "": 1.0, "m": 60.0, "h": 3600.0}
# Words of NumPy's Mersenne Twister.
KEY_LENGTH = 624


class CheckpointError(ValueError):
    """A checkpoint that this fit cannot use.

    Attributes
    ----------
    problem : str
        What is wrong, without advice: that depends on the interface.
    kind : {"exists", "finished", "parameters", "data"}
    """

    ADVICE: ClassVar = {
        "exists": "Pass resume=True to continue from it, or delete it.",
        "finished": "Load it as a model.",
        "parameters": "Use the parameters that it began with, or another checkpoint.",
        "data": "Give the same data, or another checkpoint.",
    }

    def __init__(self, kind: str, problem: str) -> None:
        super().__init__(f"{problem}. {self.ADVICE[kind]}")
        self.kind, self.problem = kind, problem


@dataclass(frozen=True, slots=True)
class FitPosition:
    """Where a fit is, after a block: with the model, all that is needed to continue.

    Attributes
    ----------
    number : int
        Which pass, from 1.
    random : dict
        State of the random generator when the pass began.
    position : Position
        Where in the pass the stream is.
    unseen : ndarray of shape (n_features,)
        Features that no row has observed yet.
    error_before : float
        Prequential error of the pass before; infinity in the first.
    finished : bool
        Whether there is nothing left to learn.
    """

    number: int
    random: dict[str, Any]
    position: Position
    unseen: NDArray[np.bool_]
    error_before: float = math.inf
    finished: bool = False

    @classmethod
    def first(cls, rng: np.random.RandomState, n_features: int) -> Self:
        """Where a fit begins."""
        return cls(1, rng.get_state(legacy=False), None, np.ones(n_features, dtype=bool))

    def parts(self, tensors: Tensors) -> dict[str, Any]:
        """As a header can hold it; the unseen features go to the tensors."""
        tensors["training.unseen"] = self.unseen.astype(np.uint8)
        state = self.random["state"]
        return {
            "pass": self.number,
            "position": self.position,
            "error_before": self.error_before if math.isfinite(self.error_before) else None,
            "finished": self.finished,
            "random": {
                "key": state["key"].tolist(),
                "pos": int(state["pos"]),
                "has_gauss": int(self.random["has_gauss"]),
                "gauss": float(self.random["gauss"]),
            },
        }

    @classmethod
    def of(cls, header: dict[str, Any], tensors: Tensors) -> Self | None:
        """The position that a checkpoint holds; None for a model whose fit has ended.

        Raises
        ------
        ModelFileError
            If it holds something that no fit can have written.
        """
        training = header.get("training")
        if training is None:
            return None
        try:
            return cls._checked(training, tensors["training.unseen"])
        except FAULTS as error:
            raise ModelFileError(
                f"a checkpoint that omfb cannot have written ({error})."
            ) from error

    @classmethod
    def _checked(cls, training: dict[str, Any], unseen: NDArray[Any]) -> Self:
        number, before, finished = (training[name] for name in ("pass", "error_before", "finished"))
        require(type(number) is int and number >= 1, "the number of its pass")
        require(type(finished) is bool, "whether it is finished")
        require(before is None or (_is_number(before) and before >= 0.0), "the error before")
        require(unseen.dtype == np.uint8 and unseen.ndim == 1, "which features are unseen")
        require(bool((unseen <= 1).all()), "which features are unseen")
        return cls(
            number,
            _random_state(training["random"]),
            training["position"],
            unseen.astype(bool),
            error_before=math.inf if before is None else float(before),
            finished=finished,
        )


def _random_state(random: dict[str, Any]) -> dict[str, Any]:
    """The generator's state. NumPy does not check it: a wrong one would end the process."""
    key, pos, has_gauss, gauss = (random[name] for name in ("key", "pos", "has_gauss", "gauss"))
    fits = isinstance(key, list) and len(key) == KEY_LENGTH
    require(fits and all(type(word) is int and 0 <= word < 2**32 for word in key), "random key")
    require(type(pos) is int and 0 <= pos <= KEY_LENGTH, "random position")
    require(type(has_gauss) is int and has_gauss in (0, 1) and _is_number(gauss), "random gauss")
    return {
        "bit_generator": "MT19937",
        "state": {"key": np.array(key, dtype=np.uint32), "pos": pos},
        "has_gauss": has_gauss,
        "gauss": float(gauss),
    }


class Checkpoints:
    """Saves a model to a file from time to time; does nothing without a file.

    Used as a context, it holds the file's lock.

    Parameters
    ----------
    path : path or None
    every : str
        "30s" or "10000rows".
    header : dict
        What the file holds besides the learner.
    source : Source or None, default=None
        The data, whose fingerprint the file holds.
    resume : bool, default=False
        Whether the file may exist already.
    """

    def __init__(
        self, path: str | os.PathLike[str] | None, every: str, header: dict[str, Any],
        source: Source | None = None, *, resume: bool = False,
    ) -> None:  # fmt: skip
        if path is None and resume:
            raise ValueError("resume=True needs a checkpoint: the file to go on from.")
        self.path = path
        self.header, self.exists = header, False
        self._seconds, self._rows = interval(every)
        self._source, self._resume = source, resume
        self._lock = None if path is None else locked(path)
        self._due, self._rows_then = 0.0, 0

    def __enter__(self) -> Self:
        if self._lock is None or self.path is None:
            return self
        self._lock.__enter__()
        try:
            self.exists = os.path.exists(self.path)
            if self.exists and not self._resume:
                raise CheckpointError("exists", f"{self.path}: a checkpoint exists already")
            if self._source is not None:
                self.header = {**self.header, "source": self._source.fingerprint()}
        except BaseException:
            self._lock.__exit__(None, None, None)
            raise
        self._due = time.monotonic() + (self._seconds or 0.0)
        return self

    def __exit__(self, *error: object) -> None:
        if self._lock is not None:
            self._lock.__exit__(None, None, None)

    def is_due(self, n_rows: int) -> bool:
        """Whether it is time, n_rows having been learned from, some of them since the last."""
        if self.path is None or n_rows == self._rows_then:
            return False
        if self._rows is not None:
            return n_rows - self._rows_then >= self._rows
        return time.monotonic() >= self._due

    def save(
        self, snapshot: Snapshot, place: FitPosition | None = None,
        sample: RowSample | None = None, found: Mapping[str, NDArray[Any]] | None = None,
        **more: Any,
    ) -> None:  # fmt: skip
        """Write what was learned and found, and where the fit or the pipe is."""
        if self.path is None:
            return
        began = time.monotonic()
        parts = parts_of(snapshot)
        training = None if place is None else place.parts(parts.tensors)
        if training is not None and sample is not None and len(sample):
            kind = rows_parts(sample.rows(), "head.sample", parts.tensors)
            parts.tensors["head.sample_numbers"] = sample.numbers()
            training |= {"sample": kind, "sampled_from": sample.n_seen}
        header = {**self.header, **parts.header, "training": training, **more}
        write_model(self.path, header, {**parts.tensors, **(found or {})})
        ended = time.monotonic()
        self._due = ended + max(self._seconds or 0.0, (ended - began) / LONGEST_SHARE)
        self._rows_then = snapshot.n_seen


def resumed(
    learner: Learner, saver: Checkpoints, source: Source, max_iter: int
) -> tuple[FitPosition, RowSample, Mapping[str, NDArray[Any]]]:
    """Restore the learner from a checkpoint of this very fit.

    Return its position, its sample, and all tensors of the file.
    """
    path = saver.path
    assert path is not None
    parts = Parts(*read_model(path))
    try:
        place = FitPosition.of(parts.header, parts.tensors)
        before = snapshot_of(parts)
        sample = _sample(learner, parts, source.n_features)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from error
    if place is None:
        raise CheckpointError(
            "finished", f"{path}: a finished model, not a checkpoint to continue from"
        )
    if before.engine.name != learner.engine.name:
        raise CheckpointError("parameters", f"{path}: began with another algorithm")
    _check_parameters(path, parts.header.get("parameters"), saver.header.get("parameters"))
    if not _same_init(before.init, learner.init):
        raise CheckpointError("parameters", f"{path}: began with another init")
    if not _same_data(parts.header, saver.header["source"], before, source):
        raise CheckpointError("data", f"{path}: began with other data than {source.name} is now")
    if place.number > max_iter or len(place.unseen) != source.n_features:
        raise ModelFileError(f"{path}: a checkpoint that omfb cannot have written (its place).")
    try:
        source.check_position(place.position)
    except FAULTS as error:
        raise ModelFileError(
            f"{path}: a checkpoint that omfb cannot have written ({error})."
        ) from error
    learner.restore(before)
    return place, sample, parts.tensors


def _sample(learner: Learner, parts: Parts, n_features: int) -> RowSample:
    """The sample of the pass that a checkpoint holds."""
    size, training = learner.engine.n_finalize_rows(n_features), parts.header.get("training")
    if training is None or training.get("sample") is None:
        return RowSample(size)
    try:
        rows = rows_of(training["sample"], "head.sample", parts.tensors, n_features)
        n_seen = training["sampled_from"]
        require(type(n_seen) is int and rows.shape[0] == min(size, n_seen), "its sample")
        numbers = row_numbers(parts.tensors, "head.sample_numbers", rows.shape[0])
    except FAULTS as error:
        raise not_written_by_omfb(error) from error
    return RowSample(size, rows, numbers.tolist(), n_seen)


def _check_parameters(
    path: str | os.PathLike[str], before: Any, now: dict[str, Any] | None
) -> None:
    if now is None or not isinstance(before, dict):
        return
    for name, value in now.items():
        # Neither `verbose` nor a parameter that an older version did not have changes the result.
        if name == "verbose" or name not in before:
            continue
        old = before[name]
        if type(old) is not type(value) or old != value:
            raise CheckpointError("parameters", f"{path}: began with {name} = {old}, not {value}")


def _same_init(before: Any, now: Any) -> bool:
    if isinstance(before, str) or isinstance(now, str):
        return isinstance(before, str) and isinstance(now, str) and before == now
    return bool(np.array_equal(before, now))


def _same_data(
    header: dict[str, Any], now: dict[str, Any], before: Snapshot, source: Source
) -> bool:
    """Whether all that the checkpoint holds of its data is so; older ones hold less."""
    saved = header.get("source")
    if not isinstance(saved, dict) or saved.get("n_features") != source.n_features:
        return False
    same = all(now.get(name) == value for name, value in saved.items())
    return same and before.feature_names == source.feature_names


def interval(every: str) -> tuple[float | None, int | None]:
    """Seconds or rows between two checkpoints."""
    match = re.fullmatch(r"\s*(\d{1,12}(?:\.\d{1,12})?)\s*(s|m|h|rows?|)\s*", str(every))
    if match is None:
        raise ValueError(f"every must be like 30s, 5m, 1h or 10000rows, got {every!r:.80}.")
    number, unit = float(match.group(1)), match.group(2)
    if unit.startswith("row"):
        return None, max(1, int(number))
    return number * SECONDS[unit], None


def _is_number(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)
