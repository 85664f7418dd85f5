"""Lee and Seung's multiplicative updates, with a mask for what is missing."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Competitor


class NMF(Competitor):
    """Nonnegative matrix factorisation by multiplicative updates; entries may be missing.

    An iteration is, with M the mask of X, codes W and components H::

        W ← W ⊙ (M⊙X) Hᵀ / (M⊙(W H)) Hᵀ
        H ← H ⊙ Wᵀ(M⊙X) / Wᵀ(M⊙(W H))

    neither of which raises ``‖M⊙(X − W H)‖²``. With nothing missing this is scikit-learn's
    ``NMF(solver="mu", tol=0)``.

    Parameters
    ----------
    n_components : int, default=30
        Atoms of the dictionary.
    max_iter : int, default=200
        Iterations of a `fit`, and of a `transform`.
    init : "random" or (codes, components), default="random"
        The start: uniform noise at the scale of the data, or given. (Normal noise without its
        signs, as scikit-learn has it, ends worse on incomplete images: it starts many entries so
        close to zero that they never leave it.)
    warm_start : bool, default=False
        Continue from the last `fit` of the same rows.
    random_state : int, RandomState or None, default=None

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
    codes_ : ndarray of shape (n_samples, n_components)
        Codes of the rows of `fit`.
    n_iter_ : int
        Iterations so far.

    References
    ----------
    D. D. Lee and H. S. Seung, "Algorithms for non-negative matrix factorization", 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb.paper.competitors import NMF
    >>> X = np.outer([1.0, 2.0, 3.0], [4.0, 5.0])
    >>> X[0, 1] = np.nan
    >>> NMF(n_components=1, random_state=0).fit(X).complete(X)[0].round(6)
    array([4., 5.])
    """

    def __init__(
        self,
        n_components: int = 30,
        *,
        max_iter: int = 200,
        init: str | tuple[NDArray[Any], NDArray[Any]] = "random",
        warm_start: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_components = n_components
        self.max_iter = max_iter
        self.init = init
        self.warm_start = warm_start
        self.random_state = random_state

    def transform(self, X: Any) -> NDArray[Any]:
        """Codes of the rows of X, by `max_iter` updates of codes alone.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            NaN is missing.

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
        """
        rows = self._validated(X)
        observed = ~np.isnan(rows)
        shape = (len(rows), len(self.components_))
        codes = np.full(shape, _scale_of(rows, observed, shape[1]), rows.dtype)
        mask = _mask(observed, rows.dtype)
        rows = np.where(observed, rows, rows.dtype.type(0))
        components = self.components_.astype(rows.dtype, copy=False)
        for _ in range(self.max_iter):
            codes = updated_codes(rows, mask, codes, components)
        return codes

    def _begin(self, rows: NDArray[Any], observed: NDArray[np.bool_]) -> None:
        if isinstance(self.init, str):
            if self.init != "random":
                raise ValueError(f"init must be 'random' or (codes, components), not {self.init!r}")
            scale = 2.0 * _scale_of(rows, observed, self.n_components)
            components = scale * self._rng.random_sample((self.n_components, rows.shape[1]))
            codes = scale * self._rng.random_sample((len(rows), self.n_components))
        else:
            codes, components = self.init
        self.codes_ = np.array(codes, rows.dtype)
        self.components_ = np.array(components, rows.dtype)

    def _pass(self, rows: NDArray[Any], observed: NDArray[np.bool_]) -> None:
        mask = _mask(observed, rows.dtype)
        self.codes_ = updated_codes(rows, mask, self.codes_, self.components_)
        # The two updates are one, of X and of its transpose.
        self.components_ = updated_codes(
            rows.T, None if mask is None else mask.T, self.components_.T, self.codes_.T
        ).T

    def _validated(self, X: Any, reset: bool = False) -> NDArray[Any]:
        rows = super()._validated(X, reset)
        if (rows < 0).any():
            raise ValueError("Negative values in data passed to NMF: shift or clip them first.")
        return rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = True
        return tags


def updated_codes(
    X: NDArray[Any], mask: NDArray[Any] | None, W: NDArray[Any], H: NDArray[Any]
) -> NDArray[Any]:
    """One multiplicative update of W for ``X ≈ W H``; X is zero where the mask is."""
    fitted = W @ (H @ H.T) if mask is None else np.multiply(W @ H, mask) @ H.T
    # Where the denominator is zero, so is the numerator: the entry has no effect and stays zero.
    return W * ((X @ H.T) / np.maximum(fitted, np.finfo(X.dtype).tiny))


def _mask(observed: NDArray[np.bool_], dtype: Any) -> NDArray[Any] | None:
    """Ones and zeros; None where nothing is missing and the Gram matrix suffices."""
    return None if observed.all() else observed.astype(dtype)


def _scale_of(rows: NDArray[Any], observed: NDArray[np.bool_], n_components: int) -> float:
    """scikit-learn's scale of a start: then the products of the factors are as large as X."""
    total, count = float(np.sum(rows, where=observed)), int(np.count_nonzero(observed))
    return float(np.sqrt(total / max(count, 1) / n_components))
