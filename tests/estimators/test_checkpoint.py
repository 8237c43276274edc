import numpy as np
import pytest
from sklearn.datasets import make_classification

from kmeans_kernel import KMeansKernelClassifier, load_model, save_model
from kmeans_kernel.core.arrays.events import KMeansIteration
from kmeans_kernel.core.arrays.execution import listening
from kmeans_kernel.data._blocks import ArrayBlocks

GIVEN = {"gamma": 1.0, "regularization": 1e-3, "feature_scales": None, "random_state": 0}


@pytest.fixture(scope="module")
def table():
    return make_classification(1500, 8, n_informative=6, n_classes=3, random_state=0)


@pytest.mark.parametrize("blocks", [False, True])
def test_a_second_fit_starts_from_the_first(table, blocks):
    X, y = table
    data = (ArrayBlocks(X, y, rows=400),) if blocks else (X, y)
    model = KMeansKernelClassifier(30, warm_start=True, **GIVEN).fit(*data)
    iterations = model.n_iter_
    assert iterations.min() > 3
    centroids = np.sort(model.representatives_, axis=0)
    model.fit(*data)
    assert model.n_iter_.max() <= 2
    np.testing.assert_allclose(np.sort(model.representatives_, axis=0), centroids, atol=1e-2)


def test_a_loaded_model_is_started_from(table, tmp_path):
    X, y = table
    save_model(KMeansKernelClassifier(30, warm_start=True, **GIVEN).fit(X, y), tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.fit(X, y).n_iter_.max() <= 2


def test_more_representatives_start_from_fewer(table):
    X, y = table
    model = KMeansKernelClassifier(10, warm_start=True, feature_transform="asinh", **GIVEN).fit(
        X, y
    )
    model.set_params(n_representatives=20).fit(X, y)
    assert len(model.representatives_) == 60
    model.set_params(n_representatives=5).fit(X, y)
    assert len(model.representatives_) == 15


def test_classes_that_are_new_start_from_rows(table):
    X, y = table
    old = y < 2
    model = KMeansKernelClassifier(10, warm_start=True, **GIVEN).fit(X[old], y[old])
    assert model.fit(X, y).classes_.tolist() == [0, 1, 2]


def test_other_features_are_refused(table):
    X, y = table
    model = KMeansKernelClassifier(10, warm_start=True, **GIVEN).fit(X, y)
    with pytest.raises(ValueError, match="8 features, and X has 5"):
        model.fit(X[:, :5], y)


def interrupt(event):
    if isinstance(event, KMeansIteration) and event.n_iter == 6:
        raise KeyboardInterrupt


def test_an_interrupted_fit_is_resumed(table, tmp_path, monkeypatch):
    X, y = table
    monkeypatch.setattr("kmeans_kernel.estimators._checkpoint._SECONDS_BETWEEN", 0.0)
    blocks, file = ArrayBlocks(X, y, rows=400), tmp_path / "fit.npz"
    whole = KMeansKernelClassifier(30, **GIVEN).fit(blocks)
    with listening(lambda sizes: interrupt), pytest.raises(KeyboardInterrupt):
        KMeansKernelClassifier(30, **GIVEN).fit(blocks, checkpoint=file)
    assert file.exists()
    resumed = KMeansKernelClassifier(30, **GIVEN).fit(blocks, checkpoint=file)
    assert not file.exists()
    np.testing.assert_array_equal(resumed.n_iter_, whole.n_iter_ - 5)
    np.testing.assert_allclose(resumed.decision_function(X), whole.decision_function(X), atol=1e-8)


def test_a_checkpoint_of_another_fit_is_refused(table, tmp_path, monkeypatch):
    X, y = table
    monkeypatch.setattr("kmeans_kernel.estimators._checkpoint._SECONDS_BETWEEN", 0.0)
    file = tmp_path / "fit.npz"
    with listening(lambda sizes: interrupt), pytest.raises(KeyboardInterrupt):
        KMeansKernelClassifier(30, **GIVEN).fit(ArrayBlocks(X, y), checkpoint=file)
    with pytest.raises(ValueError, match="3 classes and 8 features, not 3 and 5"):
        KMeansKernelClassifier(30, **GIVEN).fit(ArrayBlocks(X[:, :5], y), checkpoint=file)
    with pytest.raises(ValueError, match="checkpoint is for rows in blocks"):
        KMeansKernelClassifier(30, **GIVEN).fit(X, y, checkpoint=file)
    file.write_bytes(b"nonsense")
    with pytest.raises(ValueError, match="no checkpoint of ours"):
        KMeansKernelClassifier(30, **GIVEN).fit(ArrayBlocks(X, y), checkpoint=file)
    assert file.read_bytes() == b"nonsense"


@pytest.mark.parametrize("n_jobs", [None, 1, 2, -1, -2])
def test_the_number_of_threads_does_not_matter(table, n_jobs):
    X, y = table
    found = KMeansKernelClassifier(10, n_jobs=n_jobs, **GIVEN).fit(X, y)
    np.testing.assert_array_equal(
        found.predict(X), KMeansKernelClassifier(10, **GIVEN).fit(X, y).predict(X)
    )
