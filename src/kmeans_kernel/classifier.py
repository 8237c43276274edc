"""The K-means kernel classifier as a scikit-learn estimator."""

from __future__ import annotations

import warnings
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel._blocks import Array
from kmeans_kernel._kernels import Gaussian, Kernel, Polynomial
from kmeans_kernel._model import FittedModel
from kmeans_kernel._progress import watcher_for
from kmeans_kernel._spherical_kmeans import Init
from kmeans_kernel._threads import threads_for
from kmeans_kernel._training import Settings, train
from kmeans_kernel._validation import (
    check_count,
    check_number,
    check_option,
    check_rows,
    check_rows_and_labels,
    codes_of,
)


class KMeansKernelClassifier(ClassifierMixin, BaseEstimator):
    """A kernel classifier trained on a few representatives of each class.

    Each class is clustered by cosine K-means; its centroids are the representatives, and a
    least-squares kernel machine is trained on them. The one knob is `n_representatives`: more
    of them give a lower error and a longer training. The other defaults suit standardised
    tables; `kmeans_kernel.paper` has the paper's settings.

    Parameters
    ----------
    n_representatives : int, default=100
        Centroids per class (Q). A class with no more rows than that is represented by its rows.
    kernel : {"gaussian", "poly"}, default="gaussian"
        The kernel, a function of the cosine c between two rows: exp(−2γ(1 − c)) or cᵈ.
    degree : int, default=4
        The degree d of the polynomial kernel, at most 1000.
    gamma : float, default=1.0
        The inverse width γ of the Gaussian kernel, at most 1e6.
    regularization : float, default=0.01
        What is added to the diagonal of the kernel matrix (ε). The paper's is 1e-6.
    lift : float, default=1.0
        A constant appended to each row before it is normalised. 0, the paper's setting, compares
        rows by direction alone, and with an even degree cannot tell a row from its negative; a
        value near the typical length of a row keeps their lengths.
    init : {"random", "k-means++"}, default="random"
        How K-means chooses its first centroids.
    tol : float, default=1e-6
        K-means stops when the mean deviation 1 − cosine of a move is at most this (τ).
    max_iter : int, default=300
        K-means stops, with a ConvergenceWarning, after this many iterations.
    random_state : int, RandomState instance or None, default=None
        Decides the first centroids; an int gives the same model every time.
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
        How many training rows each representative stands for.
    dual_coef_ : ndarray of shape (m, n_classes)
        The weight of each representative in the score of each class.
    intercept_ : ndarray of shape (n_classes,)
        What is added to the scores.
    n_iter_ : ndarray of shape (n_classes,)
        K-means iterations of each class.
    relative_residual_ : float
        How exactly the system for the coefficients was solved; never above 1e-6.
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
    >>> from kmeans_kernel.datasets import load_digits
    >>> digits = load_digits()
    >>> X_train, X_test = (X.reshape(len(X), -1) for X in (digits.X_train, digits.X_test))
    >>> classifier = KMeansKernelClassifier(n_representatives=50, random_state=0)
    >>> classifier.fit(X_train, digits.y_train).score(X_test, digits.y_test) > 0.95
    True
    """

    _takes_lazy_rows = True

    def __init__(
        self,
        n_representatives: int = 100,
        *,
        kernel: Literal["gaussian", "poly"] = "gaussian",
        degree: int = 4,
        gamma: float = 1.0,
        regularization: float = 0.01,
        lift: float = 1.0,
        init: Init = "random",
        tol: float = 1e-6,
        max_iter: int = 300,
        random_state: int | np.random.RandomState | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_representatives = n_representatives
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.regularization = regularization
        self.lift = lift
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train on rows and their labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Finite numbers. Bytes, two-byte integers and float32 are worked on in float32, anything
            else may be in float64: see `docs/architecture.md`.
        y : array-like of shape (n_samples,)
            Labels of any type, of at least two classes.

        Returns
        -------
        self
        """
        settings = self._settings()
        self.__dict__.pop("model_", None)  # a fit that fails leaves nothing half-fitted
        X, y = check_rows_and_labels(self, X, y)
        classes, codes = codes_of(y)
        check_classification_targets(y)
        if len(classes) < 2:
            raise ValueError(
                f"{type(self).__name__} needs at least two classes in y, got one class: "
                f"{classes.tolist()[0]!r}. Check that the labels were read as intended."
            )
        random = check_random_state(self.random_state)
        seeds = random.randint(np.iinfo(np.int32).max, size=len(classes))
        sizes = np.bincount(codes).tolist()
        with threads_for(_operations(settings.n_representatives, sizes, X.shape[1])) as workers:
            training = train(
                lambda k: X[codes == k],
                sizes,
                classes,
                settings,
                [np.random.default_rng(seed) for seed in seeds],
                watcher_for(sizes, verbose=self.verbose),
                workers,
            )
        if not training.converged.all():
            self._warn_not_converged(classes[~training.converged])
        self.model_ = training.model
        self.n_iter_ = training.n_iter
        self.relative_residual_ = training.relative_residual
        self.stage_seconds_ = training.seconds
        return self

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
        scores = self._scores(X)
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - scores[:, 0])
        return scores

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """Return the label with the highest score for each row of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        winners = self._scores(X).argmax(axis=1)
        return np.asarray(self.model_.classes[winners])

    def predict_proba(self, X: Any) -> Array:
        """Return the softmax of the scores, the paper's measure of certainty.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes): rows sum to one, and order as the scores do
        """
        scores = self._scores(X)
        return self.model_.probabilities(scores)

    @property
    def classes_(self) -> npt.NDArray[Any]:
        """The labels."""
        return self._fitted().classes

    @property
    def representatives_(self) -> Array:
        """The representatives, (m, n_features)."""
        return self._fitted().representatives

    @property
    def representative_classes_(self) -> npt.NDArray[Any]:
        """The label of each representative."""
        model = self._fitted()
        return model.classes[model.representative_classes]

    @property
    def representative_counts_(self) -> npt.NDArray[np.intp]:
        """How many training rows each representative stands for."""
        return self._fitted().representative_counts

    @property
    def dual_coef_(self) -> Array:
        """The dual coefficients, (m, n_classes)."""
        return self._fitted().dual_coef

    @property
    def intercept_(self) -> Array:
        """The intercepts, (n_classes,)."""
        return self._fitted().intercept

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # An even power of the cosine is the same for a row and its negative. Pixels have one sign;
        # the centred blobs that scikit-learn scores its test on do not.
        sign_blind = self.kernel == "poly" and self.lift == 0 and self.degree % 2 == 0
        tags.classifier_tags.poor_score = sign_blind
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in self.__dict__

    def _fitted(self) -> FittedModel:
        """Return the model, or say that there is none the way a missing attribute does."""
        try:
            model: FittedModel = self.__dict__["model_"]
        except KeyError:
            raise AttributeError(f"this {type(self).__name__} is not fitted yet") from None
        return model

    def _scores(self, X: Any) -> Array:
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        with threads_for(2.0 * len(X) * self.model_.directions.size) as workers:
            return self.model_.scores(X, workers)

    def _settings(self) -> Settings:
        kernels: dict[str, Kernel] = {
            "gaussian": Gaussian(check_number(self, "gamma", above=True, maximum=1e6)),
            "poly": Polynomial(check_count(self, "degree", maximum=1000)),
        }
        return Settings(
            n_representatives=check_count(self, "n_representatives"),
            kernel=kernels[check_option(self, "kernel", *kernels)],
            regularization=check_number(self, "regularization"),
            lift=check_number(self, "lift"),
            init=check_option(self, "init", "random", "k-means++"),  # type: ignore[arg-type]
            tol=check_number(self, "tol"),
            max_iter=check_count(self, "max_iter"),
        )

    def _warn_not_converged(self, labels: npt.NDArray[Any]) -> None:
        warnings.warn(
            f"K-means stopped at max_iter={self.max_iter} before the deviation fell to "
            f"tol={self.tol:g}, for class {', '.join(map(str, labels))}. Raise max_iter or tol; "
            "the model is usable as it is.",
            ConvergenceWarning,
            stacklevel=3,
        )


def _operations(n_representatives: int, sizes: list[int], n_features: int) -> float:
    """Return about how many operations a fit takes: some passes of K-means, and the solve."""
    passes = 5 * sum(2.0 * n * min(n, n_representatives) * n_features for n in sizes)
    m = float(sum(min(n, n_representatives) for n in sizes))
    return passes + m**2 * n_features + m**3 / 3
