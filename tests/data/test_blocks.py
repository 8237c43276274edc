from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler

from kmeans_kernel import KMeansKernelClassifier
from kmeans_kernel.core.arrays.execution import SERIAL
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.arrays.sphere import unit_rows
from kmeans_kernel.core.arrays.stream import concatenate_rows
from kmeans_kernel.core.clustering.assignment import nearest_sums
from kmeans_kernel.data._blocks import ArrayBlocks, BlockCheck, LocalSource, ParquetBlocks
from kmeans_kernel.data._pipelines import fit_pipeline
from kmeans_kernel.data._sources import open_stream
from tests.models import GIVEN, assert_same, fit
from tests.reference import spherical_kmeans as twin


@pytest.fixture(scope="module")
def table():
    X, y = make_classification(
        700, 12, n_informative=6, n_classes=3, n_clusters_per_class=2, random_state=0
    )
    return X, np.array(["ape", "bear", "cat"])[y]


@pytest.mark.parametrize("rows", [50, 333, 10_000])
@pytest.mark.parametrize(
    "options",
    [
        GIVEN,
        {**GIVEN, "fit_on": "representatives"},
        {**GIVEN, "loss": "logistic"},
        {**GIVEN, "lift": 0.0, "kernel": "poly"},
        {**GIVEN, "n_representatives": 300},  # one class is its own representatives
        {**GIVEN, "class_weight": {"ape": 2.0}, "n_representatives": 300},
    ],
    ids=str,
)
def test_blocks_give_the_model_of_all_rows(table, options, rows):
    X, y = table
    assert_same(fit(ArrayBlocks(X, y, rows=rows), **options), fit(X, y, **options), X)


@pytest.mark.parametrize(
    "options", [{}, {"fit_on": "representatives"}, {"feature_transform": "asinh"}]
)
def test_what_is_chosen_is_the_same(table, options):
    X, y = table
    blocks, whole = fit(ArrayBlocks(X, y, rows=100), **options), fit(X, y, **options)
    assert (blocks.gamma_, blocks.regularization_) == (whole.gamma_, whole.regularization_)
    assert blocks.held_out_error_ == whole.held_out_error_
    assert_same(blocks, whole, X)
    np.testing.assert_allclose(blocks.predict_proba(X), whole.predict_proba(X), atol=1e-8)


def test_the_order_of_columns_changes_nothing(table):
    X, y = table
    order = np.random.default_rng(5).permutation(X.shape[1])
    found, other = fit(ArrayBlocks(X, y, rows=100)), fit(ArrayBlocks(X[:, order], y, rows=100))
    np.testing.assert_array_equal(found.decision_function(X), other.decision_function(X[:, order]))


def test_the_first_rows_come_from_the_first_blocks(table):
    X, y = table
    read = []

    class Counted(ArrayBlocks):
        def __iter__(self):
            for block in super().__iter__():
                read.append(len(block[1]))
                yield block

    source = LocalSource(Counted(X, y, rows=100), BlockCheck("test"))
    stream = open_stream("test", source, None)
    assert read == [100] * 7
    order = np.array([2, 0, 1, *range(3, X.shape[1])])
    first = stream.with_columns(order).first(150)
    assert read == [100] * 9
    np.testing.assert_array_equal(first.X, X[:150][:, order])
    np.testing.assert_array_equal(stream.classes[first.codes], y[:150])


def test_a_smaller_problem_is_drawn_from_the_blocks(table, monkeypatch):
    X, y = table
    monkeypatch.setattr("kmeans_kernel.core.training.tuning._MOST_REPRESENTATIVES", 12)
    options = {"loss": "squared", "feature_scales": None}
    assert_same(fit(ArrayBlocks(X, y, rows=90), **options), fit(X, y, **options), X)
    monkeypatch.setattr("kmeans_kernel.core.arrays.rows._SHUFFLED", 10)
    assert_same(fit(ArrayBlocks(X, y, rows=90), **options), fit(X, y, **options), X)


def test_sparse_blocks_stay_sparse(rng):
    X = sparse.random_array((400, 60), density=0.1, random_state=rng, format="csr")
    y = (X[:, :30].sum(axis=1) > X[:, 30:].sum(axis=1)).astype(int)
    blocks = [(X[a : a + 70], y[a : a + 70]) for a in range(0, 400, 70)]
    assert_same(fit(blocks, **GIVEN), fit(X, y, **GIVEN), X)


def test_weights_come_with_the_blocks(table, rng):
    X, y = table
    weights = rng.integers(0, 3, len(X)).astype(float)
    blocks = fit(ArrayBlocks(X, y, weights, rows=100), n_representatives=1000, **GIVEN)
    whole = KMeansKernelClassifier(1000, random_state=0, **GIVEN).fit(X, y, weights)
    np.testing.assert_allclose(blocks.decision_function(X), whole.decision_function(X), atol=1e-6)
    balanced = {**GIVEN, "class_weight": "balanced"}
    found = fit(ArrayBlocks(X, y, weights, rows=100), n_representatives=20, **balanced)
    totals = [
        found.representative_counts_[found.representative_classes_ == k].sum()
        for k in found.classes_
    ]
    np.testing.assert_allclose(totals, np.mean(totals))


def test_k_means_plus_plus_starts_from_some_rows(table):
    X, y = table
    found = fit(ArrayBlocks(X, y, rows=100), init="k-means++", **GIVEN)
    assert found.score(X, y) > 0.75


def test_the_block_function_equals_the_twin(rng):
    U = unit_rows(rng.normal(size=(40, 5)), dtype=np.float64)
    weights, centroids = rng.random(40), U[:4]
    found = nearest_sums(U[:25], centroids, weights[:25]) + nearest_sums(
        U[25:], centroids, weights[25:]
    )
    labels, _ = twin.assign(U.tolist(), centroids.tolist())
    np.testing.assert_allclose(found.sums, twin.cluster_sums(U.tolist(), labels, 4, weights))
    np.testing.assert_allclose(found.counts, np.bincount(labels, weights))


def test_labels_do_not_depend_on_the_blocks(rng):
    """Rows half-way between two centroids: rounding must not decide."""
    U = unit_rows(rng.normal(size=(3000, 64)))
    halves = unit_rows(U[0:1500:2] + U[1:1500:2])
    whole = nearest_sums(halves, U[:1500], np.ones(len(halves)))
    parts = [
        nearest_sums(halves[a : a + 7], U[:1500], np.ones(len(halves[a : a + 7])))
        for a in range(0, len(halves), 7)
    ]
    np.testing.assert_array_equal(whole.counts, sum(part.counts for part in parts))


def test_a_large_memory_map_is_read_in_blocks(table, tmp_path, monkeypatch):
    X, y = table
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    seen = []
    blocks = ArrayBlocks.__iter__
    monkeypatch.setattr(ArrayBlocks, "__iter__", lambda self: seen.append(1) or blocks(self))
    small = fit(mapped, y, **GIVEN)
    assert not seen
    monkeypatch.setattr("kmeans_kernel.data._sources.READ_WHOLE_UP_TO", 1000)
    monkeypatch.setattr("kmeans_kernel.data._blocks.BLOCK_BYTES", 5000)
    large = fit(mapped, y, **GIVEN)
    assert seen
    assert_same(large, small, X)


def test_parquet_files_are_read_in_blocks(table, tmp_path):
    X, y = table
    names = [f"x{k}" for k in range(X.shape[1])]
    for part, rows in enumerate(np.array_split(np.arange(len(X)), 3)):
        frame = pl.DataFrame(X[rows], schema=names).with_columns(
            label=pl.Series(y[rows]), row=pl.Series(rows)
        )
        frame.write_parquet(tmp_path / f"part{part}.parquet")
    blocks = ParquetBlocks(tmp_path, "label", drop=["row"], rows=64)
    found = fit(blocks, **GIVEN)
    assert found.feature_names_in_.tolist() == names
    whole = fit(pl.DataFrame(X, schema=names), y, **GIVEN)
    assert_same(found, whole, pl.DataFrame(X, schema=names))
    with pytest.raises(ValueError, match="no column 'nonsense'"):
        ParquetBlocks(tmp_path, "nonsense")
    with pytest.raises(FileNotFoundError, match="no Parquet file"):
        ParquetBlocks(tmp_path / "nowhere", "label")
    frame.with_columns(x3=pl.lit("word")).write_parquet(tmp_path / "part9.parquet")
    with pytest.raises(ValueError, match=r"part9.parquet has columns that are no numbers: x3"):
        fit(blocks.__class__(tmp_path, "label", drop=["row"]), **GIVEN)
    frame.drop("x3").write_parquet(tmp_path / "part9.parquet")
    with pytest.raises(ValueError, match=r"part9.parquet has no column 'x3'"):
        fit(blocks.__class__(tmp_path, "label", drop=["row"]), **GIVEN)


def blocks_of(table, *sizes):
    X, y = table
    starts = np.cumsum([0, *sizes])
    return [(X[a:b], y[a:b]) for a, b in pairwise(starts)]


def test_an_empty_block_and_a_class_in_the_last_are_fine(table):
    X, y = table
    order = np.argsort(y, kind="stable")
    X, y = X[order], y[order]
    blocks = [*blocks_of((X, y), 300, 0, 300, 100), (X[:0], y[:0])]
    assert_same(fit(blocks, **GIVEN), fit(X, y, **GIVEN), X)


@pytest.mark.parametrize(
    ("blocks", "message"),
    [
        (lambda X, y: (one for one in [(X, y)]), "generator gives them once"),
        (lambda X, y: iter([(X, y)]), "gives them once"),
        (lambda X, y: [(X, y), (X[:, :5], y)], "block 0 has 12, block 1 has 5"),
        (lambda X, y: [(X, y), (X, y[:-1])], "Block 1 has 700 rows and 699 labels"),
        (lambda X, y: [(X[:0], y[:0])], "every block is empty"),
        (lambda X, y: [(X, np.full(len(X), "ape"))], "at least two classes"),
        (lambda X, y: [(X, y), (sparse.csr_array(X), y)], "all dense or all sparse"),
        (lambda X, y: [(X, y), (X, np.arange(len(X)) % 3)], "Labels must be of one type"),
        (lambda X, y: [(X, y), (np.where(X > 2, np.nan, X), y)], "NaN .block 1, row"),
        (lambda X, y: [(X, y, -np.ones(len(X)))], "sample_weight of block 0"),
        (lambda X, y: [(X, y, np.ones((len(X), 2)))], "sample_weight of block 0"),
        (lambda X, y: [(X, np.where(y == "ape", None, y))], "one type that can be sorted"),
        (lambda X, y: "rows/", "ParquetBlocks"),
        (lambda X, y: {"X": X}.items(), "block 0"),
    ],
)
def test_wrong_blocks_are_refused(table, blocks, message):
    with pytest.raises(ValueError, match=message):
        fit(blocks(*table), **GIVEN)


class Once:
    def __init__(self, X, y):
        self.blocks = iter([(X, y)])

    def __iter__(self):
        return self.blocks


class Shuffled:
    def __init__(self, X, y):
        self.X, self.y, self.rng = X, y, np.random.default_rng(0)

    def __iter__(self):
        order = self.rng.permutation(len(self.y))
        return iter([(self.X[some], self.y[some]) for some in np.array_split(order, 3)])


@pytest.mark.parametrize("blocks", [Once, Shuffled])
def test_blocks_that_change_are_refused(table, blocks):
    with pytest.raises(ValueError, match="not the same in every pass"):
        fit(blocks(*table), **GIVEN)


def test_blocks_of_frames_have_the_same_columns(table):
    X, y = table
    frame = pl.DataFrame(X)
    found = fit([(frame[:300], y[:300]), (frame[300:], y[300:])], **GIVEN)
    assert found.feature_names_in_.tolist() == frame.columns
    with pytest.raises(ValueError, match="same columns, in the same order: .* block 0 and block 1"):
        fit([(frame[:300], y[:300]), (frame[300:].select(frame.columns[::-1]), y[300:])])


def test_a_block_without_weight_is_not_there(table):
    X, y = table
    weights = np.ones(len(X))
    weights[:100] = 0
    for loss in ("squared", "logistic"):
        found = fit(ArrayBlocks(X, y, weights, rows=100), **GIVEN, loss=loss)
        assert_same(found, fit(X[100:], y[100:], **GIVEN, loss=loss), X)
    with pytest.raises(ValueError, match="no row that has a weight"):
        fit(ArrayBlocks(X, y, 0 * weights), **GIVEN)


def test_a_copy_of_a_memory_map_is_in_memory(table, tmp_path, monkeypatch):
    X, y = table
    mapped = np.memmap(tmp_path / "X", dtype=np.float64, mode="w+", shape=X.shape)
    mapped[:] = X
    monkeypatch.setattr("kmeans_kernel.data._sources.READ_WHOLE_UP_TO", 1000)
    assert_same(fit(mapped.copy(), y, **GIVEN), fit(X, y, **GIVEN), X)
    assert_same(fit(mapped[1:], y[1:], **GIVEN), fit(X[1:], y[1:], **GIVEN), X)


def test_a_pipeline_is_fitted_in_blocks(table):
    X, y = table
    blocks = ArrayBlocks(5 * X + 3, y, rows=100)
    model = make_pipeline(StandardScaler(), KMeansKernelClassifier(8, random_state=0, **GIVEN))
    whole = clone(model).fit(5 * X + 3, y)
    fit_pipeline(model, blocks)
    fit_pipeline(model, blocks)  # anew
    assert model[0].n_samples_seen_ == len(X)
    np.testing.assert_allclose(model.decision_function(X), whole.decision_function(X), atol=1e-6)
    with pytest.raises(ValueError, match="gives them once"):
        fit_pipeline(model, iter(blocks))
    with pytest.raises(ValueError, match="has no partial_fit"):
        fit_pipeline(make_pipeline(RobustScaler(), KMeansKernelClassifier(8)), blocks)


def test_what_needs_memory_is_refused(table):
    X, y = table
    blocks = ArrayBlocks(X, y, rows=100)
    with pytest.raises(ValueError, match="'auto' needs rows in memory"):
        fit(blocks, n_representatives="auto")
    with pytest.raises(ValueError, match="boundary_fraction=0.5 needs rows in memory"):
        fit(blocks, boundary_fraction=0.5)
    with pytest.raises(ValueError, match="class_weight of 0"):
        fit(blocks, class_weight={"ape": 0.0})
    with pytest.raises(ValueError, match="must be in these: call fit"):
        fit([(X, y)], y)
    with pytest.raises(ValueError, match="must be of one length"):
        ArrayBlocks(X, y[:-1])
    with pytest.raises(ValueError, match="needs y"):
        ArrayBlocks(X, None)
    with pytest.raises(ValueError, match="two dimensions"):
        ArrayBlocks(X.tolist(), y)
    with pytest.raises(ValueError, match="rows must be"):
        ArrayBlocks(X, y, rows=-5)


def test_a_list_of_rows_is_no_list_of_blocks():
    found = fit([[0.0, 1.0], [1.0, 0.0], [0.0, 2.0], [2.0, 0.0]], [0, 1, 0, 1], **GIVEN)
    assert found.n_features_in_ == 2


def test_only_the_blocks_that_are_wanted_are_looked_at():
    looked = []

    class Part:
        def __call__(self, number, block):
            looked.append(number)
            return [number]

    source = [(np.ones((3, 2)), np.arange(3))] * 5
    assert LocalSource(source, BlockCheck("it")).sum(Part(), frozenset({1, 3})) == [1, 3]
    assert looked == [1, 3]
    assert LocalSource([], BlockCheck("it"), SERIAL).sum(Part()) is None


def test_progress_of_a_pass_is_written(table, capsys):
    X, y = table
    fit(ArrayBlocks(X, y, rows=100), verbose=True, **GIVEN)
    said = capsys.readouterr().err
    assert "pass 1: 700 of 700 rows" in said
    assert "pass 2: 700 of 700 rows" in said
    assert "solving" in said


def test_rows_are_joined_with_their_weights():
    one = LabelledRows(np.ones((2, 1)), np.zeros(2, dtype=int), np.arange(2))
    two = LabelledRows(np.ones((1, 1)), np.ones(1, dtype=int), np.arange(2), np.array([3.0]))
    assert concatenate_rows([one, two]).row_weights.tolist() == [1.0, 1.0, 3.0]
    assert concatenate_rows([one, one]).weights is None
