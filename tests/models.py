"""What tests of one model trained in several ways share."""

import numpy as np

from kmeans_kernel import KMeansKernelClassifier

# Nothing left to choose, which is fast.
GIVEN = {"gamma": 1.0, "regularization": 1e-4, "feature_scales": None}


def fit(*data, n_representatives=8, **options):
    return KMeansKernelClassifier(n_representatives, random_state=0, **options).fit(*data)


def assert_same(one, two, X):
    """Two classifiers that came about in different ways are one."""
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-8)
    np.testing.assert_array_equal(one.n_iter_, two.n_iter_)
    np.testing.assert_allclose(one.representative_counts_, two.representative_counts_)
