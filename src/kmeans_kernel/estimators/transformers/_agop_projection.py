"""Projection on the eigenvectors of the average gradient outer product (AGOP)."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from scipy.linalg import eigh
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.model.agop import ENOUGH_ROWS, average_gradient_outer_product
from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.utils.validation import (
    RandomState,
    check_count,
    check_rows,
    check_rows_and_labels,
)

# The most rows that the small classifier is trained on.
_MOST_ROWS = 10_000

# Eigenvectors with eigenvalues below this share of the largest are left out.
_LEAST = 1e-12


class AGOPProjection(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Project rows on the eigenvectors of the average gradient outer product (AGOP) of the scores.

    A small classifier is trained, and the AGOP, M, is the mean over rows of the outer products of
    the gradients of its scores. The eigenvectors of M are the directions along which the scores
    change; distances between projected rows are those of the metric √M, as in recursive feature
    machines (Radhakrishnan et al., Science 383, 2024). `feature_scales` of the classifier uses the
    diagonal of the same matrix. The projection is for rows of many features that act jointly, such
    as pixels; with fewer components than features it makes the next step cheaper. Standardised
    components would lose the metric, so the next classifier gets `feature_transform=None`.

    Parameters
    ----------
    n_components : int, default=100
        The most eigenvectors that are kept.
    n_representatives : int, default=50
        Representatives of each class in the small classifier.
    gamma, regularization, lift : float or "auto", default="auto"
        Parameters of the small classifier, which has an RBF kernel and the squared loss.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of the training rows of the small classifier, at most 10,000, and of its
        initial centroids.

    Attributes
    ----------
    components_ : ndarray of shape (n_features, n_components)
        The projection: scaled eigenvectors in columns, by decreasing eigenvalue.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X had string column names.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from kmeans_kernel import KMeansKernelClassifier, AGOPProjection
    >>> from kmeans_kernel.data import load_digits
    >>> digits = load_digits()
    >>> X_train, X_test = (X.reshape(len(X), -1) for X in (digits.X_train, digits.X_test))
    >>> model = make_pipeline(
    ...     AGOPProjection(40, random_state=0),
    ...     KMeansKernelClassifier(50, feature_transform=None, random_state=0),
    ... )
    >>> bool(model.fit(X_train, digits.y_train).score(X_test, digits.y_test) > 0.95)
    True
    """

    def __init__(
        self,
        n_components: int = 100,
        *,
        n_representatives: int = 50,
        gamma: float | Literal["auto"] = "auto",
        regularization: float | Literal["auto"] = "auto",
        lift: float | Literal["auto"] = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.n_components = n_components
        self.n_representatives = n_representatives
        self.gamma = gamma
        self.regularization = regularization
        self.lift = lift
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn the projection from rows and their labels.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)

        Returns
        -------
        self
        """
        n_components = check_count(self, "n_components")
        random = check_random_state(self.random_state)
        X, y = check_rows_and_labels(self, X, y)
        check_classification_targets(y)
        rows = random.permutation(X.shape[0])[:_MOST_ROWS]
        small = KMeansKernelClassifier(
            self.n_representatives,
            kernel="rbf",
            gamma=self.gamma,
            regularization=self.regularization,
            loss="squared",
            lift=self.lift,
            feature_scales=None,
            feature_transform=None,
            random_state=random.randint(np.iinfo(np.int32).max),
        ).fit(X[rows], y[rows])
        some = rows[:ENOUGH_ROWS]
        outer = average_gradient_outer_product(small.model_, X[some], np.ones(len(some)))
        d = len(outer)
        values, axes = eigh(outer, subset_by_index=(max(0, d - n_components), d - 1))
        values, axes = values[::-1], axes[:, ::-1]
        kept = max(1, int((values > _LEAST * values[0]).sum()))
        # The metric √M is P Pᵀ for P = V Λ^¼. If all gradients are zero, one axis is kept.
        shares = values[:kept] / values[0] if values[0] > 0 else np.ones(1)
        self.components_ = np.ascontiguousarray(axes[:, :kept] * shares**0.25)
        return self

    def transform(self, X: Any) -> Array:
        """Project rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_components), in the precision of X
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return np.asarray(X @ self.components_.astype(X.dtype, copy=False))

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[1])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags
