"""The K-means kernel classifier as a scikit-learn estimator."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy
from dataclasses import replace
from numbers import Real
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

from kmeans_kernel.core.arrays.column_order import order_of_columns
from kmeans_kernel.core.arrays.encoding import EncodingKind
from kmeans_kernel.core.arrays.events import OnEvent, RowsRead
from kmeans_kernel.core.arrays.execution import Run, ambient_listener
from kmeans_kernel.core.arrays.feature_transform import has_one_unit, has_several_units
from kmeans_kernel.core.arrays.lazy import LazyRows
from kmeans_kernel.core.arrays.matrices import (
    Array,
    IntArray,
    Matrix,
    dense,
    is_sparse,
    row_width,
)
from kmeans_kernel.core.arrays.rows import (
    LabelledRows,
    TrainingRows,
    basis_size,
    merge_equal_rows,
)
from kmeans_kernel.core.arrays.stream import RowSource, RowStream
from kmeans_kernel.core.clustering.spherical_kmeans import Init
from kmeans_kernel.core.model.conformal import thresholds
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
from kmeans_kernel.estimators._callbacks import (
    CallbackSupportMixin,
    FitTask,
    check_callback,
    reporting,
    with_callbacks,
)
from kmeans_kernel.estimators._checkpoint import Checkpoint, start_from
from kmeans_kernel.estimators._explanation import (
    ColumnsOfModel,
    Explanation,
    as_row,
    columns_of,
    importances,
)
from kmeans_kernel.estimators._fitted_attributes import FittedAttributes
from kmeans_kernel.estimators._parameters import config_of, deadline_of
from kmeans_kernel.estimators._partial_fit import check_batch, continue_from, start_online
from kmeans_kernel.estimators.columns._columns import Column, describe_columns, n_levels_of
from kmeans_kernel.estimators.columns._frames import is_frame
from kmeans_kernel.estimators.columns._table import (
    as_table,
    code_table,
    learn_table,
    plain_columns,
    refuse_repeated_names,
)
from kmeans_kernel.utils.files import check_writable
from kmeans_kernel.utils.threads import threads_for
from kmeans_kernel.utils.validation import (
    RandomState,
    as_floats,
    check_finite,
    check_labels,
    check_rows,
    check_rows_and_labels,
    check_weights,
    codes_of,
    has_missing,
)

# Rows that keep their order: the columns are told apart by the first of them.
_ROWS_OF_ORDER = 20_000


class KMeansKernelClassifier(
    CallbackSupportMixin, ClassifierMixin, FittedAttributes, BaseEstimator
):
    """Kernel classifier on the K-means centroids of each class.

    Each class is clustered by spherical K-means; the centroids are its representatives. A kernel
    machine with the representatives as landmarks is fitted to all rows: Nyström kernel ridge or
    logistic regression. The main parameter is `n_representatives`: more of them give a lower error
    and a longer training. The other hyperparameters are chosen by cross-validation;
    `kmeans_kernel.paper` has the paper's settings.

    Parameters
    ----------
    n_representatives : int, "auto" or None, default=None
        Centroids per class (Q). A class with at most Q rows is represented by its rows. None is
        2,000 in total for up to 20 classes, 100 of each class for up to 40, and 4,000 in total for
        more; for tables also at most half as many as rows, and fewer if the search finds that
        fewer predict held-out rows as well. Where single rows predict better than centroids, as
        in repeated visits of the same persons, all rows of up to 12,000 are representatives.
        "auto" doubles Q while the loss of held-out rows falls significantly, up to 2 GiB of memory
        for the solve or about 5 minutes for a step.
    kernel : str, default="auto"
        The kernel, a function of the cosine c between two rows: "rbf" is exp(−2γ(1 − c)),
        "laplacian" exp(−2√(γ(1 − c))), "poly" cᵈ, and "exponential_power" exp(−(2γ(1 − c))^(q/2))
        with `kernel_params={"exponent": q}`, 0 < q ≤ 2. "auto" chooses between "rbf" and
        "laplacian" for up to 100 features; for more features, or if `gamma` is given, it is "rbf".
    degree : int, default=4
        The degree d of the polynomial kernel, at most 1000.
    gamma : float or "auto", default="auto"
        The γ of the other kernels, at most 1e6; "auto" chooses it by cross-validation.
    kernel_params : dict or None, default=None
        Further parameters of the kernel, by name.
    boundary_fraction : float, default=0.0
        Share of the representatives, at most 0.95, that are training rows near the decision
        boundary instead of centroids: the rows of smallest margin for a model on the centroids. It
        lowers the error where rows are many and labels correct. Mislabelled rows have small margins
        too, and a fit to the representatives then follows the wrong labels.
    fit_on : {"samples", "representatives"}, default="samples"
        Data of the fit of the coefficients: "samples" is all rows (Nyström kernel ridge or logistic
        regression), "representatives" the representatives alone (the LS-SVM of the paper).
    regularization : float or "auto", default="auto"
        With `fit_on="samples"`, λ, the factor of the ridge penalty; with "representatives", ε, the
        ridge on the diagonal of the kernel matrix (1e-6 in the paper). "auto" chooses it by
        cross-validation, together with γ.
    loss : {"auto", "squared", "logistic"}, default="auto"
        Loss of the fit to all rows: the squared error of the scores, or the log-loss of their
        softmax, which is slower, and better where classes lie one behind the other. "auto" takes
        the loss with the lower Brier score on held-out rows if `regularization` is "auto" too and
        there are at most 300 classes, else "squared". A fit to the representatives always has the
        squared loss.
    lift : float or "auto", default="auto"
        Constant appended to each row before it is divided by its length, so that the length of a
        row is kept as an angle; "auto" is the root mean square length of the rows. 0, the paper's
        setting, compares rows by direction alone, and a polynomial kernel of even degree then
        cannot tell a row from its negative.
    init : {"random", "k-means++"}, default="random"
        Initialisation of the K-means centroids.
    tol : float, default=1e-6
        K-means stops when the mean of 1 − cosine between old and new centroids is at most this (τ).
    max_iter : int, default=300
        K-means stops, with a ConvergenceWarning, after this many iterations.
    feature_scales : {"auto", "learned"} or None, default="auto"
        Whether to learn a factor for each feature: the root of the diagonal of the average gradient
        outer product (AGOP), as in recursive feature machines. "auto" learns the factors for up to
        100 features, and keeps them if they predict held-out rows better; "learned" keeps them in
        any case.
    feature_transform : {"auto", "standard", "asinh", "piecewise", "both"} or None, default="auto"
        Encoding of numbers, computed in float64 and part of the model. "standard" subtracts the
        mean and divides by the standard deviation: a shift or another unit of a column changes no
        prediction. "asinh" is asinh of the deviation from the median, in robust standard
        deviations, scaled to unit variance: a few large values do not dominate the distances.
        "piecewise" codes a number by its position among the quantiles of the training rows
        (piecewise-linear encoding), so that the model can follow abrupt changes; "both" has that
        code beside the standardised number. "auto" tries "both" and "standard" for tables of up to
        100 columns and keeps what predicts held-out rows better; if nothing is searched it is
        "standard". Wider rows of numbers, such as pixels and embeddings, stay as they come, and so
        do sparse rows whatever is given. None transforms nothing, and takes numbers alone.
    column_types : dict or None, default=None
        What some columns of a table are, by name, or by position in an array: "number",
        "category", "date" or "drop". Others are found by their type and values: see `columns_` and
        docs/method.md.
    warm_start : bool, default=False
        Whether K-means starts from the representatives of the last fit, or of a loaded model,
        instead of from rows.
    class_weight : dict, "balanced" or None, default=None
        Factor of the sample weights of each class, by label; "balanced" gives every class the same
        total weight.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of the initial centroids and of the choice of held-out rows; an int makes
        the fit reproducible.
    n_jobs : int or None, default=None
        The most threads to use: −1 for all cores, None for as many as BLAS has, which is one inside
        a joblib worker.
    time_budget : float or None, default=None
        Seconds after which the search for hyperparameters ends with the best found so far; the fit
        with them follows, and is not limited. With a budget the model depends on the speed of the
        machine, even if `random_state` is an int. None searches to the end.
    verbose : bool, default=False
        Whether to write progress to standard error: the share of the fit that is done, the time
        left and the lowest held-out error so far. On a terminal it is one line.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    representatives_ : ndarray of shape (m, n_features)
        The representatives of all classes: unit rows without a lift, else points in the space of
        the rows of X. Of a table with other columns than numbers it has the values as objects, with
        None where a value is missing.
    representative_classes_ : ndarray of shape (m,)
        The label of each representative.
    representative_counts_ : ndarray of shape (m,)
        Number of training rows in the cluster of each representative, or the sum of their weights.
    dual_coef_ : ndarray of shape (m, n_classes)
        Coefficient of each representative in the score of each class.
    intercept_ : ndarray of shape (n_classes,)
        The intercepts of the scores.
    kernel_ : str
        The kernel, as given or chosen.
    gamma_ : float or None
        γ, as given or chosen; None for a kernel without γ.
    loss_ : str
        The loss, as given or chosen.
    regularization_ : float
        λ or ε, as given or chosen.
    lift_ : float
        The lift, as given or chosen.
    feature_scales_ : ndarray of shape (n_features,) or None
        The learned factor of each column; None if no factors were kept. For a column that is
        encoded as several features it is the root mean square of their factors.
    feature_transform_ : str or None
        The encoding of numbers, "standard", "asinh", "piecewise", "both" or None.
    columns_ : tuple of Column
        What each column of X was taken for: name, kind ("number", "boolean", "category", "date" or
        "dropped"), levels, range and more.
    held_out_error_ : float or None
        Misclassification rate of held-out rows at the chosen hyperparameters; None if nothing was
        searched. It is a little optimistic, as the hyperparameters were chosen on the same rows.
    n_representatives_ : int
        Q, as given or chosen.
    validation_curve_ : tuple of SizeTried
        Record of each number of representatives that was tried: n_representatives, held_out_error,
        held_out_loss, seconds. Empty unless n_representatives is "auto";
        `kmeans_kernel.report.plot_validation_curve` draws it.
    online_ : bool
        Whether the last update came from `partial_fit`; `regularization_` is then ε.
    n_iter_ : ndarray of shape (n_classes,)
        K-means iterations of each class.
    relative_residual_ : float
        Relative residual of the system that was solved for the coefficients.
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
    _columns: tuple[Column, ...] | None = None

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
        feature_transform: Literal["auto"] | EncodingKind | None = "auto",
        column_types: dict[Any, str] | None = None,
        warm_start: bool = False,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        random_state: RandomState = None,
        n_jobs: int | None = None,
        time_budget: float | None = None,
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
        self.column_types = column_types
        self.warm_start = warm_start
        self.class_weight = class_weight
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.time_budget = time_budget
        self.verbose = verbose

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | PathLike[str] | None = None,
        callback: OnEvent | None = None,
    ) -> Self:
        """Train on rows and their labels.

        Parameters
        ----------
        X : frame, array-like or sparse matrix of shape (n_samples, n_features), or blocks of rows
            A table of pandas, polars or Arrow, or rows of numbers or objects. Tables may have
            categories, booleans, dates and missing values (NaN, None, NaT, pandas.NA); numbers are
            finite or missing. Out-of-core rows come in blocks of finite numbers: a NumPy memory map
            of more than 1 GiB, a Dask array or frame, or any re-iterable of (X, y) or
            (X, y, sample_weight), such as `kmeans_kernel.data.ParquetBlocks`. Sparse rows stay
            sparse; representatives are dense. Bytes, two-byte integers and float32 are computed
            with in float32, other numbers may be in float64: see `docs/architecture.md`.
        y : array-like of shape (n_samples,)
            Labels of any type, of at least two classes. Leave it out if the blocks have labels.
        sample_weight : array-like of shape (n_samples,), default=None
            The weight of each row; a whole number is the same as repeating the row.
        checkpoint : path, default=None
            For out-of-core rows: a file to which K-means writes its centroids in the course of the
            fit. If it exists, K-means starts from it; after the fit it is removed.

        callback : callable, default=None
            Called with each event of the fit, a record of `kmeans_kernel.events`: `FitProgress` has
            the share that is done, `CandidateTried` a held-out error. An exception that it raises
            ends the fit, and the estimator is then not fitted. It is an argument of `fit`, as in
            LightGBM, and no parameter of the estimator, because a function cannot be cloned,
            compared or saved with a model. In a pipeline, give it as
            `fit(X, y, kmeanskernelclassifier__callback=...)`. With scikit-learn 1.9 or later,
            `set_callbacks` takes its callbacks too, such as `sklearn.callback.ProgressBar`.

        Returns
        -------
        self

        Examples
        --------
        >>> from kmeans_kernel import KMeansKernelClassifier, events
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> errors = []
        >>> def note(event):
        ...     if isinstance(event, events.CandidateTried):
        ...         errors.append(event.error)
        >>> model = KMeansKernelClassifier(5, random_state=0).fit(X, y, callback=note)
        >>> 0 <= min(errors) < 0.1
        True
        """
        before = self.model_ if self.warm_start and self.__sklearn_is_fitted__() else None
        self._forget()
        try:
            self._fit(X, y, sample_weight, before, checkpoint, callback)
        except BaseException:  # a fit that fails or is interrupted leaves the estimator unfitted
            self._forget()
            raise
        self._warn_if_not_converged()
        return self

    @with_callbacks  # type: ignore[untyped-decorator,unused-ignore]
    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        before: FittedModel | None,
        checkpoint: str | PathLike[str] | None,
        callback: OnEvent | None,
    ) -> None:
        """Train in memory or out of core, inside the task of scikit-learn's callbacks if any."""
        config = config_of(self)  # raises for invalid parameters before any row is read
        if callback is not None:
            check_callback(callback)
        deadline = deadline_of(self)
        task = FitTask(self, X, y, sample_weight) if hasattr(self, "_skl_callbacks") else None
        source = open_source(type(self).__name__, X, y, sample_weight)
        if source is not None:
            refuse_out_of_core(config)
            self._refuse_column_types("a table in memory, not rows in blocks")
            self._fit_out_of_core(source, before, checkpoint, deadline, (callback, task))
        elif checkpoint is not None:
            raise ValueError(
                "checkpoint is for rows in blocks, which take long; X is in memory. Leave it out, "
                "or give X and y as kmeans_kernel.data.ArrayBlocks(X, y)."
            )
        else:
            rows = self._labelled(X, y, sample_weight)
            config = self._config_for(rows)
            order = self._order_of_columns(rows, config)
            if order is not None:
                rows, config = rows.with_columns(order), config.with_columns(order)
                before = before and before.for_columns(np.argsort(order))
            start = self._start_from(before, rows)
            rngs, rng = self._generators(len(rows.classes))
            with (
                self._reporting(rows, callback, task) as listener,
                threads_for(_operations(rows, config), self.n_jobs) as executor,
            ):
                run = Run(executor, listener, rng, deadline=deadline)
                result = train(rows, config, rngs, run, start)
                if order is not None:
                    result = replace(result, model=result.model.for_columns(order))
                self.result_ = result
        if task is not None:
            task.end()

    def _order_of_columns(
        self, rows: LabelledRows | RowStream, config: TrainingConfig
    ) -> IntArray | None:
        """Return the order in which the columns of a table are trained on; None for other rows.

        It depends on their values alone, so that the order in which they came does not matter.
        """
        if config.feature_transform is None or not config.sees_table(rows.n_features):
            return None
        if isinstance(rows, RowStream):
            if rows.is_sparse:
                return None
            some = rows.first(_ROWS_OF_ORDER)
        elif isinstance(rows.X, LazyRows) or is_sparse(rows.X):
            return None
        else:
            some = rows if rows.weights is not None else rows.at(slice(0, _ROWS_OF_ORDER))
        return order_of_columns(dense(some.X[:]), some.codes)

    def _config_for(self, rows: LabelledRows) -> TrainingConfig:
        """Return the configuration, with the levels of columns that are not plain numbers."""
        config = config_of(self, len(rows.classes))
        if self._columns is not None:
            return replace(config, n_levels=n_levels_of(self._columns))
        if has_missing(rows.X) or self._is_table(rows, config):
            return replace(config, n_levels=(0,) * rows.n_features)
        return config

    def _is_table(self, rows: LabelledRows, config: TrainingConfig) -> bool:
        """Return whether numbers are a table although they might be pixels.

        Columns with names are one, unless there are too many; and so are columns of several units.
        """
        if isinstance(rows.X, LazyRows) or is_sparse(rows.X):
            return False
        tuned = config.feature_transform == "auto" and isinstance(config.kernel, tuple)
        if config.sees_table(rows.n_features):
            return tuned and hasattr(self, "feature_names_in_") and has_one_unit(dense(rows.X[:]))
        return tuned and has_several_units(dense(rows.X[:]))

    def _fit_out_of_core(
        self,
        source: RowSource,
        before: FittedModel | None,
        checkpoint: str | PathLike[str] | None,
        deadline: float | None,
        listeners: Sequence[OnEvent | None],
    ) -> None:
        """Train out of core, with a checkpoint file if a path is given."""
        if checkpoint is not None:
            check_writable(Path(checkpoint))
        with threads_for(np.inf, self.n_jobs) as executor:
            owner = type(self).__name__
            stream = open_stream(owner, source.run_by(executor), self.class_weight)
            self._columns = None
            self._set_features(stream)
            config = config_of(self, len(stream.classes))
            order = self._order_of_columns(stream, config)
            if order is not None:
                stream = stream.with_columns(order)
                before = before and before.for_columns(np.argsort(order))
            start = self._start_from(before, stream)
            rngs, rng = self._generators(len(stream.classes))
            saved = None
            with self._reporting(stream, *listeners) as listener:
                if checkpoint is not None:
                    saved = Checkpoint(checkpoint, len(stream.classes), stream.n_features)
                    start, listener = saved.start() or start, saved.listener(listener)
                if listener is not None:
                    stream = stream.with_progress(_report_rows(listener, len(stream)))
                run = Run(executor, listener, rng, deadline=deadline)
                result = train(stream, config, rngs, run, start)
                if order is not None:
                    result = replace(result, model=result.model.for_columns(order))
                self.result_ = result
        if saved is not None:
            saved.remove()

    def _generators(self, n_classes: int) -> tuple[list[np.random.Generator], np.random.Generator]:
        """Return a random generator for each class, and another for the search."""
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=n_classes)
        search_seed = random.randint(np.iinfo(np.int32).max)
        return list(map(np.random.default_rng, seeds)), np.random.default_rng(search_seed)

    def _reporting(
        self, rows: TrainingRows, *others: OnEvent | None
    ) -> AbstractContextManager[OnEvent | None]:
        """Return a context with the listener of a fit; None if nobody listens.

        The listener of the enclosing `listening` takes the place of the printer of `verbose`.
        """
        ambient = ambient_listener(rows.class_sizes)
        listeners = [one for one in (ambient, *others) if one is not None]
        verbose = bool(self.verbose) and ambient is None
        if not listeners and not verbose:
            return nullcontext()
        return reporting(self, listeners, verbose=verbose)

    def _start_from(self, before: FittedModel | None, rows: TrainingRows) -> StartFor | None:
        if before is None:
            return None
        n_features = before.n_columns
        if n_features != rows.n_features:
            raise ValueError(
                f"warm_start=True starts from representatives of {n_features} features, and X has "
                f"{rows.n_features}. Set warm_start=False."
            )
        return start_from(before, rows.classes)

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Update the model by a batch of rows (online training, one pass).

        This is an approximation by online spherical K-means: the first rows of a class become its
        representatives, each further row updates the nearest one, and earlier rows are not read
        again. The coefficients are those of the paper's LS-SVM on the representatives, weighted by
        their counts (`fit_on` is ignored), and are computed on first use. Open hyperparameters are
        chosen on the first batch. Tables are standardised by the means and standard deviations of
        the first batch, which should be a typical one; feature scales and asinh are not tried.
        Memory does not grow with the number of batches. After `fit`, or with a loaded model,
        training continues from its representatives, with its feature transform and scales.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        classes : array-like, default=None
            All labels of all batches; required in the first call, unless its batch has all of them.
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
        for name in ("_result", "_online", "_importances"):
            self.__dict__.pop(name, None)

    @property
    def result_(self) -> TrainingResult:
        """The record of the training; after `partial_fit` the fit is computed on first access."""
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
        """Set `n_features_in_` and `feature_names_in_` from out-of-core rows."""
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = stream.n_features
        names = stream.summaries[0].names
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _labelled(self, X: Any, y: Any, sample_weight: Any) -> LabelledRows:
        """Return the validated rows, equal rows merged and rows of weight zero dropped."""
        X, y = self._rows_and_labels(X, y, sample_weight)
        classes, codes = codes_of(y)
        check_classification_targets(y)
        weights = check_weights(self, sample_weight, X, classes, codes)
        if not isinstance(X, LazyRows):
            X, codes, weights = merge_equal_rows(X, codes, weights)
        present = np.unique(codes)
        if len(present) < len(classes):  # all rows of a class may have weight zero
            classes, codes = classes[present], np.searchsorted(present, codes)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes in y, got one class: "
                f"{classes.tolist()[0]!r}. Check that the labels were read as intended."
            )
        return LabelledRows(X, codes, classes, weights)

    def _rows_and_labels(self, X: Any, y: Any, sample_weight: Any) -> tuple[Matrix, Any]:
        """Return validated rows of numbers and labels; sets what the columns are."""
        refuse_repeated_names(self, X)
        # Without a transform rows are numbers as they come.
        table = as_table(X, self.column_types) if self._allows_nan() else None
        if table is None:
            self._refuse_column_types("a dense table and a feature_transform other than None")
            self._columns = None
            rows, labels = check_rows_and_labels(self, X, y, allow_nan=self._allows_nan())
            if has_missing(rows) and np.isnan(rows).all():
                raise ValueError("X has no column to learn from: every value is missing.")
            return rows, labels
        y = check_labels(type(self).__name__, table, y)
        self._columns, rows = learn_table(self, table, self.column_types, sample_weight)
        if self.verbose:
            sys.stderr.write(f"{describe_columns(self._columns)}\n")
        return rows, y

    def _refuse_column_types(self, needs: str) -> None:
        """Raise ValueError if `column_types` is given where columns are not read by their type."""
        if self.column_types is not None:
            raise ValueError(
                f"The 'column_types' parameter of {type(self).__name__} needs {needs}. Set it to "
                "None, or choose and convert the columns before fit."
            )

    def _allows_nan(self) -> bool:
        return self.feature_transform is not None

    def decision_function(self, X: Any) -> Array:
        """Return the scores of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes); for two classes (n_samples,), the score of the
        second class minus the score of the first
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
        """Return class probabilities: the softmax of the scores, with temperature scaling.

        The temperature is fitted to held-out or leave-one-out scores. If nothing is searched, it is
        one for the logistic loss and, as in the paper, for `fit_on="representatives"`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes): rows sum to one, in the same order as the scores
        """
        return self._of_rows(X, FittedModel.probabilities)

    def predict_log_proba(self, X: Any) -> Array:
        """Return the logarithms of the class probabilities, finite where these underflow.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._of_rows(X, FittedModel.log_probabilities)

    def predict_set(
        self, X: Any, coverage: float = 0.9, *, by_class: bool = False
    ) -> npt.NDArray[np.bool_]:
        """Return for each row the smallest set of labels that contains the right one.

        Conformal prediction, calibrated by the samples that the search for hyperparameters holds
        out: of rows drawn like the training rows, about the share `coverage` have their label in
        their set. A clear row has one label in its set, a row between classes several. Where the
        model errs less often than the coverage allows, sets of the least clear rows are empty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float, default=0.9
            Above 0 and below 1.
        by_class : bool, default=False
            Whether the coverage is to hold for the rows of each class on their own.

        Returns
        -------
        ndarray of shape (n_samples, n_classes): True where the label of `classes_` is in the set

        Examples
        --------
        >>> from kmeans_kernel import KMeansKernelClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> KMeansKernelClassifier(random_state=0).fit(X, y).predict_set(X[:1]).tolist()
        [[True, False, False]]
        """
        check_is_fitted(self)
        is_share = isinstance(coverage, Real) and not isinstance(coverage, bool)
        if not is_share or not 0 < coverage < 1:
            raise ValueError(
                f"coverage must be a number above 0 and below 1, got {coverage!r}. 0.9 asks for "
                "sets that contain the right label for nine rows in ten."
            )
        held_out = self.result_.held_out
        if held_out is None:
            raise ValueError(
                "predict_set needs held-out samples: no hyperparameter was searched, or the model "
                "file is of an earlier version. Leave regularization or gamma open in fit."
            )
        least = thresholds(held_out, len(self.classes_), float(coverage), by_class)
        return np.asarray(self.predict_proba(X) >= least)

    def familiarity(self, X: Any) -> Array:
        """Return how much like the training rows each row is, as a rank among them.

        The measure is the cosine with the nearest representative, in the learned feature scales.
        0.3 means that three training rows in ten are as far or farther from theirs; a row that is
        farther than all of them, as a photo of a cat is for a classifier of digits, has 0. Its
        label and probabilities then say little.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), from 0 to 1

        Examples
        --------
        >>> from kmeans_kernel import KMeansKernelClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True)
        >>> model = KMeansKernelClassifier(random_state=0).fit(X, y)
        >>> model.familiarity([[5.0, 3.4, 1.5, 0.2], [50.0, 3.4, 1.5, 20.0]]).round(1).tolist()
        [1.0, 0.0]
        """
        check_is_fitted(self)
        cosines = self.result_.cosines
        if cosines is None:
            raise ValueError(
                "familiarity needs the cosines of training rows, which partial_fit, patches of "
                "images and files of earlier versions do not have. Use fit, and save the model "
                "again."
            )
        found = self.model_.nearest_cosines(self._rows(X))
        # A training row has its own cosine up to rounding.
        return np.searchsorted(cosines, found + 1e-12, side="right") / len(cosines)

    def explain(self, X: Any, labels: Any = None, *, baseline: Any = None) -> Explanation:
        """Explain the scores of rows by their columns and by the representatives.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        labels : array-like of shape (n_samples,) or one label, default=None
            The class whose score is explained, for each row; by default the predicted class.
        baseline : array-like or frame of shape (1, n_features), default=None
            The row that others are compared with; by default a typical one, with the mean of each
            number and the most frequent level of each category.

        Returns
        -------
        Explanation
            `attributions`, of shape (n_samples, n_columns), add up to the difference of the scores
            of the row and of the baseline; `largest_effects(row)` lists them with their values.
            `contributions`, of shape (n_samples, m), add up to the score with the intercept;
            `largest(row)` lists the largest. `kmeans_kernel.report.plot_attributions` and
            `plot_explanation` draw them.

        Examples
        --------
        >>> from kmeans_kernel import KMeansKernelClassifier
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> explanation = KMeansKernelClassifier(5, random_state=0).fit(X, y).explain(X[:1])
        >>> explanation.largest_effects(0, 1)[0].column
        'petal length (cm)'
        >>> difference = explanation.scores - explanation.baseline_scores
        >>> bool(abs(explanation.attributions.sum() - difference[0]) < 1e-9)
        True
        """
        check_is_fitted(self)
        X = self._rows(X)
        if labels is None:
            columns = self.model_.scores(X).argmax(axis=1)
        else:
            columns = columns_of(labels, self.classes_, X.shape[0])
        if baseline is not None:
            baseline = dense(self._rows(as_row(baseline)))
            if len(baseline) != 1:
                raise ValueError(
                    f"baseline must be one row, got {len(baseline)}. Give the row that the others "
                    "are to be compared with."
                )
        return Explanation.of(self.model_, X, columns, self._table(), baseline)

    @property
    def feature_importances_(self) -> Array:
        """The share of each column in the sizes of all effects on scores, (n_columns,).

        Mean sizes of integrated gradients over the representatives, for the class of each.
        """
        check_is_fitted(self)
        # Kept, since scikit-learn's dir() looks at every attribute.
        model, shares = self.__dict__.get("_importances", (None, None))
        if model is not self.model_:
            model, shares = self.model_, importances(self.model_, self._table())
            self._importances = model, shares
        return np.array(shares)

    def _table(self) -> ColumnsOfModel:
        return ColumnsOfModel(self.columns_, self._columns is not None)

    @property
    def model_(self) -> FittedModel:
        """The fitted model."""
        return self.result_.model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # An even power of the cosine is the same for a row and its negative. Pixels have one sign,
        # but the centred blobs of scikit-learn's common tests have both.
        sign_blind = self.kernel == "poly" and self.lift == 0 and self.degree % 2 == 0
        tags.classifier_tags.poor_score = sign_blind
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self._allows_nan()
        tags.input_tags.string = tags.input_tags.categorical = self._allows_nan()
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "_result" in self.__dict__ or "_online" in self.__dict__

    def _of_rows(self, X: Any, of_scores: OfScores) -> npt.NDArray[Any]:
        """Return a function of the scores of X; lazily if X is a Dask collection."""
        check_is_fitted(self)
        engine = engine_of(X)
        if engine is None:
            return of_scores(self.model_, self._scores(X))
        frozen = copy(self)  # a lazy result keeps the current model, even after another fit
        frozen.result_ = self.result_
        row = as_floats(np.zeros((1, self.model_.n_columns), dtype=engine.type_of(X)))
        example = of_scores(self.model_, self.model_.scores(row))
        lazy: npt.NDArray[Any] = engine.apply(
            lambda rows: of_scores(frozen.model_, frozen._scores(rows)), X, example
        )
        return lazy

    def _rows(self, X: Any) -> Matrix:
        """Return validated rows of numbers, as the model takes them."""
        if self._columns is not None:
            return code_table(self, self._columns, X)
        allow_nan = self.model_.sphere_map.feature_transform is not None
        table = None
        if hasattr(X, "columns"):
            refuse_repeated_names(self, X)
            table = as_table(X) if is_frame(X) else None
        if table is not None:  # dates and durations are no plain numbers
            coded = code_table(self, plain_columns(self), table)
            check_finite(type(self).__name__, coded, list(table.columns), allow_nan=allow_nan)
            return coded
        return check_rows(self, X, reset=False, allow_nan=allow_nan)

    def _scores(self, X: Any) -> Array:
        X = self._rows(X)
        operations = 2.0 * X.shape[0] * self.model_.directions.size
        with threads_for(operations, self.n_jobs) as executor:
            return self.model_.scores(X, executor)

    def _warn_if_not_converged(self) -> None:
        labels = self.model_.classes[self.result_.deviations > self.tol]
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
    """Return the label with the highest score of each row."""
    return np.asarray(model.classes[scores.argmax(axis=1)])


def decisions(model: FittedModel, scores: Array) -> Array:
    """Return the scores; for two classes, the second score minus the first."""
    del model
    return np.asarray(scores[:, 1] - scores[:, 0]) if scores.shape[1] == 2 else scores


def _operations(rows: LabelledRows, config: TrainingConfig) -> float:
    """Estimate the operations of a fit: five Lloyd iterations of every class, and the solve."""
    q, d = config.n_representatives, row_width(rows.X)
    m = float(basis_size(rows, q))
    if config.may_shrink:  # to a share of the rows
        m = min(m, len(rows) / 2)
    passes = 5 * sum(2.0 * n * min(n, q) * d for n in rows.class_sizes)
    solve = m**2 * d + m**3 / 3
    if config.fit_on == "samples":
        solve += 2.0 * len(rows) * m * (m + d)
    return passes + solve
