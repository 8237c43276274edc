"""The K-means kernel classifier as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from os import PathLike
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.core.arrays.duplicates import merge_equal_rows
from kmeans_kernel.core.arrays.executor import Workers
from kmeans_kernel.core.arrays.lazy import LazyRows
from kmeans_kernel.core.arrays.samples import Labelled
from kmeans_kernel.core.arrays.sparse import row_width
from kmeans_kernel.core.arrays.stream import Stream
from kmeans_kernel.core.clustering.spherical_kmeans import Init
from kmeans_kernel.core.kernels.kernels import Gaussian, Laplacian, Polynomial
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.training.fit import FitOn
from kmeans_kernel.core.training.model_size import Step
from kmeans_kernel.core.training.online import Online
from kmeans_kernel.core.training.train import Settings, StartFor, refuse_what_needs_memory, train
from kmeans_kernel.core.training.tuning import make_choice
from kmeans_kernel.data._sources import engine_of, open_stream, visitor_of
from kmeans_kernel.estimators._checkpoint import Checkpoint, start_from
from kmeans_kernel.estimators._explanation import Explanation, columns_of
from kmeans_kernel.estimators._parameters import settings_of
from kmeans_kernel.estimators._progress import watcher_for
from kmeans_kernel.utils.threads import threads_for
from kmeans_kernel.utils.validation import (
    RandomState,
    as_floats,
    check_rows,
    check_rows_and_labels,
    check_weights,
    codes_of,
)

_KERNEL_NAMES: dict[type, str] = {Gaussian: "gaussian", Laplacian: "laplace", Polynomial: "poly"}


class KMeansKernelClassifier(ClassifierMixin, BaseEstimator):
    """A kernel classifier trained on a few representatives of each class.

    Each class is clustered by cosine K-means; its centroids are the representatives, and a kernel
    machine with them as its basis is fitted to all rows. The one knob is
    `n_representatives`: more of them give a lower error and a longer training. The rest is chosen
    from the data; `kmeans_kernel.paper` has the paper's settings.

    Parameters
    ----------
    n_representatives : int, "auto" or None, default=None
        Centroids per class (Q). A class with no more rows than that is represented by its rows.
        None is 2,000 shared among the classes, but at least 100 for each. "auto" doubles it while
        that lowers the error of rows that are held out, up to 2 GiB for the system that is solved
        or about 5 minutes for a step.
    border : float, default=0.0
        The share of the representatives, up to 0.95, that are rows at the border between classes
        instead of centroids: those that a model on the centroids finds hardest. It lowers the error
        where labels are right and rows many; wrong labels are hard too, and a fit to the
        representatives then follows them.
    kernel : {"auto", "gaussian", "laplace", "poly"}, default="auto"
        The kernel, a function of the cosine c between two rows: exp(−2γ(1 − c)), exp(−2√(γ(1 − c)))
        or cᵈ. "auto" is the better of the first two for up to 100 features, else, or if γ is given,
        the first.
    degree : int, default=4
        The degree d of the polynomial kernel, at most 1000.
    gamma : float or "auto", default="auto"
        The inverse width γ of the first two kernels, at most 1e6; by default chosen from the data.
    fit_on : {"samples", "representatives"}, default="samples"
        What the coefficients are fitted to: all rows, or, as in the paper, the representatives.
    regularization : float or "auto", default="auto"
        The penalty: λ of the fit to all rows, or what is added to the diagonal of the kernel matrix
        (ε) of the fit to the representatives, where the paper has 1e-6. By default chosen from the
        data, as γ is: by the squared error of predictions of rows that were held out.
    loss : {"auto", "squared", "logistic"}, default="auto"
        What the fit to all rows minimises: the squared error of the scores, or the log-loss of
        their softmax, which takes longer and is the better one where classes lie one behind the
        other. "auto" takes the one with the better probabilities for rows that were held out, if
        the regularization is "auto" too, else squares. A fit to the representatives is of squares.
    lift : float or "auto", default="auto"
        A constant appended to each row before it is normalised; by default the typical length of a
        row, which keeps their lengths. 0, the paper's setting, compares rows by direction alone,
        and with an even degree cannot tell a row from its negative.
    init : {"random", "k-means++"}, default="random"
        How K-means chooses its first centroids.
    tol : float, default=1e-6
        K-means stops when the mean deviation 1 − cosine of a move is at most this (τ).
    max_iter : int, default=300
        K-means stops, with a ConvergenceWarning, after this many iterations.
    feature_scales : {"auto", "learned"} or None, default="auto"
        Whether to learn what each feature is to be multiplied by, from how much the scores depend
        on it: where that predicts held-out rows better ("auto", for up to 100 features), in any
        case, or not at all.
    squash : {"auto", "learned"} or None, default="auto"
        Whether to squash the features, which keeps a few large values from setting the distances:
        x becomes asinh of its deviation from the median in usual deviations, divided by what makes
        the variance one. Where there are values far out and that predicts held-out rows better
        ("auto", for up to 100 features, if something else is to be chosen too), in any case, or not
        at all. Sparse rows are not squashed.
    warm_start : bool, default=False
        Whether K-means starts from the representatives of the last fit, or of a model that was
        loaded, instead of rows.
    class_weight : dict, "balanced" or None, default=None
        What the weights of the rows of each class are multiplied by; "balanced" gives every class
        the same weight.
    random_state : int, RandomState instance or None, default=None
        Decides the first centroids and what is held out; an int gives the same model every time.
    n_jobs : int or None, default=None
        The most threads to use: −1 for all cores, None for as many as the linear algebra library
        has, which is one inside a worker of joblib.
    verbose : bool, default=False
        Whether to write progress to standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    representatives_ : ndarray of shape (m, n_features)
        The representatives of all classes. Without a lift they are unit rows; with one, points
        among the rows of X.
    representative_classes_ : ndarray of shape (m,)
        The label of each representative.
    representative_counts_ : ndarray of shape (m,)
        How many training rows each representative stands for; the sum of their weights, if they
        have any.
    dual_coef_ : ndarray of shape (m, n_classes)
        The weight of each representative in the score of each class.
    intercept_ : ndarray of shape (n_classes,)
        What is added to the scores.
    kernel_ : str
        The kernel, as given or chosen.
    gamma_ : float or None
        γ as given or chosen; None for a polynomial.
    loss_ : str
        The loss, as given or chosen.
    regularization_ : float
        λ or ε, as given or chosen.
    lift_ : float
        The lift, as given or chosen.
    feature_scales_ : ndarray of shape (n_features,) or None
        What each feature is multiplied by, if scales were learned and kept.
    squashed_ : bool
        Whether the features are squashed.
    held_out_error_ : float or None
        The share of held-out rows that were misclassified with what was chosen; None if there was
        nothing to choose. It was the least of some, so it is a little too good.
    n_representatives_ : int
        Q, as given or found.
    growth_ : tuple of Step
        What each number of representatives that was tried came to: n_representatives,
        held_out_error, held_out_loss, seconds. Empty unless n_representatives is "auto";
        `kmeans_kernel.report.plot_growth` draws it.
    streamed_ : bool
        Whether `partial_fit` had the last word; `regularization_` is then ε.
    n_iter_ : ndarray of shape (n_classes,)
        K-means iterations of each class.
    relative_residual_ : float
        How exactly the system for the coefficients was solved.
    stage_seconds_ : dict
        Seconds spent in each stage of training.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X had string column names.

    References
    ----------
    M. Andrecut, "K-Means Kernel Classifier", 2020.

    Examples
    --------
    >>> from kmeans_kernel import KMeansKernelClassifier
    >>> from kmeans_kernel.data import load_digits
    >>> digits = load_digits()
    >>> X_train, X_test = (X.reshape(len(X), -1) for X in (digits.X_train, digits.X_test))
    >>> classifier = KMeansKernelClassifier(n_representatives=50, random_state=0)
    >>> classifier.fit(X_train, digits.y_train).score(X_test, digits.y_test) > 0.95
    True
    """

    _takes_lazy_rows = True

    _model: FittedModel
    _online: Online
    growth_: tuple[Step, ...]
    stage_seconds_: dict[str, float]

    def __init__(
        self,
        n_representatives: int | Literal["auto"] | None = None,
        *,
        kernel: Literal["auto", "gaussian", "laplace", "poly"] = "auto",
        degree: int = 4,
        gamma: float | Literal["auto"] = "auto",
        border: float = 0.0,
        fit_on: FitOn = "samples",
        regularization: float | Literal["auto"] = "auto",
        loss: Literal["auto", "squared", "logistic"] = "auto",
        lift: float | Literal["auto"] = "auto",
        init: Init = "random",
        tol: float = 1e-6,
        max_iter: int = 300,
        feature_scales: Literal["auto", "learned"] | None = "auto",
        squash: Literal["auto", "learned"] | None = "auto",
        warm_start: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_representatives = n_representatives
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.border = border
        self.fit_on = fit_on
        self.regularization = regularization
        self.loss = loss
        self.lift = lift
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.feature_scales = feature_scales
        self.squash = squash
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
    ) -> Self:
        """Train on rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features), or blocks of rows
            Finite numbers. Rows that do not fit into memory come in blocks: a NumPy memory map of
            more than 1 GiB, a Dask array or frame, or anything that gives (X, y) or
            (X, y, sample_weight) each time it is iterated over, such as
            `kmeans_kernel.data.ParquetBlocks`. Sparse rows stay sparse; representatives are dense. Bytes, two-byte
            integers and float32 are worked on in float32, anything else may be in float64: see
            `docs/architecture.md`.
        y : array-like of shape (n_samples,)
            Labels of any type, of at least two classes. Not given if they are in the blocks.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts; a whole number is the same as repeating the row.
        checkpoint : path, default=None
            With rows in blocks, a file that K-means writes its centroids to as it goes. If it is
            there, it starts from these; when the fit is done, it is removed.

        Returns
        -------
        self
        """
        before = self.model_ if self.warm_start and self.__sklearn_is_fitted__() else None
        self._forget()  # a fit that fails leaves nothing half-fitted
        settings_of(self)  # refuses what is wrong before the rows are looked at
        with threads_for(np.inf, self.n_jobs) as workers:
            visitor = visitor_of(type(self).__name__, X, y, sample_weight, workers)
            if visitor is not None:
                refuse_what_needs_memory(settings_of(self))
                saved = None if checkpoint is None else Checkpoint(checkpoint)
                stream = open_stream(type(self).__name__, visitor, self.class_weight)
                self._set_features(stream)
                settings = settings_of(self, len(stream.classes))
                return self._train(stream, settings, workers, before, saved)
        if checkpoint is not None:
            raise ValueError(
                "checkpoint is for rows in blocks, which take long; X is in memory. Leave it out, "
                "or give X and y as kmeans_kernel.data.ArrayBlocks(X, y)."
            )
        data = self._labelled(X, y, sample_weight)
        settings = settings_of(self, len(data.classes))
        with threads_for(_operations(data, settings), self.n_jobs) as workers:
            return self._train(data, settings, workers, before)

    def _start_from(self, before: FittedModel, data: Labelled | Stream) -> StartFor:
        n_features = before.directions.shape[1] - (before.lift > 0)
        if n_features != data.width:
            raise ValueError(
                f"warm_start=True starts from representatives of {n_features} features, and X has "
                f"{data.width}. Set warm_start=False."
            )
        return start_from(before, data.classes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train on a batch of a stream that passes once.

        An approximation: the first rows of a class are its representatives, each further row is
        added to the nearest, and rows that have passed are not looked at again. The coefficients
        are those of the paper's fit to the representatives (`fit_on` is not looked at), each as
        heavy as the rows that it stands for; they are computed when they are needed. What is left
        to choose is chosen with the first batch. Memory does not grow with the stream. After `fit`,
        or with a model that was loaded, the stream goes on from its representatives.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, default=None
            All labels that will come; needed in the first call, unless its batch has them all.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        self._refuse_for_streams()
        first = not self.__sklearn_is_fitted__()
        before = None if first else self._so_far()
        batch = self._batch(X, y, classes, sample_weight, before)
        settings = settings_of(self, len(batch.classes))
        most = settings.recipe.kmeans.n_representatives
        with threads_for(_operations(batch, settings), self.n_jobs) as workers:
            online = before or self._started(batch, settings, workers)
            online = online.after(batch, most, workers)
        self._forget()
        self._online = online
        self.regularization_, self.loss_, self.streamed_ = online.regularization, "squared", True
        self.__dict__.pop("relative_residual_", None)  # computed with the model
        self.n_representatives_ = most
        self.n_iter_ = np.ones(len(batch.classes), dtype=np.intp)
        self.growth_, self.stage_seconds_ = (), {}
        return self

    def _so_far(self) -> Online:
        """Return the stream that goes on: the one there is, or the model of a fit as one."""
        if "_online" in self.__dict__:
            return self._online
        if self.model_.squash is not None:
            raise ValueError(
                "the features of this model are squashed, which a stream cannot go on with. Fit it "
                "with squash=None first, or begin a stream with a new classifier."
            )
        m = 1 if self.streamed_ or self.fit_on == "representatives" else len(self.model_.directions)
        return Online.of(self.model_, self.regularization_ * m)

    def _batch(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, before: Online | None
    ) -> Labelled:
        """Return a batch, checked, with the positions of its labels among all classes."""
        X, y = check_rows_and_labels(self, X, y, reset=before is None)
        check_classification_targets(y)
        named = codes_of(np.asarray(y if classes is None else classes))[0]
        known = named if before is None else before.classes
        codes_of(y)  # refuses labels that cannot be sorted
        if before is not None and classes is not None and not np.array_equal(named, known):
            raise ValueError(
                f"classes={classes!r} are not those of the first call to partial_fit, "
                f"{known.tolist()}."
            )
        if len(known) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes; the first batch has one, "
                f"{known.tolist()[0]!r}. Name all that will come: partial_fit(X, y, classes=...)."
            )
        new = np.setdiff1d(y, known)
        if len(new):
            raise ValueError(
                f"y has the label {new.tolist()[0]!r}, which is not among the classes "
                f"{known.tolist()[:10]}. Name all that will come in the first call: "
                "partial_fit(X, y, classes=...)."
            )
        codes = np.searchsorted(known, y)
        weights = check_weights(self, sample_weight, X, known, codes)
        kept = slice(None) if weights is None else np.flatnonzero(weights)
        return Labelled(X[kept], codes[kept], known, None if weights is None else weights[kept])

    def _refuse_for_streams(self) -> None:
        """Say what cannot be done with a stream that passes once."""
        settings = settings_of(self)
        if settings.grows or settings.recipe.border or self.class_weight == "balanced":
            raise ValueError(
                "partial_fit sees each row once: n_representatives must be a number, border 0 and "
                f"class_weight a dict or None, got {self.n_representatives!r}, {self.border!r} and "
                f"{self.class_weight!r}."
            )
        open_ = settings.open_
        if open_.loss == "logistic" or "learned" in (open_.feature_scales, open_.squash):
            raise ValueError(
                "partial_fit fits squares to features as they come: loss must not be 'logistic', "
                "and feature_scales and squash not 'learned'."
            )

    def _started(self, batch: Labelled, settings: Settings, workers: Workers) -> Online:
        """Return an empty stream, with what is left to choose chosen for its first batch."""
        open_ = replace(
            settings.open_.for_width(batch.width), feature_scales=None, squash=None, loss="squared"
        )
        chosen = open_.as_given(batch)
        if chosen is None:
            if len(np.unique(batch.codes)) < 2:
                raise ValueError(
                    "gamma and regularization are chosen with the first batch, which has rows of "
                    "one class. Give both, or start with rows of several classes."
                )
            rng = np.random.default_rng(
                check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            )
            chosen = make_choice(
                batch, settings.recipe.kmeans, "representatives", open_, rng,
                watcher_for(batch.class_sizes, verbose=self.verbose), workers,
            )  # fmt: skip
        self.held_out_error_ = chosen.held_out_error
        return Online.empty(batch, chosen.kernel, chosen.regularization, chosen.placement)

    def _forget(self) -> None:
        self.__dict__.pop("_model", None)
        self.__dict__.pop("_online", None)

    @property
    def model_(self) -> FittedModel:
        """The fitted model; that of a stream is computed when it is asked for."""
        if "_model" not in self.__dict__ and "_online" in self.__dict__:
            with threads_for(np.inf, self.n_jobs) as workers:
                found = self._online.fit(workers)
            self._model, self.relative_residual_ = found.model, found.relative_residual
        try:
            model: FittedModel = self.__dict__["_model"]
        except KeyError:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet") from None
        return model

    @model_.setter
    def model_(self, model: FittedModel) -> None:
        self._forget()
        self._model = model

    def _set_features(self, stream: Stream) -> None:
        """Note the number and the names of the features of rows that come in blocks."""
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = stream.width
        names = stream.seen[0].names
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _train(
        self,
        data: Labelled | Stream,
        settings: Settings,
        workers: Workers,
        before: FittedModel | None,
        saved: Checkpoint | None = None,
    ) -> Self:
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=len(data.classes))
        choice_seed = random.randint(np.iinfo(np.int32).max)
        watcher = watcher_for(data.class_sizes, verbose=self.verbose)
        start = None if before is None else self._start_from(before, data)
        if saved is not None:
            shape = len(data.classes), data.width
            start = saved.start_for(*shape) or start
            watcher = saved.watching(watcher, *shape)
        if isinstance(data, Stream):
            data = data.telling(watcher.visited)
        training = train(
            data,
            settings,
            [np.random.default_rng(seed) for seed in seeds],
            np.random.default_rng(choice_seed),
            watcher,
            workers,
            start,
        )
        if saved is not None:
            saved.remove()
        if not training.converged.all():
            self._warn_not_converged(data.classes[~training.converged])
        self.model_, self.streamed_ = training.model, False
        self.regularization_ = training.regularization
        self.loss_ = training.loss
        self.held_out_error_ = training.held_out_error
        self.n_representatives_ = training.n_representatives
        self.growth_ = training.steps
        self.n_iter_ = training.n_iter
        self.relative_residual_ = training.relative_residual
        self.stage_seconds_ = training.seconds
        return self

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> Labelled:
        """Return what was given, checked: rows that count, the classes of these, and weights."""
        X, y = check_rows_and_labels(self, X, y)
        classes, codes = codes_of(y)
        check_classification_targets(y)
        weights = check_weights(self, sample_weight, X, classes, codes)
        if not isinstance(X, LazyRows):
            X, codes, weights = merge_equal_rows(X, codes, weights)
        present = np.unique(codes)
        if len(present) < len(classes):  # a class may have had no weight
            classes, codes = classes[present], np.searchsorted(present, codes)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes in y, got one class: "
                f"{classes.tolist()[0]!r}. Check that the labels were read as intended."
            )
        return Labelled(X, codes, classes, weights)

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes), or (n_samples,) for two classes: the score of
        the second minus that of the first
        """
        return self._of_rows(X, decisions)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label with the highest score for each row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._of_rows(X, labels)

    def predict_proba(self, X: Any) -> Array:
        """Return the softmax of the scores, at the temperature that suits held-out rows.

        With the paper's fit and nothing to choose the temperature is one, as in the paper.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes): rows sum to one, and order as the scores do
        """
        return self._of_rows(X, FittedModel.probabilities)

    def explain(self, X: Any, labels: Any = None) -> Explanation:
        """Return what each representative contributed to the scores of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        labels : array-like of shape (n_samples,) or one label, default=None
            The class to explain for each row; by default the one that is predicted.

        Returns
        -------
        Explanation
            Contributions of shape (n_samples, m), which with the intercept add up to the score of
            the class, and `loudest(row)`, the representatives that spoke for and against it.
            `kmeans_kernel.report.plot_explanation` draws it.

        Examples
        --------
        >>> from kmeans_kernel import KMeansKernelClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> explanation = KMeansKernelClassifier(5, random_state=0).fit(X, y).explain(X[:1])
        >>> spoke_for, against = explanation.loudest(0)
        >>> int(spoke_for[0].label), int(against[0].label)
        (0, 1)
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        if labels is None:
            columns = self.model_.scores(X).argmax(axis=1)
        else:
            columns = columns_of(labels, self.classes_, X.shape[0])
        return Explanation.of(self.model_, X, columns)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels."""
        return self.model_.classes

    @property
    def representatives_(self) -> Array:
        """The representatives, (m, n_features)."""
        return self.model_.representatives

    @property
    def representative_classes_(self) -> npt.NDArray[Any]:
        """The label of each representative."""
        model = self.model_
        return model.classes[model.representative_classes]

    @property
    def representative_counts_(self) -> npt.NDArray[Any]:
        """The weight of the training rows that each representative stands for."""
        return self.model_.representative_counts

    @property
    def gamma_(self) -> float | None:
        """The inverse width of the kernel."""
        kernel = self.model_.kernel
        return None if isinstance(kernel, Polynomial) else kernel.gamma  # type: ignore[attr-defined]

    @property
    def kernel_(self) -> str:
        """The name of the kernel."""
        return _KERNEL_NAMES[type(self.model_.kernel)]

    @property
    def lift_(self) -> float:
        """The lift."""
        return self.model_.lift

    @property
    def feature_scales_(self) -> Array | None:
        """The learned scales of the features, (n_features,), or None."""
        return self.model_.feature_scales

    @property
    def squashed_(self) -> bool:
        """Whether the features are squashed."""
        return self.model_.squash is not None

    @property
    def dual_coef_(self) -> Array:
        """The dual coefficients, (m, n_classes)."""
        return self.model_.dual_coef

    @property
    def intercept_(self) -> Array:
        """The intercepts, (n_classes,)."""
        return self.model_.intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # An even power of the cosine is the same for a row and its negative. Pixels have one sign;
        # the centred blobs that scikit-learn scores its test on do not.
        sign_blind = self.kernel == "poly" and self.lift == 0 and self.degree % 2 == 0
        tags.classifier_tags.poor_score = sign_blind
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_model" in self.__dict__ or "_online" in self.__dict__

    def _of_rows(self, X: Any, of_scores: OfScores) -> npt.NDArray[Any]:
        """Return a function of the scores of rows; for those of another library a lazy one."""
        check_is_fitted(self)
        engine = engine_of(X)
        if engine is None:
            return of_scores(self.model_, self._scores(X))
        frozen = copy(self)  # what is computed later is computed by the model of now
        frozen.model_ = self.model_
        row = as_floats(np.zeros((1, self.n_features_in_), dtype=engine.type_of(X)))
        example = of_scores(self.model_, self.model_.scores(row))
        lazy: npt.NDArray[Any] = engine.apply(
            lambda rows: of_scores(frozen.model_, frozen._scores(rows)), X, example
        )
        return lazy

    def _scores(self, X: Any) -> Array:
        X = check_rows(self, X, reset=False)
        operations = 2.0 * X.shape[0] * self.model_.directions.size
        with threads_for(operations, self.n_jobs) as workers:
            return self.model_.scores(X, workers)

    def _warn_not_converged(self, labels: npt.NDArray[Any]) -> None:
        warnings.warn(
            f"K-means stopped at max_iter={self.max_iter} before the deviation fell to "
            f"tol={self.tol:g}, for class {', '.join(map(str, labels))}. Raise max_iter or tol; "
            "the model is usable as it is.",
            ConvergenceWarning,
            stacklevel=3,
        )


OfScores: TypeAlias = Callable[[FittedModel, Array], npt.NDArray[Any]]


def labels(model: FittedModel, scores: Array) -> npt.NDArray[Any]:
    """Return the label with the highest score."""
    return np.asarray(model.classes[scores.argmax(axis=1)])


def decisions(model: FittedModel, scores: Array) -> Array:
    """Return the scores; for two classes that of the second minus that of the first."""
    del model
    return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores


def _operations(data: Labelled, settings: Settings) -> float:
    """Return about how many operations a fit takes: some passes of K-means, and the solve."""
    q, d = settings.recipe.kmeans.n_representatives, row_width(data.X)
    m = float(data.basis_size(q))
    passes = 5 * sum(2.0 * n * min(n, q) * d for n in data.class_sizes)
    solve = m**2 * d + m**3 / 3
    if settings.recipe.fit_on == "samples":
        solve += 2.0 * len(data) * m * (m + d)
    return passes + solve
