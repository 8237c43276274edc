"""scikit-learn's own checks, in full: none is expected to fail and none may be skipped."""

import pytest
from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import check_estimator, parametrize_with_checks

from kmeans_kernel import (
    AGOPProjection,
    Deskewer,
    EdgePatterns,
    FourierFeatures,
    KMeansKernelClassifier,
    OrientedGradients,
    PatchVotingClassifier,
    PixelNormalizer,
    SphericalKMeans,
    TableEncoder,
    paper,
)

ESTIMATORS = [
    KMeansKernelClassifier(),
    paper.raw()[-1],
    KMeansKernelClassifier(kernel="poly", degree=3, init="k-means++"),
    SphericalKMeans(),
    SphericalKMeans(init="k-means++"),
    PixelNormalizer(),
    FourierFeatures(),
    FourierFeatures(root=False),
    AGOPProjection(),
    TableEncoder(),
]


# scikit-learn's checks fit tiny and odd data, and warn of it.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "estimator",
    [
        PatchVotingClassifier(KMeansKernelClassifier()),
        Deskewer(),
        OrientedGradients(),
        EdgePatterns(),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_scikit_learn_on_images(estimator):
    """What applies to an estimator of images only; the rest is tested beside the estimator."""
    with pytest.warns(SkipTestWarning, match="three_d_array=True"):
        results = check_estimator(estimator, on_fail=None)
    assert results
    assert {result["status"] for result in results} == {"passed"}
