"""scikit-learn's callbacks where the installed version has them, and nothing elsewhere."""

from typing import Any, Protocol

from ..learner.learner import Learner
from ..learner.progress import logger

__all__ = ["CallbackSupportMixin", "Passes", "with_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn before 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks can be set."""

    def with_callbacks(method: Any) -> Any:
        return method


class Verbose(Protocol):
    """An estimator whose passes may be logged."""

    verbose: int


class Passes:
    """Notifies callbacks of the passes of a fit; asks them whether to stop."""

    _learner: Learner

    def __init__(self, estimator: Verbose, n_passes: int, X: Any) -> None:
        self._estimator, self._X, self._most = estimator, X, n_passes
        self._n_passes = 0
        begin = getattr(estimator, "_init_callback_context", None)
        self._root = begin(max_subtasks=n_passes) if begin is not None else None
        if self._root is not None:
            self._root.call_on_fit_task_begin(estimator=estimator, X=X)

    def watch(self, learner: Learner) -> None:
        """Note the learner that the estimator adopts at the end of the fit."""
        self._learner = learner

    def begin(self) -> Any:
        if self._root is None:
            return None
        task = self._root.subcontext(task_name="pass")
        return task.call_on_fit_task_begin(estimator=self._estimator, X=self._X)

    def end(self, task: Any, number: int) -> bool:
        """True if a callback asks to stop."""
        self._n_passes = number
        if self._estimator.verbose:
            error = self._learner.error
            logger.info("pass %d of %d: prequential error %.4g", number, self._most, error)
        return task is not None and self._notify_end(task)

    def finish(self) -> None:
        """The fit has ended."""
        if self._root is not None:
            self._notify_end(self._root)

    def _notify_end(self, task: Any) -> bool:
        learner = Learner(self._learner.engine.name)
        learner.restore(self._learner.snapshot())  # nobody merges it: no digest of it is needed
        so_far = {
            "_learner": learner,
            "n_iter_": self._n_passes,
        }
        return bool(
            task.call_on_fit_task_end(
                estimator=self._estimator, X=self._X, reconstruction_attributes=so_far
            )
        )
