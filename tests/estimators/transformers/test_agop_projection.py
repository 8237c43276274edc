import numpy as np
import pytest
from scipy import sparse

from kmeans_kernel import AGOPProjection, KMeansKernelClassifier


@pytest.fixture
def slanted(rng):
    """Labels that change along one direction, which is that of no feature."""
    X = rng.normal(size=(600, 12))
    direction = np.ones(12) / np.sqrt(12)
    return X, (np.abs(X @ direction) > 0.7).astype(int), direction


def test_the_first_component_is_the_direction_that_matters(slanted):
    X, y, direction = slanted
    metric = AGOPProjection(3, random_state=0).fit(X, y)
    first = metric.components_[:, 0]
    assert abs(first @ direction) > 0.95 * np.linalg.norm(first)
    lengths = np.linalg.norm(metric.components_, axis=0)
    assert lengths[0] == pytest.approx(1.0)
    assert (np.diff(lengths) < 0).all()
    np.testing.assert_allclose(metric.transform(X), X @ metric.components_)
    assert metric.get_feature_names_out().tolist() == [f"agopprojection{k}" for k in range(3)]


def test_it_helps_where_features_matter_together(slanted):
    X, y, _ = slanted
    metric = AGOPProjection(12, random_state=0).fit(X[:400], y[:400])
    scores = [
        KMeansKernelClassifier(20, random_state=0).fit(train, y[:400]).score(test, y[400:])
        for train, test in (
            (X[:400], X[400:]),
            (metric.transform(X[:400]), metric.transform(X[400:])),
        )
    ]
    assert scores[1] > scores[0] + 0.05


def test_sparse_rows_are_the_same_rows(slanted):
    X, y, _ = slanted
    dense = AGOPProjection(3, random_state=0).fit(X, y)
    rows = sparse.csr_array(X)
    found = AGOPProjection(3, random_state=0).fit(rows, y)
    np.testing.assert_allclose(np.abs(found.transform(rows)), np.abs(dense.transform(X)), atol=1e-6)


def test_there_are_no_more_components_than_features_and_at_least_one(rng):
    X, y = rng.normal(size=(50, 3)), np.arange(50) % 2
    assert AGOPProjection(random_state=0).fit(X, y).transform(X).shape == (50, 3)
    nothing = AGOPProjection(random_state=0).fit(np.zeros((4, 3)), [0, 1, 0, 1])
    assert nothing.transform(np.ones((2, 3))).shape == (2, 1)


def test_a_bad_number_is_named(slanted):
    X, y, _ = slanted
    with pytest.raises(ValueError, match="'n_components' parameter of AGOPProjection"):
        AGOPProjection(0).fit(X, y)
