"""Spherical K-means as a scikit-learn clusterer and transformer."""

from __future__ import annotations

import sys
import warnings
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel.core.arrays.matrices import Array, multiply_into, row_blocks, row_width
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.assignment import assign, own_similarities
from kmeans_kernel.core.clustering.spherical_kmeans import Init, cluster
from kmeans_kernel.utils.threads import threads_for
from kmeans_kernel.utils.validation import (
    RandomState,
    check_count,
    check_number,
    check_option,
    check_rows,
)


class SphericalKMeans(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator
):
    """Spherical K-means: K-means by cosine similarity, on rows divided by their length.

    Lloyd iterations with exact pruning by the triangle inequality; labels are those of the dense
    algorithm, up to ties within rounding.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    init : {"random", "k-means++"}, default="random"
        Choice of the initial centroids among the rows.
    tol : float, default=1e-6
        Stop when the mean of 1 − cosine between old and new centroids is at most this.
    max_iter : int, default=300
        Stop, with a ConvergenceWarning, after this many iterations.
    random_state : int, RandomState instance or None, default=None
        Seed or generator of the initial centroids; an int makes the fit reproducible.
    verbose : bool, default=False
        Whether to write the deviation of each iteration to standard error.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centroids, unit rows.
    labels_ : ndarray of shape (n_samples,)
        The cluster of each row of the training data.
    inertia_ : float
        The sum over the rows of 1 − cosine with their centroid.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, when X had string column names.

    References
    ----------
    I. S. Dhillon and D. S. Modha, "Concept decompositions for large sparse text data using
    clustering", Machine Learning 42, 2001.

    Examples
    --------
    >>> from kmeans_kernel import SphericalKMeans
    >>> X = [[1, 0], [2, 0.1], [0, 1], [0.1, 3]]
    >>> labels = SphericalKMeans(n_clusters=2, random_state=0).fit_predict(X)
    >>> bool(labels[0] == labels[1] != labels[2] == labels[3])
    True
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        init: Init = "random",
        tol: float = 1e-6,
        max_iter: int = 300,
        random_state: RandomState = None,
        verbose: bool = False,
    ) -> None:
        self.n_clusters = n_clusters
        self.init = init
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002
        """Find the clusters.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : ignored

        Returns
        -------
        self
        """
        n_clusters = check_count(self, "n_clusters")
        init: Init = check_option(self, "init", "random", "k-means++")  # type: ignore[assignment]
        tol = check_number(self, "tol")
        max_iter = check_count(self, "max_iter")
        X = check_rows(self, X, reset=True)
        if n_clusters > X.shape[0]:
            raise ValueError(
                f"The 'n_clusters' parameter of {type(self).__name__} must be at most the number "
                f"of rows, got n_clusters={n_clusters} for n_samples={X.shape[0]}."
            )
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        directions = unit_rows(X)
        with threads_for(2.0 * n_clusters * X.shape[0] * row_width(X)):
            found = cluster(
                directions,
                n_clusters,
                init=init,
                tol=tol,
                max_iter=max_iter,
                rng=np.random.default_rng(seed),
                on_iteration=_write_deviation if self.verbose else None,
            )
        if found.deviation > tol:
            warnings.warn(
                f"K-means stopped at max_iter={max_iter} with a deviation of "
                f"{found.deviation:.1e}, above tol={tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self.cluster_centers_ = found.centroids
        self.labels_ = found.labels
        similarities = own_similarities(directions, found.centroids, found.labels)
        self.inertia_ = float(X.shape[0] - similarities.sum(dtype=np.float64))
        self.n_iter_ = found.n_iter
        return self

    def predict(self, X: Any) -> npt.NDArray[np.intp]:
        """Return the cluster with the most similar centroid for each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        return assign(unit_rows(X), self.cluster_centers_).labels

    def transform(self, X: Any) -> Array:
        """Return the cosine distance, 1 − cosine, of each row to each centroid.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_clusters), in the precision of X
        """
        check_is_fitted(self)
        X = check_rows(self, X, reset=False)
        centers = self.cluster_centers_.astype(X.dtype, copy=False)
        distances = np.empty((X.shape[0], len(centers)), dtype=X.dtype)
        for rows in row_blocks(X.shape[0], len(centers)):
            multiply_into(distances[rows], unit_rows(X[rows], dtype=X.dtype), centers)
        np.subtract(1.0, distances, out=distances)
        return np.maximum(distances, 0.0, out=distances)  # a cosine may round above one

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags


def _write_deviation(n_iter: int, deviation: float) -> None:
    sys.stderr.write(f"iteration {n_iter}: deviation {deviation:.1e}\n")
