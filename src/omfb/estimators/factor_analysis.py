"""`OnlineFactorAnalysis`: the probabilistic extension of the paper's algorithm."""

from typing import Any

import numpy as np

from .decomposition import Decomposition
from .predictive import PredictiveFactorizer


class OnlineFactorAnalysis(Decomposition, PredictiveFactorizer):
    r"""Factor analysis of a stream of rows that may have missing entries.

    A row is a mean, a few components and noise,

    .. math:: y = \mu + C x + \varepsilon, \qquad x \sim N(0, I),

    where C is the dictionary (`components_` is its transpose) and x the code of the row. Each row
    is coded from its observed entries and learned once, in time and memory that do not grow with
    the number of rows. Missing entries are NaN, or absent from a sparse matrix. The mean, the
    noise, the number of components and the learning rate are estimated from the rows.

    Parameters
    ----------
    n_components : int or None, default=None
        Upper bound on the number of components; those that the data do not need are switched off.
        None is half the number of features, two thirds of up to 60, at least 10 and at most 100;
        always fewer than features.
    forget_factor : float or "auto", default=1.0
        Weight that the past keeps with each new row: with 1 nothing is forgotten, 0.99 remembers
        about 100 rows (for data that change). "auto" forgets nothing until a change is noticed
        (`drift_`), and most of the past then.
    center : bool, default=True
        Whether a mean is learned.
    scale : bool, default=False
        Whether each feature is measured in standard deviations of its own.
    noise : {"isotropic", "diagonal"}, default="isotropic"
        Whether the features share one noise variance, or have one each.
    robust : bool, default=True
        Whether single entries that are far from what the rest of their row predicts count as
        missing. They do only where the data have heavy tails and this improves the predictions.
    temporal : bool or None, default=None
        Whether rows are consecutive in time, so that neighbours help to fill them. None is True
        for frames with an index of times in ascending order: a DatetimeIndex, PeriodIndex or
        TimedeltaIndex. Rows may be unevenly spaced.
    seasons : "auto", None or list, default="auto"
        Cycles in time that columns follow, in forecasts and in gaps: their lengths, as numbers of
        rows or durations such as "24h". "auto" looks for them, and keeps those that help to predict
        parts of the table that were left out. Only temporal models use it.
    covariates : list of str or int, or None, default=None
        Columns that are always known, such as holidays or the weather, also for the rows of a
        forecast: names, or numbers from 0. What they explain is learned beside the seasons, and
        what they do not explain costs nothing. Only for rows in time.
    new_features : {"add", "error", "ignore"} or None, default=None
        What `partial_fit` does with a key of a row by name that is no feature of the model yet: add
        a feature, refuse the row, or leave the entry out. None adds it, and warns once.
    drop_after : int or None, default=None
        `partial_fit` drops features, and forgets their names, that no row has observed for so many
        rows (up to an eighth more). If one comes again, it is a new one. None drops nothing.
    max_iter : int or None, default=None
        Passes over the data in `fit`. None is 1, and 2 over tables of less than 4000 rows;
        rows of which less than half is observed count for less.
    tol : float, default=0.0
        Stop when a pass lowers the prequential error by less than this share; 0 runs all passes.
    shuffle : bool or "uniform", default=True
        Whether `fit` takes rows in random order, as they lie, or drawn with replacement.
    random_state : int, RandomState or None, default=None
        Seed of the order of rows and of the entries that are held out.
    verbose : int, default=0
        If positive, log each pass to the logger "omfb", and show a progress bar (in terminals and
        notebooks that have Rich; elsewhere the log is printed, unless logging is configured).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The dictionary in the data's units, an atom in a row, in descending order of variance.
    n_components_ : int
        Components that stand out of the noise.
    mean_ : ndarray of shape (n_features,)
        Mean of each feature.
    scale_ : ndarray of shape (n_features,)
        Unit of each feature: its standard deviation in the first rows; one for all if not scaled.
    noise_variance_ : float or ndarray of shape (n_features,)
        Variance of the noise; one for each feature if `noise="diagonal"`.
    explained_variance_ : ndarray of shape (n_components,)
        Variance that each component explains, in units of `scale_` if scaled.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        The same as a share of the total variance, noise included.
    outliers_ : ndarray of shape (n_features,)
        How many entries of each feature counted as outliers.
    residuals_ : ndarray of shape (n_rows, n_features)
        Residuals of the last row, or of the last rows of a temporal model.
    prequential_error_ : float
        Relative error over the last pass (over the first, if no entry is missing) of entries that
        were held out: predicted from the rest of their row before the dictionary learned them.
    recent_error_ : float
        Relative error of the last 50 or so rows, each entry predicted from the rest of its row
        before the row was learned: it rises when the data change, and comes down again.
    drift_ : ndarray of int
        Rows, counted from 1, at which a change was noticed; the last 32 of them. On stationary
        rows, a false alarm comes about once in 50,000 rows.
    seasons_ : list
        Lengths of the cycles in time that were found: timedeltas if rows have times, otherwise
        numbers of rows.
    error_history_ : ndarray of shape (n_points, 2)
        Rows learned, and the error of the rows since the point before; see `omfb.plots`.
    n_samples_seen_ : int
        Rows learned from, in all passes.
    n_iter_ : int
        Passes made by `fit`.
    n_features_in_ : int
        Features of a row.
    feature_names_in_ : ndarray of shape (n_features,)
        Their names, if X had any.
    learner_ : Learner
        Does the work: states, codes and snapshots without scikit-learn.

    See Also
    --------
    OMFB : The paper's algorithm, in which everything is given.
    OMFBImputer : The same model for tables: columns of any unit, and `transform` fills.

    Examples
    --------
    >>> import numpy as np
    >>> from omfb import OnlineFactorAnalysis
    >>> rng = np.random.default_rng(0)
    >>> X = rng.random((500, 4)) @ rng.random((4, 50))
    >>> X += 0.01 * rng.standard_normal(X.shape)
    >>> X[rng.random(X.shape) < 0.2] = np.nan
    >>> model = OnlineFactorAnalysis(random_state=0).fit(X)
    >>> model.explained_variance_ratio_[:5].round(1)
    array([0.8, 0.1, 0.1, 0.1, 0. ])
    >>> bool(model.score(X) > 0.99)
    True
    >>> low, high = model.interval(X, level=0.9)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        forget_factor: float | str = 1.0,
        center: bool = True,
        scale: bool = False,
        noise: str = "isotropic",
        robust: bool = True,
        temporal: bool | None = None,
        seasons: Any = "auto",
        covariates: Any = None,
        new_features: str | None = None,
        drop_after: int | None = None,
        max_iter: int | None = None,
        tol: float = 0.0,
        shuffle: bool | str = True,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.forget_factor = forget_factor
        self.center = center
        self.scale = scale
        self.noise = noise
        self.robust = robust
        self.temporal = temporal
        self.seasons = seasons
        self.covariates = covariates
        self.new_features = new_features
        self.drop_after = drop_after
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.random_state = random_state
        self.verbose = verbose

    def transform(self, X: Any, *, entry_weight: Any = None) -> Any:
        """Codes of the rows of X, which may have missing entries.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        entry_weight : array-like or sparse matrix of the shape of X, or None, default=None
            How precise each entry is, as in `fit`.

        Returns
        -------
        codes : ndarray of shape (n_samples, n_components)
            A Dask collection if X is one, computed when it is needed.
        """
        if entry_weight is None:
            return super().transform(X)
        learner = self.learner_
        rows = self._weighted_rows(X, self._rows(learner, X), entry_weight)
        return learner.encode(rows, self.current_config())
