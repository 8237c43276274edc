import numpy as np

from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.online import OnlineCentroids
from tests.reference import online as twin


def test_centroids_equal_the_twin(rng):
    U = unit_rows(rng.normal(size=(60, 4)), dtype=np.float64)
    parts = np.split(U, [3, 5, 20, 21, 50])
    found = OnlineCentroids.empty(4)
    for part in parts:
        found = found.update(part, np.ones(len(part)), 6)
    centroids, counts = twin.update_centroids([part.tolist() for part in parts], 6)
    np.testing.assert_allclose(found.centroids, centroids, atol=1e-6)
    np.testing.assert_array_equal(found.counts, counts)
