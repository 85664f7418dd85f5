"""`OMFB`: the paper's algorithm."""

from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ..adapters.dask.by_features import FeatureSource, is_cut_along_columns
from ..core.broyden.config import BroydenConfig
from ..core.broyden.engine import BROYDEN
from ..core.checks import checked_count, shown
from ..core.engine import Init
from ..core.engines import AnyConfig, AnyEngine
from ..streams import Source
from ..streams.base import HintedError
from .decomposition import Decomposition
from .parameters import checked_init, init_array, is_flag
from .validation import Checked, look_like_counts
from .warn import warn
from .weights import weighted_rows


class OMFB(Decomposition):
    r"""Online matrix factorisation via Broyden updates, for data that may have missing entries.

    For each row y a code x and the next dictionary C (`components_` is its transpose) minimise

    .. math:: \|y - Cx\|^2 + lam \|C - C_-\|^2 + ridge \|x\|^2 + smooth \|x - x_-\|^2

    over the observed entries, by alternating between x and C. Time and memory of an update do not
    grow with the number of rows. Missing entries are NaN, or absent from a sparse matrix (unless
    `absent` says that these are zeros). Nothing is estimated beyond that: data are neither centred
    nor scaled, and predictions come without uncertainty (`OnlineFactorAnalysis` has both).

    The defaults are the paper's Algorithm 1 (Algorithm 2 where entries are missing) with two inner
    iterations, started from rows of the data; ``init="random"`` starts as the paper does.

    Parameters
    ----------
    n_components : int or None, default=None
        Atoms of the dictionary. None is 30, or one less than there are features; if `init` is an
        array, as many as it has.
    lam : float, default=1.0
        How stiffly the dictionary stays where it is.
    forget_factor : float, default=0.0
        Weight that past codes keep with each new row: 0 is the paper's rule, in which only the
        last row counts; with 1 all rows count, later ones more; 0.99 remembers about 100 rows.
    ridge : float, default=0.0
        Penalty on the size of codes.
    smooth : float, default=0.0
        Penalty on the change of a code from that of the row before; needs ``shuffle=False``.
    shrink : float, default=0.0
        Pull of the dictionary towards zero, in rows; needs ``forget_factor > 0``.
    inner_iter : int, default=2
        Alternations between code and dictionary for each update.
    batch_size : int, default=1
        Rows that share one update.
    positive_code : bool, default=False
        Whether codes are nonnegative.
    positive_dict : bool, default=False
        Whether the dictionary is nonnegative; with both, this is nonnegative matrix factorisation.
    alpha : float, default=0.0
        Penalty on codes, as in `MiniBatchDictionaryLearning`: a code minimises
        :math:`\tfrac12\|y - Cx\|^2 + alpha (l1\_ratio \|x\|_1 + \tfrac12 (1 - l1\_ratio)
        \|x\|^2)`, and atoms have at most norm 1.
    l1_ratio : float, default=1.0
        Share of the l1 norm in that penalty: 1 is the lasso, which makes codes sparse; less is the
        elastic net. Needs ``alpha > 0``.
    absent : {"missing", "zero"} or None, default=None
        What the entries are that a sparse matrix does not hold: unknown, as in ratings, or zero, as
        in counts and TF-IDF. None is "missing", with a warning where they look like zeros.
    max_iter : int, default=1
        Passes over the data in `fit`.
    tol : float, default=0.0
        Stop when a pass lowers the prequential error by less than this share; 0 runs all passes.
    shuffle : bool or "uniform", default=True
        Whether `fit` takes rows in random order, as they lie, or drawn with replacement.
    init : {"data", "random"} or array of shape (n_components, n_features), default="data"
        First dictionary: rows of the data, uniform on [0, 1) as in the paper, or given.
    random_state : int, RandomState or None, default=None
        Seed of the order of rows and of the first dictionary.
    verbose : int, default=0
        If positive, log each pass to the logger "omfb", and show a progress bar (in terminals and
        notebooks that have Rich; elsewhere the log is printed, unless logging is configured).

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The dictionary, an atom in a row. A Dask array if it was learned by features.
    n_components_ : int
        Atoms of the dictionary.
    prequential_error_ : float
        Relative error over the last pass, of each row before the dictionary learned from it.
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
    OnlineFactorAnalysis : Estimates mean, noise, rank and learning rate; has intervals.
    OMFBImputer : The same for tables: columns of any unit, and `transform` fills.

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
    >>> model = OMFB(4, max_iter=5, random_state=0).fit(X)
    >>> model.transform(X).shape
    (500, 4)
    >>> bool(model.score(X) > 0.99)
    True
    """

    _engine: ClassVar[AnyEngine] = BROYDEN

    def __init__(
        self,
        n_components: int | None = None,
        *,
        lam: float = 1.0,
        forget_factor: float = 0.0,
        ridge: float = 0.0,
        smooth: float = 0.0,
        shrink: float = 0.0,
        inner_iter: int = 2,
        batch_size: int = 1,
        positive_code: bool = False,
        positive_dict: bool = False,
        alpha: float = 0.0,
        l1_ratio: float = 1.0,
        absent: str | None = None,
        max_iter: int = 1,
        tol: float = 0.0,
        shuffle: bool | str = True,
        init: str | NDArray[Any] = "data",
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.n_components = n_components
        self.lam = lam
        self.forget_factor = forget_factor
        self.ridge = ridge
        self.smooth = smooth
        self.shrink = shrink
        self.inner_iter = inner_iter
        self.batch_size = batch_size
        self.positive_code = positive_code
        self.positive_dict = positive_dict
        self.alpha = alpha
        self.l1_ratio = l1_ratio
        self.absent = absent
        self.max_iter = max_iter
        self.tol = tol
        self.shuffle = shuffle
        self.init = init
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, *, sample_weight: Any = None, **options: Any) -> Self:
        """Learn the dictionary by passes over X.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), path, or stream
            As `OnlineFactorAnalysis.fit` takes it.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each row: 2 counts as the same row twice in one mini-batch. Only for rows at
            hand, and neither with `smooth` nor with an l1 penalty.
        **options
            ``checkpoint``, ``resume``, ``every`` and ``n_tasks``, as in `OnlineFactorAnalysis.fit`.

        Returns
        -------
        self
        """
        if sample_weight is not None:
            X = weighted_rows(X, sample_weight, self._config(False))
        super().fit(X, y, **options)
        return self

    def partial_fit(self, X: Any, y: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn from the next rows of a stream, in the order given; one row is enough.

        The model does not depend on how a stream is cut into calls (with ``batch_size > 1``, if it
        is cut at multiples of that). An error leaves the model as it was.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or one row
            As `OnlineFactorAnalysis.partial_fit` takes it.
        y : ignored
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Weight of each row, as in `fit`.

        Returns
        -------
        self
        """
        if sample_weight is not None:
            X = weighted_rows(X, sample_weight, self._config(False))
        super().partial_fit(X, y)
        return self

    def _config(self, temporal: bool) -> BroydenConfig:
        if self.n_components is not None:
            checked_count("n_components", self.n_components, "how many atoms to learn")
        checked_count("max_iter", self.max_iter, "passes over the data")
        if isinstance(self.init, str):
            if self.init not in ("data", "random"):
                raise ValueError(
                    f"init must be 'data', 'random' or an array of shape (n_components, "
                    f"n_features), got {shown(self.init)}."
                )
        else:
            init_array(self.init)
        config = BroydenConfig(
            lam=self.lam,
            forget_factor=self.forget_factor,
            ridge=self.ridge,
            smooth=self.smooth,
            shrink=self.shrink,
            inner_iter=self.inner_iter,
            batch_size=self.batch_size,
            positive_code=self.positive_code,
            positive_dict=self.positive_dict,
            alpha=self.alpha,
            l1_ratio=self.l1_ratio,
            absent="missing" if self.absent is None else self.absent,
        )
        if config.smooth > 0.0 and not (is_flag(self.shuffle) and not self.shuffle):
            raise HintedError(
                f"smooth={config.smooth!r} ties each row to the row before, so rows must keep "
                f"their order.", "shuffle=False",
            )  # fmt: skip
        return config

    def _first_rows(self, X: Any) -> Checked:
        first = super()._first_rows(X)
        if self.absent is None and look_like_counts(first.rows):
            warn(
                "X is sparse, and its absent entries count as missing, not as zeros: set "
                "absent='zero' for counts and TF-IDF, or absent='missing' if they are unknown."
            )
        return first

    def _init(self, n_features: int) -> Init:
        init: Init = checked_init(self.init, self.n_components, n_features)
        return init

    def _distributed(
        self, X: Any, config: AnyConfig, client: Any, n_tasks: int | None
    ) -> Source | None:
        # Whether every 4r rows all features have to be known at the same place.
        gathers = isinstance(config, BroydenConfig) and (
            config.shrink > 0.0 or config.constrains_dictionary
        )
        if n_tasks is None and not gathers and is_cut_along_columns(X):
            return FeatureSource(X, client, self.n_components)
        return super()._distributed(X, config, client, n_tasks)
