import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from kmeans_kernel import SphericalKMeans
from kmeans_kernel.core.arrays.sphere import unit_rows


@pytest.fixture(scope="module")
def groups():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 50)
    X = np.eye(6)[y] * rng.uniform(1, 100, size=(200, 1)) * (1 + 0.05 * rng.normal(size=(200, 6)))
    return X, y


def test_finds_directions_whatever_the_lengths(groups):
    X, y = groups
    found = SphericalKMeans(4, init="k-means++", random_state=0).fit(X)
    assert adjusted_rand_score(y, found.labels_) == 1.0
    np.testing.assert_array_equal(found.predict(X), found.labels_)
    np.testing.assert_array_equal(clone(found).fit_predict(X), found.labels_)
    np.testing.assert_allclose(np.linalg.norm(found.cluster_centers_, axis=1), 1, atol=1e-6)
    assert found.n_iter_ >= 1


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_transform_is_the_cosine_distance_and_inertia_its_sum(groups, dtype):
    X = groups[0].astype(dtype)
    found = SphericalKMeans(4, random_state=0).fit(X)
    distances = found.transform(X)
    assert distances.dtype == dtype
    expected = 1 - unit_rows(X, dtype=np.float64) @ found.cluster_centers_.T.astype(np.float64)
    np.testing.assert_allclose(distances, expected, atol=1e-6)
    np.testing.assert_array_equal(distances.argmin(axis=1), found.labels_)
    assert found.inertia_ == pytest.approx(expected.min(axis=1).sum(), abs=1e-4)


def test_close_to_a_peer_on_the_sphere():
    """Cosine K-means and Lloyd's algorithm on unit rows minimise nearly the same thing."""
    X = unit_rows(np.random.default_rng(0).normal(size=(2000, 5)), dtype=np.float64)
    ours = min(SphericalKMeans(20, random_state=s).fit(X).inertia_ for s in range(5))
    peer = KMeans(20, n_init=5, random_state=0).fit(X)
    centers = unit_rows(peer.cluster_centers_, dtype=np.float64)
    assert ours < 1.02 * (1 - (X @ centers.T).max(axis=1)).sum()


def test_frames_and_set_output(groups):
    frame = pd.DataFrame(groups[0], columns=list("abcdef"))
    found = SphericalKMeans(3, random_state=0).set_output(transform="pandas").fit(frame)
    assert list(found.transform(frame).columns) == [f"sphericalkmeans{i}" for i in range(3)]
    np.testing.assert_array_equal(found.feature_names_in_, list("abcdef"))


def test_errors_and_warnings(groups, capsys, rng):
    X, _ = groups
    with pytest.raises(ValueError, match="'n_clusters' parameter of SphericalKMeans must be"):
        SphericalKMeans(0).fit(X)
    with pytest.raises(ValueError, match="at most the number of rows, got n_clusters=9 for n_samp"):
        SphericalKMeans(9).fit(X[:5])
    with pytest.warns(ConvergenceWarning, match="max_iter=1 with a deviation of"):
        SphericalKMeans(20, max_iter=1, random_state=0).fit(rng.normal(size=(200, 6)))
    SphericalKMeans(4, random_state=0, verbose=True).fit(X)
    assert "iteration 1: deviation" in capsys.readouterr().err
