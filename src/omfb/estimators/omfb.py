"""`OMFB`: the decomposition."""

from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from .base import Factorizer
from .parameters import rule_of
from .validation import codes_array


class OMFB(ClassNamePrefixFeaturesOutMixin, Factorizer):  # type: ignore[misc]
    r"""Online matrix factorisation via Broyden updates: X ≈ codes @ components_.

    Each row y is coded and learned from once, at the cost of two products with the dictionary.
    With C the dictionary (`components_` is its transpose), minimise over the code x and C

    .. math:: \|y - Cx\|^2 + tr((C - C_-) \bar S (C - C_-)^T) + ridge \|x\|^2 + smooth \|x - x_-\|^2

    over the observed entries of y by alternating `inner_iter` times, where
    :math:`\bar S = memory\, S + (1 - memory)\, lam\, I` and S sums up the codes so far, later ones
    with a higher weight. Missing entries are NaN, or absent from a sparse matrix. A row costs
    O(n_features · n_components), and memory is that of the dictionary and a block of rows.

    Parameters
    ----------
    n_components : int, default=30
        Atoms of the dictionary.
    lam : float, default=1.0
        How stiffly the dictionary stays where it is, in rows: the first dictionary weighs
        as much as `lam` rows (with ``init="data"``).
    memory : float, default=1.0
        How long past codes count: 1 for ever, each in proportion to how late it came (recursive
        least squares; best where the data do not change), 0.99 about 100 rows (for drifting data),
        0 not at all (the paper's rule).
    ridge : float, default=0.0
        Pull of a code towards zero. Raise it where rows have few observed entries.
    smooth : float, default=0.0
        Pull of a code towards that of the row before, for time series. Needs ``shuffle=False``.
    shrink : float, default=0.0
        Pull of the dictionary towards zero, in rows; if positive, codes also count with
        their uncertainty. Raise it, with `ridge`, where missing values are filled
        from many components.
    inner_iter : int, default=2
        Alternations between code and dictionary for each update.
    batch_size : int, default=1
        Rows that share one update. 1 is the paper's Algorithm 1 and usually both better and faster.
    max_iter : int, default=1
        Passes over the data in `fit`.
    tol : float, default=0.0
        Stop when a pass lowers the prequential error by less than this share; 0 runs all passes.
    shuffle : bool or "uniform", default=True
        Whether `fit` takes rows in random order, as they lie, or drawn with replacement.
    init : {"data", "random"} or array of shape (n_components, n_features), default="data"
        First dictionary: distinct rows from the head of the stream, at 1/√n_components of their
        size; uniform on [0, 1) as in the paper; or given. Where rows are mostly missing, "data" is
        small noise at the data's scale.
    random_state : int, RandomState or None, default=None
        Seed of the order of rows and of the first dictionary.
    verbose : int, default=0
        If positive, log each pass to the logger "omfb", and show a progress bar (in terminals and
        notebooks that have Rich; elsewhere the log is printed, unless logging is configured).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The dictionary, an atom in a row.
    n_samples_seen_ : int
        Rows learned from, in all passes.
    prequential_error_ : float
        Relative error over the last pass, of each row before the dictionary learned from it. Rows
        that the first dictionary was drawn from look easy, so it is optimistic for short streams.
    n_iter_ : int
        Passes made by `fit`.
    n_features_in_ : int
        Features of a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.

    See Also
    --------
    OMFBImputer : The same model whose `transform` fills missing values.

    References
    ----------
    Ö. D. Akyıldız, *Online Matrix Factorization via Broyden Updates*, arXiv:1506.04389, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import OMFB
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 4)) @ rng.random((4, 50))
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = OMFB(n_components=4, random_state=0).fit(X)
    >>> model.transform(X).shape
    (500, 4)
    >>> bool(model.score(X) > 0.999)
    True
    """

    def transform(self, X: Any) -> NDArray[Any]:
        """Codes of the rows of X, which may have missing entries.

        With ``smooth > 0`` the rows are taken as consecutive in time and coded jointly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
        """
        learner = self.learner_
        codes = learner.encode(self._rows(learner, X), rule_of(self))[0]
        return codes.astype(learner.dtype, copy=False)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows from their codes: ``X @ components_``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Codes, as from `transform`.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
        """
        learner = self.learner_
        codes = codes_array(X)
        if codes.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {codes.shape[1]} columns, but codes have n_components = "
                f"{self._n_features_out}. Give what `transform` returns."
            )
        return learner.decode(codes)

    @property
    def _n_features_out(self) -> int:
        return self.learner_.n_components
