"""`OMFB`: the decomposition."""

from typing import Any, ClassVar

from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from ..adapters.dask.lazy import Columns, is_dask, is_frame, lazily
from ..core.broyden.engine import BROYDEN
from .base import Factorizer
from .parameters import Plan
from .validation import codes_array


class OMFB(ClassNamePrefixFeaturesOutMixin, Factorizer):  # type: ignore[misc]
    r"""Online matrix factorisation of data that may have missing entries; nothing needs tuning.

    A row is a mean, a few components and noise,

    .. math:: y = \mu + C x + \varepsilon, \qquad x \sim N(0, I),

    where C is the dictionary (`components_` is its transpose) and x the code of the row. Each row
    is coded from what it observes and learned from once, in time and memory that do not grow with
    the number of rows. Missing entries are NaN, or absent from a sparse matrix.

    *A number that is given is obeyed; what is None is found from the data*: mean, noise, how many
    components there are and how strongly codes and dictionary are held back. With ``memory=0`` the
    rule of the paper is followed to the letter, and nothing is found: for a row y and its code x,

    .. math:: \|y - Cx\|^2 + lam \|C - C_-\|^2 + ridge \|x\|^2 + smooth \|x - x_-\|^2

    is minimised over its observed entries by alternating between x and C. The same holds, with a
    memory of past codes, if `lam`, `ridge` and `shrink` are given and nothing is centred or scaled.

    Parameters
    ----------
    n_components : int or None, default=None
        At most so many components; those that the data do not need are switched off. None is half
        the number of features, two thirds of up to 60, at least 10 and at most 100 (30 with
        `memory=0`); always fewer than features.
    lam : float or None, default=None
        How many rows the first dictionary weighs. None is a third of those it is made from.
    memory : float, default=1.0
        How long rows count: 1 for ever, 0.99 about 100 rows (for data that change), 0 not at all,
        which is the paper's rule.
    ridge : float or None, default=None
        Pull of a code towards zero. None is what noise and variances call for.
    smooth : float or None, default=None
        Pull of a code towards that of the row before. None is found, if rows are in time.
    shrink : float or None, default=None
        Pull of the dictionary towards zero, in rows. None is found for each component.
    inner_iter : int or None, default=None
        Alternations between codes and dictionary for each update. None is 1 (2 with `memory=0`).
    batch_size : int or None, default=None
        Rows that share one update. None grows from 16 to 256, of complete rows from 256 to 1024 (1
        with `memory=0`).
    center : bool or None, default=None
        Whether a mean is learned. None is True.
    scale : bool or None, default=None
        Whether each feature is measured in deviations of its own. None is False.
    noise : {"shared", "feature"} or None, default=None
        Whether features share one noise. None is "shared".
    outliers : bool, default=True
        Whether single entries that are far from what the rest of their row says count as missing.
        They do only where the data have heavy tails and leaving them out fills better.
    in_time : bool or None, default=None
        Whether neighbouring rows belong together. None is True for frames with a DatetimeIndex.
    max_iter : int or None, default=None
        Passes over the data in `fit`. None is 1, and up to 3 over tables of less than 4000 rows;
        rows of arrays that observe less than half of the features count for less.
    tol : float, default=0.0
        Stop when a pass lowers the prequential error by less than this share; 0 runs all passes.
    shuffle : bool or "uniform", default=True
        Whether `fit` takes rows in random order, as they lie, or drawn with replacement.
    init : {"data", "random"} or array of shape (n_components, n_features), default="data"
        First dictionary: found from the first rows, uniform on [0, 1), or given.
    random_state : int, RandomState or None, default=None
        Seed of the order of rows and of the first dictionary.
    verbose : int, default=0
        If positive, log each pass to the logger "omfb", and show a progress bar (in terminals and
        notebooks that have Rich; elsewhere the log is printed, unless logging is configured).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The dictionary in the data's units, an atom in a row, in falling order of variance. A Dask
        array if it was learned by features.
    n_components_ : int
        Components that stand out of the noise.
    mean_ : ndarray of shape (n_features,)
        Mean of each feature.
    scale_ : ndarray of shape (n_features,)
        Unit of each feature: its deviation in the first rows; one for all if not scaled.
    noise_variance_ : float or ndarray of shape (n_features,)
        Variance of the noise; one for each feature if `noise="feature"`.
    explained_variance_ : ndarray of shape (n_components,)
        Variance that each component explains, in units of `scale_` if scaled.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as a share of all variance, that of the noise included.
    outliers_ : ndarray of shape (n_features,)
        How many entries of each feature were taken for outliers.
    residuals_ : ndarray of shape (n_rows, n_features)
        What is not explained of the last row, or of the last rows if they are in time.
    prequential_error_ : float
        Relative error over the last pass (over the first, if no entry is missing), of entries
        that were hidden from their rows' codes and that the dictionary had not learned from;
        with `memory=0`, of each row before the dictionary learned from it.
    recent_error_ : float
        The same of the last rows only: it rises when the data change.
    n_samples_seen_ : int
        Rows learned from, in all passes.
    n_iter_ : int
        Passes made by `fit`.
    n_features_in_ : int
        Features of a row.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if X had any.
    learner_ : Learner
        Does the work: states, codes and snapshots without scikit-learn.

    See Also
    --------
    OMFBImputer : The same model for tables: columns of any unit, and `transform` fills.

    References
    ----------
    Ö. D. Akyıldız, *Online Matrix Factorization via Broyden Updates*, arXiv:1506.04389, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import OMFB
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 4)) @ rng.random((4, 50))
    >>> X += 0.01 * rng.standard_normal(X.shape)
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = OMFB(random_state=0).fit(X)
    >>> model.explained_variance_ratio_[:5].round(2)
    array([0.75, 0.1 , 0.09, 0.06, 0.  ])
    >>> bool(model.score(X) > 0.99)
    True
    >>> low, high = model.interval(X, level=0.9)
    >>> OMFB(4, memory=0, random_state=0).fit(X).transform(X).shape
    (500, 4)
    """

    wants_scale: ClassVar[bool] = False

    def transform(self, X: Any) -> NDArray[Any]:
        """Codes of the rows of X, which may have missing entries.

        With `memory=0` and ``smooth > 0`` the rows are taken as consecutive in time and coded
        jointly.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
            A Dask collection if X is one, computed when it is asked for.
        """
        learner = self.learner_
        if is_dask(X):
            names = self.get_feature_names_out().tolist()
            return lazily(self, "transform", X, Columns(names, learner.dtype))
        return learner.encode(self._rows(learner, X), self._plan(learner).rule)

    def inverse_transform(self, X: Any) -> NDArray[Any]:
        """Rows from their codes: ``X @ components_``, and the mean if there is one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Codes, as from `transform`.

        Returns
        -------
        rows : ndarray of shape (n_samples, n_features)
            A Dask collection if X is one, computed when it is asked for.
        """
        learner = self.learner_
        if is_dask(X):
            names = learner.feature_names or [f"x{i}" for i in range(learner.n_features)]
            return lazily(self, "inverse_transform", X, Columns(names, learner.dtype))
        codes = codes_array(X)
        if codes.shape[1] != self._n_features_out:
            raise ValueError(
                f"X has {codes.shape[1]} columns, but codes have n_components = "
                f"{self._n_features_out}. Give what `transform` returns."
            )
        return learner.decode(codes)

    def _spreads(self, X: Any, plan: Plan) -> bool:
        if is_frame(X) or X.ndim != 2 or plan.engine is not BROYDEN or plan.rule.shrink > 0.0:
            return False
        return sum(width != 0 for width in X.chunks[1]) > 1

    @property
    def _n_features_out(self) -> int:
        learner = self.learner_
        return learner.engine.n_components(learner.state)
