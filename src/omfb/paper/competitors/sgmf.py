"""The paper's competitor: matrix factorisation by alternating stochastic gradients."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.broyden.encode import encode
from ...core.broyden.state import BroydenConfig, State
from ...core.linalg.rows import gram
from .base import Competitor


class DivergedError(ValueError):
    """The steps were too large for the data."""


class SGMF(Competitor):
    """Stochastic gradient matrix factorisation, one row or one mini-batch at a time.

    For the rows y of a mini-batch with codes h, in the t-th update of the dictionary W and the
    n-th visit of a row::

        W ← W − γᵂ ∇_W Σ‖y − W h‖²      γᵂ = step / tᵈᵉᶜᵃʸ, a scalar
        h ← h − γʰ ∇_h ‖y − W h‖²       γʰ = code_step / nᶜᵒᵈᵉ⁻ᵈᵉᶜᵃʸ, one for each row

    Only what is observed counts. Both steps are relative to the largest that is stable for the
    first dictionary (1/L for codes, with L the largest eigenvalue of its Gram matrix; L over the
    energy of a mini-batch for the dictionary), so that they do not depend on the unit of the data.

    Parameters
    ----------
    n_components : int, default=30
        Atoms of the dictionary.
    step, code_step : float, default=1.0, 0.5
        First steps.
    decay, code_decay : float, default=0.51, 0.51
        Powers by which the steps shrink; between 0.5 and 1 the gradients converge.
    batch_size : int, default=1
        Rows that share an update of the dictionary.
    max_iter : int, default=30
        Passes over the data, each in a new random order.
    init : {"data", "random"} or ndarray of shape (n_components, n_features), default="data"
        The first dictionary: rows of X made orthonormal, uniform on [0, 1), or given.
    warm_start : bool, default=False
        Continue from the last `fit` of the same rows.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
    codes_ : ndarray of shape (n_samples, n_components)
        Codes of the rows of `fit`, as the gradients left them. They start from zero.
    n_iter_ : int
        Passes so far.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb.paper.competitors import SGMF
    >>> X = np.outer(np.arange(1.0, 9.0), [1.0, 2.0, 2.0])
    >>> model = SGMF(n_components=1, random_state=0).fit(X)
    >>> bool(np.allclose(model.inverse_transform(model.transform(X)), X))
    True
    """

    def __init__(
        self,
        n_components: int = 30,
        *,
        step: float = 1.0,
        decay: float = 0.51,
        code_step: float = 0.5,
        code_decay: float = 0.51,
        batch_size: int = 1,
        max_iter: int = 30,
        init: str | NDArray[Any] = "data",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.step = step
        self.decay = decay
        self.code_step = code_step
        self.code_decay = code_decay
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.init = init
        self.warm_start = warm_start
        self.random_state = random_state

    def transform(self, X: Any) -> NDArray[Any]:
        """Least squares codes of the rows of X, each on what it observes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN is missing.

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
        """
        rows = self._validated(X)
        C = np.ascontiguousarray(self.components_.T)
        state = State(BroydenConfig(), C, gram(C), np.eye(C.shape[1]))
        return encode(state, rows).astype(rows.dtype, copy=False)

    def _begin(self, rows: NDArray[Any], observed: NDArray[np.bool_]) -> None:
        self.components_ = self._first_dictionary(rows, observed)
        self.codes_ = np.zeros((len(rows), self.n_components), rows.dtype)
        self._visits = np.zeros(len(rows))
        self._n_updates = 0
        largest = float(np.linalg.norm(self.components_.astype(np.float64), 2)) ** 2
        energy = float(np.mean(np.square(rows, where=observed, out=np.zeros_like(rows)))) or 1.0
        self._unit = largest / (self.batch_size * energy * rows.shape[1])
        self._code_unit = 1.0 / largest

    def _first_dictionary(self, rows: NDArray[Any], observed: NDArray[np.bool_]) -> NDArray[Any]:
        shape = (self.n_components, rows.shape[1])
        if not isinstance(self.init, str):
            return np.array(self.init, rows.dtype).reshape(shape)
        if self.init == "random":
            return self._rng.random_sample(shape).astype(rows.dtype)
        if self.init != "data":
            raise ValueError(f"init must be 'data', 'random' or an array, not {self.init!r}")
        # Codes converge at once where atoms are orthogonal, and hardly at all where they are as
        # alike as faces. With fewer rows than atoms, the rest is noise.
        counts = np.maximum(np.count_nonzero(observed, axis=0), 1)
        means = np.sum(rows, axis=0, where=observed) / counts
        chosen = self._rng.permutation(len(rows))[: shape[0]]
        atoms = self._rng.standard_normal(shape)
        atoms[: len(chosen)] = np.where(observed, rows, means)[chosen]
        directions = np.linalg.qr(atoms.T)[0].T
        atoms[: len(directions)] = directions
        return atoms.astype(rows.dtype)

    def _pass(self, rows: NDArray[Any], observed: NDArray[np.bool_]) -> None:
        order = self._rng.permutation(len(rows))
        mask = None if observed.all() else observed
        for start in range(0, len(rows), self.batch_size):
            batch = order[start : start + self.batch_size]
            self._update(batch, rows[batch], None if mask is None else mask[batch])
        with np.errstate(over="ignore", invalid="ignore"):
            energy = (np.linalg.norm(self.components_) * np.linalg.norm(self.codes_)) ** 2
        if not np.isfinite(energy):  # then the error cannot be computed in this precision
            raise DivergedError("SGMF diverged: give a smaller step or code_step.")

    def _update(
        self, batch: NDArray[np.intp], Y: NDArray[Any], mask: NDArray[np.bool_] | None
    ) -> None:
        """One alternation, for the rows Y that are number `batch` of the data."""
        self._n_updates += 1
        self._visits[batch] += 1
        codes, number = self.codes_[batch], self.codes_.dtype.type
        step = self.step * self._unit / self._n_updates**self.decay
        code_steps = self.code_step * self._code_unit / self._visits[batch] ** self.code_decay
        with np.errstate(over="ignore", invalid="ignore"):  # divergence is found after the pass
            descent = 2 * codes.T @ _residual(Y, codes, self.components_, mask)
            self.components_ = self.components_ + number(step) * descent
            descent = 2 * _residual(Y, codes, self.components_, mask) @ self.components_.T
            self.codes_[batch] = codes + code_steps[:, None].astype(number) * descent


def _residual(
    Y: NDArray[Any], codes: NDArray[Any], W: NDArray[Any], mask: NDArray[np.bool_] | None
) -> NDArray[Any]:
    residual = Y - codes @ W
    return residual if mask is None else np.multiply(residual, mask, out=residual)
