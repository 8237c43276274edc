"""The K-means kernel classifier as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from copy import copy
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel.core.arrays.events import OnEvent, RowsRead, SizeTried
from kmeans_kernel.core.arrays.execution import Run, ambient_listener
from kmeans_kernel.core.arrays.lazy import LazyRows
from kmeans_kernel.core.arrays.matrices import Array, row_width
from kmeans_kernel.core.arrays.rows import (
    LabelledRows,
    TrainingRows,
    basis_size,
    merge_equal_rows,
)
from kmeans_kernel.core.arrays.stream import RowSource, RowStream
from kmeans_kernel.core.clustering.spherical_kmeans import Init
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.core.training.config import FitOn, TrainingConfig
from kmeans_kernel.core.training.online import OnlineModel
from kmeans_kernel.core.training.train import (
    StartFor,
    TrainingResult,
    refuse_out_of_core,
    train,
)
from kmeans_kernel.data._sources import engine_of, open_source, open_stream
from kmeans_kernel.estimators._checkpoint import Checkpoint, start_from
from kmeans_kernel.estimators._explanation import Explanation, columns_of
from kmeans_kernel.estimators._parameters import config_of
from kmeans_kernel.estimators._partial_fit import check_batch, continue_from, start_online
from kmeans_kernel.estimators._progress import ProgressPrinter
from kmeans_kernel.utils.files import check_writable
from kmeans_kernel.utils.threads import threads_for
from kmeans_kernel.utils.validation import (
    RandomState,
    as_floats,
    check_rows,
    check_rows_and_labels,
    check_weights,
    codes_of,
)


class KMeansKernelClassifier(ClassifierMixin, BaseEstimator):
    """A kernel classifier trained on a few representatives of each class.

    Each class is clustered by spherical K-means; its centroids are the representatives, and a
    kernel machine with them as its basis is fitted to all rows: Nyström kernel ridge or logistic
    regression on K-means centres. The one knob is `n_representatives`: more of them give a lower
    error and a longer training. The rest is chosen from the data by cross-validation;
    `kmeans_kernel.paper` has the paper's settings.

    Parameters
    ----------
    n_representatives : int, "auto" or None, default=None
        Centroids per class (Q). A class with no more rows than that is represented by its rows.
        None is 2,000 shared among the classes, but at least 100 for each. "auto" doubles it while
        that lowers the error of rows that are held out, up to 2 GiB for the system that is solved
        or about 5 minutes for a step.
    kernel : str, default="auto"
        The kernel, a function of the cosine c between two rows: "rbf" is exp(−2γ(1 − c)),
        "laplacian" exp(−2√(γ(1 − c))), "poly" cᵈ, and "exponential_power" exp(−(2γ(1 − c))^(q/2))
        with `kernel_params={"exponent": q}`, 0 < q ≤ 2. "auto" is the better of the first two for
        up to 100 features; for more, or if γ is given, "rbf".
    degree : int, default=4
        The degree d of the polynomial kernel, at most 1000.
    gamma : float or "auto", default="auto"
        The inverse width γ of the other kernels, at most 1e6; by default chosen from the data.
    kernel_params : dict or None, default=None
        Further parameters of the kernel, by name.
    boundary_fraction : float, default=0.0
        The share of the representatives, up to 0.95, that are rows near the decision boundary
        instead of centroids: the rows with the smallest margins by a model on the centroids. It
        lowers the error where labels are right and rows many; wrong labels have small margins too,
        and a fit to the representatives then follows them.
    fit_on : {"samples", "representatives"}, default="samples"
        What the coefficients are fitted to: all rows (Nyström kernel ridge regression), or the
        representatives (the LS-SVM of the paper).
    regularization : float or "auto", default="auto"
        The penalty: λ of the fit to all rows, or ε, the ridge on the diagonal of the kernel matrix,
        of the fit to the representatives, where the paper has 1e-6. By default chosen from the
        data, as γ is: by cross-validation of the squared error.
    loss : {"auto", "squared", "logistic"}, default="auto"
        The loss of the fit to all rows: the squared error of the scores, or the log-loss of their
        softmax, which takes longer and is better where classes lie one behind the other. "auto"
        takes the one with the lower Brier score on held-out rows if the regularization is "auto"
        too, else the squared one. A fit to the representatives has the squared loss.
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
        Whether to learn a factor for each feature: the root of the diagonal of the average gradient
        outer product (AGOP), as recursive feature machines do. "auto" keeps the factors if they
        predict held-out rows better, and tries them for up to 100 features; "learned" keeps them in
        any case.
    feature_transform : {"auto", "asinh"} or None, default="auto"
        Whether to transform each feature by the inverse hyperbolic sine of its deviation from the
        median, in robust standard deviations, scaled to unit variance: a few large values then do
        not set the distances. "auto" tries it for up to 100 features if some have long tails and
        there is anything else to choose, and keeps it if it predicts held-out rows better; "asinh"
        keeps it in any case. Sparse rows are not transformed.
    warm_start : bool, default=False
        Whether K-means starts from the representatives of the last fit, or of a loaded model,
        instead of from rows.
    class_weight : dict, "balanced" or None, default=None
        Factors of the weights of the rows of each class; "balanced" gives every class the same
        weight.
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
        The constants of the scores.
    kernel_ : str
        The kernel, as given or chosen.
    gamma_ : float or None
        γ as given or chosen; None for a kernel without it.
    loss_ : str
        The loss, as given or chosen.
    regularization_ : float
        λ or ε, as given or chosen.
    lift_ : float
        The lift, as given or chosen.
    feature_scales_ : ndarray of shape (n_features,) or None
        The factor of each feature, if factors were learned and kept.
    feature_transform_ : str or None
        The transform of the features, "asinh" or None.
    held_out_error_ : float or None
        The share of held-out rows that were misclassified with the hyperparameters that were
        chosen; None if there was nothing to choose. They were chosen for it, so it is a little too
        low.
    n_representatives_ : int
        Q, as given or found.
    validation_curve_ : tuple of SizeTried
        Each number of representatives that was tried: n_representatives, held_out_error,
        held_out_loss, seconds. Empty unless n_representatives is "auto";
        `kmeans_kernel.report.plot_validation_curve` draws it.
    online_ : bool
        Whether the last update came from `partial_fit`; `regularization_` is then ε.
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

    _result: TrainingResult
    _online: OnlineModel

    def __init__(
        self,
        n_representatives: int | Literal["auto"] | None = None,
        *,
        kernel: str = "auto",
        degree: int = 4,
        gamma: float | Literal["auto"] = "auto",
        kernel_params: dict[str, float] | None = None,
        boundary_fraction: float = 0.0,
        fit_on: FitOn = "samples",
        regularization: float | Literal["auto"] = "auto",
        loss: Literal["auto", "squared", "logistic"] = "auto",
        lift: float | Literal["auto"] = "auto",
        init: Init = "random",
        tol: float = 1e-6,
        max_iter: int = 300,
        feature_scales: Literal["auto", "learned"] | None = "auto",
        feature_transform: Literal["auto", "asinh"] | None = "auto",
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
        self.kernel_params = kernel_params
        self.boundary_fraction = boundary_fraction
        self.fit_on = fit_on
        self.regularization = regularization
        self.loss = loss
        self.lift = lift
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.feature_scales = feature_scales
        self.feature_transform = feature_transform
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
            `kmeans_kernel.data.ParquetBlocks`. Sparse rows stay sparse; representatives are dense.
            Bytes, two-byte integers and float32 are worked on in float32, anything else may be in
            float64: see `docs/architecture.md`.
        y : array-like of shape (n_samples,)
            Labels of any type, of at least two classes. Not given if they are in the blocks.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; a whole number is the same as repeating the row.
        checkpoint : path, default=None
            Out of core, a file that K-means writes its centroids to as it goes, and starts from if
            it is there; when the fit is done, it is removed.

        Returns
        -------
        self
        """
        before = self.model_ if self.warm_start and self.__sklearn_is_fitted__() else None
        self._forget()  # a fit that fails leaves nothing half-fitted
        config = config_of(self)  # refuses bad parameters before the rows are looked at
        source = open_source(type(self).__name__, X, y, sample_weight)
        if source is not None:
            refuse_out_of_core(config)
            return self._fit_out_of_core(source, before, checkpoint)
        if checkpoint is not None:
            raise ValueError(
                "checkpoint is for rows in blocks, which take long; X is in memory. Leave it out, "
                "or give X and y as kmeans_kernel.data.ArrayBlocks(X, y)."
            )
        rows = self._labelled(X, y, sample_weight)
        config, start = config_of(self, len(rows.classes)), self._start_from(before, rows)
        listener, (rngs, rng) = self._listener(rows), self._generators(len(rows.classes))
        with threads_for(_operations(rows, config), self.n_jobs) as executor:
            self.result_ = train(rows, config, rngs, Run(executor, listener, rng), start)
        self._warn_if_not_converged()
        return self

    def _fit_out_of_core(
        self,
        source: RowSource,
        before: FittedModel | None,
        checkpoint: str | PathLike[str] | None,
    ) -> Self:
        """Train on blocks of rows, with a checkpoint file if one is named."""
        if checkpoint is not None:
            check_writable(Path(checkpoint))
        with threads_for(np.inf, self.n_jobs) as executor:
            owner = type(self).__name__
            stream = open_stream(owner, source.run_by(executor), self.class_weight)
            self._set_features(stream)
            config, start = config_of(self, len(stream.classes)), self._start_from(before, stream)
            listener, (rngs, rng) = self._listener(stream), self._generators(len(stream.classes))
            saved = None
            if checkpoint is not None:
                saved = Checkpoint(checkpoint, len(stream.classes), stream.n_features)
                start, listener = saved.start() or start, saved.listener(listener)
            if listener is not None:
                stream = stream.with_progress(_report_rows(listener, len(stream)))
            self.result_ = train(stream, config, rngs, Run(executor, listener, rng), start)
        if saved is not None:
            saved.remove()
        self._warn_if_not_converged()
        return self

    def _generators(self, n_classes: int) -> tuple[list[np.random.Generator], np.random.Generator]:
        """Return a random generator for each class, and one for the search."""
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=n_classes)
        search_seed = random.randint(np.iinfo(np.int32).max)
        return list(map(np.random.default_rng, seeds)), np.random.default_rng(search_seed)

    def _listener(self, rows: TrainingRows) -> OnEvent | None:
        """Return the listener that `listening` has set, else one that prints, else None."""
        sizes = rows.class_sizes
        return ambient_listener(sizes) or (ProgressPrinter(sizes) if self.verbose else None)

    def _start_from(self, before: FittedModel | None, rows: TrainingRows) -> StartFor | None:
        if before is None:
            return None
        n_features = before.directions.shape[1] - (before.sphere_map.lift > 0)
        if n_features != rows.n_features:
            raise ValueError(
                f"warm_start=True starts from representatives of {n_features} features, and X has "
                f"{rows.n_features}. Set warm_start=False."
            )
        return start_from(before, rows.classes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Train online, on a batch of rows that pass once.

        An approximation: the first rows of a class are its representatives, each further row is
        added to the nearest, and rows that have passed are not looked at again. The coefficients
        are those of the paper's fit to the representatives (`fit_on` is not looked at), each with
        the weight of its rows; they are computed when they are needed. Hyperparameters that are
        left open are chosen with the first batch. Memory does not grow with the number of batches.
        After `fit`, or with a loaded model, batches go on from its representatives.

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
        first = not self.__sklearn_is_fitted__()
        before = None if first else self.__dict__.get("_online") or continue_from(self)
        batch = check_batch(self, X, y, classes, sample_weight, before)
        config = config_of(self, len(batch.classes))
        with threads_for(_operations(batch, config), self.n_jobs) as executor:
            online = before or start_online(self, batch, config, executor)
            online = online.update(batch, config.n_representatives, executor)
        self._forget()
        self._online = online
        return self

    def _forget(self) -> None:
        self.__dict__.pop("_result", None)
        self.__dict__.pop("_online", None)

    @property
    def result_(self) -> TrainingResult:
        """The fitted model and how it came about; after `partial_fit` it is computed on demand."""
        if "_result" not in self.__dict__ and "_online" in self.__dict__:
            with threads_for(np.inf, self.n_jobs) as executor:
                self._result = self._online.fit(executor)
        try:
            result: TrainingResult = self.__dict__["_result"]
        except KeyError:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet") from None
        return result

    @result_.setter
    def result_(self, result: TrainingResult) -> None:
        self._forget()
        self._result = result

    def _set_features(self, stream: RowStream) -> None:
        """Note the number and the names of the features of rows out of core."""
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = stream.n_features
        names = stream.summaries[0].names
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> LabelledRows:
        """Return the given rows, checked: those with weight, equal ones merged."""
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
        return LabelledRows(X, codes, classes, weights)

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
        """Return the softmax of the scores, calibrated on held-out rows by temperature scaling.

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
        """Return the contribution of each representative to the scores of rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        labels : array-like of shape (n_samples,) or one label, default=None
            The class to explain for each row; by default the one that is predicted.

        Returns
        -------
        Explanation
            Contributions of shape (n_samples, m), which with the intercept add up to the score of
            the class, and `largest(row)`, the representatives with the largest positive and
            negative ones.
            `kmeans_kernel.report.plot_explanation` draws it.

        Examples
        --------
        >>> from kmeans_kernel import KMeansKernelClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> explanation = KMeansKernelClassifier(5, random_state=0).fit(X, y).explain(X[:1])
        >>> positive, negative = explanation.largest(0)
        >>> int(positive[0].label), int(negative[0].label)
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
    def model_(self) -> FittedModel:
        """The fitted model."""
        return self.result_.model

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels."""
        return self._online.classes if "_online" in self.__dict__ else self.model_.classes

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
    def dual_coef_(self) -> Array:
        """The dual coefficients, (m, n_classes)."""
        return self.model_.dual_coef

    @property
    def intercept_(self) -> Array:
        """The intercepts, (n_classes,)."""
        return self.model_.intercept

    @property
    def kernel_(self) -> str:
        """The name of the kernel."""
        return self.model_.kernel.name

    @property
    def gamma_(self) -> float | None:
        """The inverse width of the kernel, None if it has none."""
        return getattr(self.model_.kernel, "gamma", None)

    @property
    def lift_(self) -> float:
        """The lift."""
        return self.model_.sphere_map.lift

    @property
    def feature_scales_(self) -> Array | None:
        """The learned factors of the features, (n_features,), or None."""
        return self.model_.sphere_map.scales

    @property
    def feature_transform_(self) -> Literal["asinh"] | None:
        """The transform of the features."""
        return None if self.model_.sphere_map.asinh is None else "asinh"

    @property
    def loss_(self) -> str:
        """The loss of the fit."""
        return self.result_.loss

    @property
    def regularization_(self) -> float:
        """The regularization of the fit."""
        return self.result_.regularization

    @property
    def held_out_error_(self) -> float | None:
        """The error of held-out rows in the search."""
        return self.result_.held_out_error

    @property
    def n_representatives_(self) -> int:
        """The number of representatives of each class, as given or found."""
        return self.result_.n_representatives

    @property
    def validation_curve_(self) -> tuple[SizeTried, ...]:
        """The numbers of representatives that were tried."""
        return self.result_.sizes

    @property
    def online_(self) -> bool:
        """Whether the last update came from `partial_fit`."""
        return self.result_.online

    @property
    def n_iter_(self) -> npt.NDArray[np.intp]:
        """K-means iterations of each class."""
        return self.result_.n_iter

    @property
    def relative_residual_(self) -> float:
        """The relative residual of the system that was solved."""
        return self.result_.relative_residual

    @property
    def stage_seconds_(self) -> dict[str, float]:
        """Seconds spent in each stage of training."""
        return self.result_.seconds

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # An even power of the cosine is the same for a row and its negative. Pixels have one sign;
        # the centred blobs that scikit-learn scores its test on do not.
        sign_blind = self.kernel == "poly" and self.lift == 0 and self.degree % 2 == 0
        tags.classifier_tags.poor_score = sign_blind
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_result" in self.__dict__ or "_online" in self.__dict__

    def _of_rows(self, X: Any, of_scores: OfScores) -> npt.NDArray[Any]:
        """Return a function of the scores of rows; lazily for a collection of another library."""
        check_is_fitted(self)
        engine = engine_of(X)
        if engine is None:
            return of_scores(self.model_, self._scores(X))
        frozen = copy(self)  # later computations use the model of now
        frozen.result_ = self.result_
        row = as_floats(np.zeros((1, self.n_features_in_), dtype=engine.type_of(X)))
        example = of_scores(self.model_, self.model_.scores(row))
        lazy: npt.NDArray[Any] = engine.apply(
            lambda rows: of_scores(frozen.model_, frozen._scores(rows)), X, example
        )
        return lazy

    def _scores(self, X: Any) -> Array:
        X = check_rows(self, X, reset=False)
        operations = 2.0 * X.shape[0] * self.model_.directions.size
        with threads_for(operations, self.n_jobs) as executor:
            return self.model_.scores(X, executor)

    def _warn_if_not_converged(self) -> None:
        labels = self.classes_[self.result_.deviations > self.tol]
        if not len(labels):
            return
        warnings.warn(
            f"K-means stopped at max_iter={self.max_iter} before the deviation fell to "
            f"tol={self.tol:g}, for class {', '.join(map(str, labels))}. Raise max_iter or tol; "
            "the model is usable as it is.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _report_rows(listener: OnEvent, n_rows: int) -> Callable[[int], None]:
    return lambda done: listener(RowsRead(done, n_rows))


OfScores: TypeAlias = Callable[[FittedModel, Array], npt.NDArray[Any]]


def labels(model: FittedModel, scores: Array) -> npt.NDArray[Any]:
    """Return the label with the highest score."""
    return np.asarray(model.classes[scores.argmax(axis=1)])


def decisions(model: FittedModel, scores: Array) -> Array:
    """Return the scores; for two classes that of the second minus that of the first."""
    del model
    return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores


def _operations(rows: LabelledRows, config: TrainingConfig) -> float:
    """Return about how many operations a fit takes: some passes of K-means, and the solve."""
    q, d = config.n_representatives, row_width(rows.X)
    m = float(basis_size(rows, q))
    passes = 5 * sum(2.0 * n * min(n, q) * d for n in rows.class_sizes)
    solve = m**2 * d + m**3 / 3
    if config.fit_on == "samples":
        solve += 2.0 * len(rows) * m * (m + d)
    return passes + solve
