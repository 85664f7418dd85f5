"""Model files as commands write them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..estimators.base import BaseFactorizer


def save_model(
    model: "BaseFactorizer", output: Path, missing: str | None = None, like: Any = None
) -> None:
    """Write a model; remove what a process that was killed while it did has left.

    Parameters
    ----------
    model : BaseFactorizer
    output : Path
    missing : str or None
        What stands for a missing value in the data, as ``--missing`` takes it.
    like : path or None
        The file that the model is made from, whose permissions a new file gets.
    """
    from ..estimators.files import write_estimator
    from ..persistence import LockedError, locked

    more: dict[str, Any] = {} if not missing else {"reading": {"missing": missing.split(",")}}
    try:
        with locked(output):
            write_estimator(model, output, like=like, **more)
    except LockedError:  # another process writes it as well: the later one wins
        write_estimator(model, output, like=like, **more)
