"""Sparse rows give what dense ones give, and stay sparse."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

from kmeans_kernel import KMeansKernelClassifier, SphericalKMeans
from kmeans_kernel.core.arrays import matrices
from kmeans_kernel.core.arrays.rows import merge_equal_rows
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.clustering.assignment import (
    assign,
    cluster_sums,
    own_similarities,
    reassign,
)


@pytest.fixture
def both(rng):
    X = rng.normal(size=(80, 30)) * (rng.random((80, 30)) < 0.15)
    X[7] = 0.0
    return X, sp.csr_array(X)


@pytest.mark.parametrize("lift", [0.0, 0.7])
@pytest.mark.parametrize("scaled", [False, True])
@pytest.mark.parametrize("size", [1.0, 1e200, 1e-200])
def test_unit_rows_of_sparse_and_dense_rows_agree(both, lift, scaled, size, rng):
    X, S = both
    scales = rng.random(30) + 0.5 if scaled else None
    found = unit_rows(size * S, size * lift, np.float64, scales)
    assert sp.issparse(found)
    expected = unit_rows(size * X, size * lift, np.float64, scales)
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-12)


def test_operations_on_sparse_and_dense_rows_agree(both, rng):
    X, S = both
    Y, partners = rng.normal(size=(9, 30)), rng.integers(0, 9, 80)
    out = np.empty((80, 9))
    np.testing.assert_allclose(matrices.multiply_into(out, S, Y), X @ Y.T)
    np.testing.assert_allclose(
        matrices.paired_products(S, Y, partners), matrices.paired_products(X, Y, partners)
    )
    np.testing.assert_allclose(matrices.squared_lengths(S), (X**2).sum(axis=1))
    np.testing.assert_allclose(matrices.largest_entries(S), np.abs(X).max(axis=1))
    np.testing.assert_allclose(
        matrices.scale_columns(S, np.arange(30.0)).toarray(), X * np.arange(30)
    )
    assert matrices.row_width(X) == 30
    assert matrices.row_width(S) == S.nnz // 80
    assert matrices.row_width(sp.csr_array((5, 7))) == 1


def test_assignments_and_sums_of_sparse_and_dense_rows_agree(both, rng):
    U = unit_rows(both[0], 1.0, np.float64)
    S = sp.csr_array(U)
    centroids, weights = unit_rows(rng.normal(size=(6, 31)), dtype=np.float64), rng.random(80)
    one, two = assign(U, centroids), assign(S, centroids)
    np.testing.assert_array_equal(one.labels, two.labels)
    np.testing.assert_allclose(
        cluster_sums(S, two.labels, 6, weights), cluster_sums(U, one.labels, 6, weights)
    )
    moved = unit_rows(centroids + 0.05 * rng.normal(size=(6, 31)), dtype=np.float64)
    turns = np.arccos(np.clip((moved * centroids).sum(axis=1), -1, 1)) * 1.001
    np.testing.assert_array_equal(
        reassign(S, moved, two, turns).labels, reassign(U, moved, one, turns).labels
    )
    np.testing.assert_allclose(
        own_similarities(S, centroids, two.labels), own_similarities(U, centroids, one.labels)
    )


def test_equal_rows_are_merged(both):
    X, S = both
    codes = np.arange(80) % 2
    again = np.repeat(np.arange(80), np.arange(80) % 3)
    merged, of_class, total = merge_equal_rows(S[again], codes[again], None)
    counted = {}
    for i in again:
        key = (*X[i].tolist(), codes[i])
        counted[key] = counted.get(key, 0) + 1
    found = zip(merged.toarray(), of_class, total, strict=True)
    assert {(*x.tolist(), c): w for x, c, w in found} == counted
    assert merge_equal_rows(S, codes, None)[0] is S


# Rows of counts have ties, which rounding breaks: other clusters in a fold may choose another λ. So
# most of it is given. Dense rows would be standardised, which sparse rows are not.
OPTIONS = [
    {"kernel": "rbf", "feature_scales": None},
    {"kernel": "laplacian", "gamma": 0.5, "regularization": 1e-4, "loss": "logistic",
     "feature_scales": None},
    {"fit_on": "representatives", "lift": 0.0},
    {"init": "k-means++", "kernel": "poly"},
    {"n_representatives": 500, "gamma": 0.5, "regularization": 1e-3},
    {"feature_scales": "learned", "n_representatives": 3},
]  # fmt: skip


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_matrix, sp.coo_array])
def test_classifiers_of_sparse_and_dense_rows_agree(options, kind, rng):
    X = rng.poisson(0.3, size=(300, 20)).astype(float)
    y = (X[:, :5].sum(axis=1) > X[:, 5:10].sum(axis=1)).astype(int)
    options = {
        "n_representatives": 10, "random_state": 0, "feature_transform": None, **options
    }  # fmt: skip
    dense = KMeansKernelClassifier(**options).fit(X, y)
    sparse = KMeansKernelClassifier(**options).fit(kind(X), y)
    np.testing.assert_allclose(
        sparse.decision_function(kind(X)), dense.decision_function(X), atol=2e-4
    )
    np.testing.assert_allclose(sparse.representatives_, dense.representatives_, atol=1e-4)
    explained = sparse.explain(kind(X)[:3] if kind is not sp.coo_array else sp.csr_array(X)[:3])
    np.testing.assert_allclose(
        explained.contributions, dense.explain(X[:3]).contributions, rtol=1e-2, atol=1e-2
    )


def test_clusterings_of_sparse_and_dense_rows_agree(both):
    X, S = both
    dense, sparse = (SphericalKMeans(5, random_state=0).fit(rows) for rows in (X, S))
    np.testing.assert_array_equal(dense.labels_, sparse.labels_)
    np.testing.assert_array_equal(dense.predict(X), sparse.predict(S))
    np.testing.assert_allclose(dense.transform(X), sparse.transform(S), atol=1e-6)


def test_stored_zeros_and_unsorted_indices_do_not_matter(rng):
    X = rng.poisson(0.5, size=(60, 8)).astype(float)
    y = (X[:, 0] > X[:, 1]).astype(int)
    messy = sp.csr_matrix(X)
    messy.indices, messy.data = messy.indices.copy(), messy.data.copy()
    for k in range(60):
        part = slice(messy.indptr[k], messy.indptr[k + 1])
        messy.indices[part], messy.data[part] = messy.indices[part][::-1], messy.data[part][::-1]
    messy.has_sorted_indices = False
    before = messy.indices.copy()
    one = KMeansKernelClassifier(5, random_state=0).fit(messy, y)
    two = KMeansKernelClassifier(5, random_state=0).fit(sp.csr_array(X), y)
    np.testing.assert_array_equal(one.decision_function(messy), two.decision_function(messy))
    np.testing.assert_array_equal(messy.indices, before)


def test_nonfinite_entries_are_refused():
    X = sp.csr_array(np.array([[0.0, np.nan], [1.0, 0.0]]))
    with pytest.raises(ValueError, match="NaN or infinity among its stored entries"):
        KMeansKernelClassifier().fit(X, [0, 1])


def test_rows_stay_sparse():
    """Dense, these rows would take 1.6 GB; the representatives alone take 8 MB."""
    rng = np.random.default_rng(0)
    n, d, per_row = 20_000, 10_000, 20
    y = np.arange(n) % 2
    columns = rng.integers(0, d // 2, (n, per_row)) + (d // 4) * y[:, None]
    X = sp.csr_array(
        (np.ones(n * per_row), columns.ravel(), per_row * np.arange(n + 1)), shape=(n, d)
    )
    tracemalloc.start()
    found = KMeansKernelClassifier(50, random_state=0, max_iter=5, tol=1e-3, gamma=1.0).fit(X, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6
    assert found.score(X, y) > 0.9
