"""ONNX graphs and estimators predict the same: on the table of scores, on digits and on MNIST."""

import json
import subprocess
import sys

import numpy as np
import onnx
import onnxruntime
import pytest
import skl2onnx
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MinMaxScaler,
    PolynomialFeatures,
    StandardScaler,
)

import kmeans_kernel
from kmeans_kernel import (
    AGOPProjection,
    Deskewer,
    FourierFeatures,
    KMeansKernelClassifier,
    OrientedGradients,
    PatchVotingClassifier,
    PixelNormalizer,
    image_classifier,
    paper,
)
from kmeans_kernel.data import load_digits
from kmeans_kernel.export.onnx import to_onnx
from tests import vectors

MODELS, ESTIMATORS = vectors.cases("models"), vectors.cases("estimators")

# Scores this near to each other may be in either order.
NEAR = 1e-4


@pytest.fixture(scope="module")
def digits():
    found = load_digits()
    rows = {name: found[name].reshape(len(found[name]), -1) for name in ("X_train", "X_test")}
    return {**found, **rows}


def classifier(**options):
    given = {"gamma": 0.5, "regularization": 1e-3, "feature_scales": None, "random_state": 0}
    return KMeansKernelClassifier(5, **{**given, **options})


def session_of(graph):
    return onnxruntime.InferenceSession(
        graph.SerializeToString(), providers=["CPUExecutionProvider"]
    )


def run(graph, X, dtype=np.float32):
    return session_of(graph).run(["label", "probabilities"], {"X": X.astype(dtype)})


def assert_alike(estimator, X, labels, probabilities):
    """Compare labels where the best two scores are apart, and probabilities."""
    np.testing.assert_allclose(probabilities, estimator.predict_proba(X), atol=NEAR)
    scores = estimator.decision_function(X)
    scores = np.stack([-scores / 2, scores / 2], axis=1) if scores.ndim == 1 else scores
    best = np.sort(scores, axis=1)
    apart = best[:, -1] - best[:, -2] > NEAR
    assert apart.mean() > 0.98
    expected = estimator.classes_[scores.argmax(axis=1)]
    np.testing.assert_array_equal(labels[apart], expected[apart])


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_are_those_of_the_table(name, dtype, tolerance):
    case = MODELS[name]
    labels, probabilities = run(
        to_onnx(vectors.classifier(case), dtype=dtype), np.array(case["rows"]), dtype
    )
    assert labels.tolist() == case["labels"]
    assert probabilities.dtype == dtype
    np.testing.assert_allclose(probabilities, case["probabilities"], atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_are_those_of_the_table(name, dtype, tolerance):
    case = ESTIMATORS[name]
    graph = to_onnx(vectors.estimator(case), dtype=dtype)
    labels, probabilities = run(graph, np.array(case["rows"]), dtype)
    assert labels.tolist() == case["labels"]
    np.testing.assert_allclose(probabilities, case["probabilities"], atol=tolerance)


@pytest.mark.parametrize("name", MODELS)
def test_raw_scores_are_those_of_the_table(name):
    case = MODELS[name]
    model, X = vectors.classifier(case), vectors.rows_of(case)
    options = {"zipmap": False, "raw_scores": True}
    graph = skl2onnx.to_onnx(model, X[:1], options={id(model): options})
    _, scores = session_of(graph).run(None, {"X": X})
    expected = np.array(case["scores"])
    if expected.shape[1] == 2:  # as skl2onnx has it: minus the difference, and the difference
        expected = np.outer(expected[:, 1] - expected[:, 0], [-1, 1])
    np.testing.assert_allclose(scores, expected, rtol=1e-12, atol=1e-12)


PIPELINES = {
    "classifier": KMeansKernelClassifier(5, random_state=0),
    "laplace": classifier(kernel="laplacian"),
    "logistic": classifier(loss="logistic"),
    "steep": make_pipeline(PixelNormalizer(), classifier(regularization=1e-12, gamma=0.01)),
    "passthrough": make_pipeline(
        "passthrough", make_pipeline(StandardScaler(), None), classifier()
    ),
    "components": make_pipeline(MinMaxScaler(), PCA(20, random_state=0), classifier()),
    "union": make_pipeline(
        FeatureUnion([("p", PixelNormalizer()), ("d", Deskewer())]), classifier()
    ),
    "columns": make_pipeline(
        ColumnTransformer(
            [("some", StandardScaler(), [10, 11, 20]), ("rest", PCA(5), [30, 35, 40, 41, 42])]
        ),
        classifier(),
    ),
    "pixels": paper.raw(5, random_state=0),
    "fourier": paper.raw_fft(5, random_state=0),
    "magnitudes": make_pipeline(FourierFeatures(root=False), classifier()),
    "gradients": make_pipeline(
        Deskewer((8, 8)), OrientedGradients(6, stride=3, sharpness=3.5), classifier()
    ),
    "patterns": image_classifier(3, random_state=0),
    "metric": make_pipeline(
        AGOPProjection(9, gamma=0.5, regularization=1e-3, random_state=0), classifier()
    ),
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", PIPELINES)
def test_pipelines_on_digits(name, dtype, digits):
    estimator = PIPELINES[name].fit(digits["X_train"].astype(dtype), digits["y_train"])
    X = digits["X_test"].astype(dtype)
    assert_alike(estimator, X, *run(to_onnx(estimator, dtype=dtype), X, dtype))


@pytest.mark.parametrize("vote", ["majority", "sum"])
@pytest.mark.parametrize(
    "inner", [classifier(), make_pipeline("passthrough", FourierFeatures(), classifier())]
)
def test_votes_on_digits(inner, vote, digits):
    voting = PatchVotingClassifier(inner, (6, 7), vote=vote)
    X = digits["X_test"]
    voting.fit(digits["X_train"], digits["y_train"])
    labels, probabilities = run(to_onnx(voting), X)
    assert_votes_alike(voting, X, labels, probabilities)


def assert_votes_alike(voting, X, labels, probabilities):
    """Compare labels where the best two shares are apart, and shares of all images."""
    expected = voting.predict_proba(X)
    np.testing.assert_allclose(probabilities, expected, atol=NEAR)
    ordered = np.sort(expected, axis=1)
    apart = ordered[:, -1] - ordered[:, -2] > NEAR
    np.testing.assert_array_equal(labels[apart], voting.classes_[expected.argmax(axis=1)][apart])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("load", [load_wine, load_breast_cancer])
def test_tables(load, dtype):
    data = load()
    y, X = data.target_names[data.target], data.data.astype(dtype)
    model = classifier(feature_scales="learned", feature_transform="asinh", lift="auto")
    estimator = make_pipeline(StandardScaler(), model).fit(X[::2], y[::2])
    assert model.feature_transform_ == "asinh"
    assert model.feature_scales_ is not None
    labels, probabilities = run(to_onnx(estimator, dtype=dtype), X, dtype)
    assert_alike(estimator, X, labels, probabilities)
    assert set(labels.tolist()) == set(data.target_names.tolist())


def gaps(X, rng):
    """Return rows with a tenth of their numbers missing."""
    return np.where(rng.random(X.shape) < 0.1, np.nan, X).astype(X.dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("transform", ["auto", "standard", "asinh", "piecewise", "both"])
def test_missing_numbers(transform, dtype, rng):
    X, y = load_wine(return_X_y=True)
    X = gaps(X.astype(dtype), rng)
    model = classifier(feature_transform=transform, feature_scales="learned").fit(X[::2], y[::2])
    assert np.isnan(X).any()
    assert_alike(model, X, *run(to_onnx(model, dtype=dtype), X, dtype))


@pytest.mark.parametrize("transform", ["standard", "asinh"])
def test_missing_numbers_where_training_had_none(transform, rng):
    X, y = load_wine(return_X_y=True)
    model = classifier(feature_transform=transform).fit(X, y)
    X = gaps(X, rng)
    X[0] = np.nan
    assert_alike(model, X, *run(to_onnx(model, dtype=np.float64), X, np.float64))


@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize(
    "estimator",
    [
        image_classifier(3, random_state=0),
        paper.patches(3, patch=6, random_state=0),
        paper.raw_fft(3, random_state=0),
    ],
)
def test_batches_of_any_size(estimator, n, digits):
    estimator.fit(digits["X_train"][:200], digits["y_train"][:200])
    labels, probabilities = run(to_onnx(estimator), digits["X_test"][:n])
    assert labels.shape == (n,)
    assert probabilities.shape == (n, 10)
    assert labels.tolist() == estimator.predict(digits["X_test"][:n]).tolist()


@pytest.mark.parametrize(
    "estimator", [paper.raw_fft(3, random_state=0), paper.patches(3, patch=6, random_state=0)]
)
def test_no_rows_give_no_labels(estimator, digits):
    estimator.fit(digits["X_train"][:200], digits["y_train"][:200])
    labels, probabilities = run(to_onnx(estimator), digits["X_test"][:0])
    assert labels.shape == (0,)
    assert probabilities.shape == (0, 10)


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        (["cat", "dög"], object),
        ([False, True], np.int64),
        ([1.0, 2.0], np.int64),
        ([-3, 7], np.int64),
        (np.array(["x", "y"], dtype=object), object),
        (np.array([3, 200], dtype=np.uint8), np.int64),
    ],
)
def test_labels_of_every_type(classes, dtype, rng):
    X, classes = rng.normal(size=(20, 3)), np.asarray(classes)
    model = classifier().fit(X, classes[np.arange(20) % 2])
    labels, _ = run(to_onnx(model), X)
    assert labels.dtype == dtype
    assert labels.tolist() == model.predict(X).tolist()


def test_a_model_that_float32_would_put_off_is_scored_in_float64(rng):
    X = rng.normal(size=(40, 3)).astype(np.float32)
    model = classifier(gamma=1e-3, regularization=1e-14).fit(X, np.arange(40) % 2)
    assert model.model_.needs_float64
    _, probabilities = run(to_onnx(model), X)
    np.testing.assert_allclose(probabilities, model.predict_proba(X), atol=1e-6)


def test_the_metadata_of_a_graph(digits):
    graph = to_onnx(
        paper.patches(3, patch=6, random_state=0).fit(digits["X_train"], digits["y_train"])
    )
    props = {prop.key: prop.value for prop in graph.metadata_props}
    assert props == {
        "kmeans-kernel": kmeans_kernel.__version__,
        "classes": json.dumps(list(range(10))),
        "image_shape": "[8, 8]",
    }
    session = session_of(graph)
    (given,) = session.get_inputs()
    label, probabilities = session.get_outputs()
    assert (given.name, given.type, given.shape[1]) == ("X", "tensor(float)", 64)
    assert not isinstance(given.shape[0], int)
    assert (label.name, label.type) == ("label", "tensor(int64)")
    assert (probabilities.name, probabilities.type) == ("probabilities", "tensor(float)")
    assert probabilities.shape[1] == 10
    onnx.checker.check_model(graph, full_check=True)


def test_fourier_matrices_are_made_not_stored(digits):
    model = paper.raw_fft(1, random_state=0).fit(np.eye(784)[:20], np.arange(20) % 2)
    assert len(to_onnx(model).SerializeToString()) < 60_000


@pytest.mark.parametrize("target_opset", [18, None])
@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64])
def test_skl2onnx_converts_a_pipeline_by_itself(kind, target_opset, digits):
    X = digits["X_test"].astype(kind)
    estimator = image_classifier(3, random_state=0).fit(digits["X_train"], digits["y_train"])
    # onnxruntime has no ZipMap of float64, for whatever classifier
    options = {"zipmap": False} if kind == np.float64 else {}
    graph = skl2onnx.to_onnx(
        estimator, X[:1], target_opset=target_opset, options={id(estimator): options}
    )
    labels, found = session_of(graph).run(None, {"X": X})
    assert labels.tolist() == estimator.predict(X).tolist()
    if not options:
        found = np.array([[row[k] for k in range(10)] for row in found])
    np.testing.assert_allclose(found, estimator.predict_proba(X), atol=NEAR)


def test_the_options_of_skl2onnx(rng):
    X, y = rng.normal(size=(20, 3)).astype(np.float32), np.array(["a", "b"])[np.arange(20) % 2]
    model = classifier().fit(X, y)
    plain = {"zipmap": False}

    def outputs(**options):
        return session_of(
            skl2onnx.to_onnx(model, X[:1], options={id(model): {**plain, **options}})
        ).run(None, {"X": X})

    assert outputs(nocl=True)[0].tolist() == (model.predict(X) == "b").astype(int).tolist()
    assert outputs(output_class_labels=True)[2].tolist() == ["a", "b"]
    columns = outputs(zipmap="columns")
    np.testing.assert_allclose(np.stack(columns[1:], axis=1), model.predict_proba(X), atol=1e-6)
    scores = outputs(raw_scores=True)[1]
    np.testing.assert_allclose(scores[:, 1], model.decision_function(X), atol=1e-5)
    np.testing.assert_allclose(scores[:, 0], -scores[:, 1])


@pytest.mark.parametrize("classes", [[False, True], [0.0, 2.0], ["a", "b"], [3, 5]])
def test_dictionaries_of_probabilities(classes, rng):
    X = rng.normal(size=(20, 3)).astype(np.float32)
    model = classifier().fit(X, np.array(classes)[np.arange(20) % 2])
    labels, found = session_of(skl2onnx.to_onnx(model, X[:1])).run(None, {"X": X})
    assert labels.tolist() == model.predict(X).tolist()
    assert sorted(found[0]) == classes


@pytest.mark.parametrize("n_classes", [2, 3])
def test_within_scikit_learns_calibration(n_classes, rng):
    X = rng.normal(size=(120, 3)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5) * (n_classes == 3)
    model = CalibratedClassifierCV(classifier(), cv=3).fit(X, y)
    graph = skl2onnx.to_onnx(model, X[:1], options={"zipmap": False})
    labels, found = session_of(graph).run(None, {"X": X})
    np.testing.assert_allclose(found, model.predict_proba(X), atol=NEAR)
    assert (labels == model.predict(X)).mean() > 0.98


def test_the_file_is_whole_or_not_there(rng, tmp_path, monkeypatch):
    X = rng.normal(size=(20, 3))
    model = classifier().fit(X, np.arange(20) % 2)
    graph = to_onnx(model, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == graph.SerializeToString()
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    assert session.run(None, {"X": X.astype(np.float32)})[0].tolist() == model.predict(X).tolist()

    def fail(*arguments, **options):
        raise OSError("no space left")

    monkeypatch.setattr("pathlib.Path.replace", fail)
    with pytest.raises(OSError, match="no space left"):
        to_onnx(model, tmp_path / "other.onnx")
    assert [path.name for path in tmp_path.iterdir()] == ["model.onnx"]


def test_the_path_is_checked_before_the_work(tmp_path):
    with pytest.raises(FileNotFoundError, match="make the folder"):
        to_onnx(None, tmp_path / "nowhere" / "model.onnx")


class Doubler(StandardScaler):
    """A step without a converter."""


def fitted(*steps):
    X = np.random.default_rng(0).normal(size=(20, 3))
    return make_pipeline(*steps).fit(X, np.arange(20) % 2)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: classifier(), NotFittedError, "KMeansKernelClassifier instance is not fitted"),
        (
            lambda: make_pipeline(StandardScaler(), fitted(classifier())[0]),
            NotFittedError,
            "StandardScaler instance is not fitted",
        ),
        (
            lambda: fitted(MinMaxScaler(), Doubler(), classifier()),
            TypeError,
            "step 2, 'doubler', a Doubler.*Take the step out.*update_registered_converter",
        ),
        (
            lambda: fitted(ColumnTransformer([("some", Doubler(), [0, 1])]), classifier()),
            TypeError,
            "pipeline of ColumnTransformer, KMeansKernelClassifier.*Doubler.*Take the step out",
        ),
        (
            lambda: fitted(FunctionTransformer(np.cbrt), classifier()),
            TypeError,
            "pipeline of FunctionTransformer.*function is None.*Take the step out",
        ),
        (
            lambda: fitted(StandardScaler(), LogisticRegression()),
            TypeError,
            "ends in a LogisticRegression.*there is skl2onnx",
        ),
        (lambda: StandardScaler(), TypeError, "ends in a StandardScaler"),
        (
            lambda: make_pipeline(TfidfVectorizer(), classifier()).fit(
                ["a bc", "bc d"] * 4, [0, 1] * 4
            ),
            TypeError,
            "step 1, 'tfidfvectorizer', a TfidfVectorizer.*takes text or the like.*sparse",
        ),
        (
            lambda: PatchVotingClassifier(LogisticRegression(), (1, 2), image_shape=(1, 3)).fit(
                np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2
            ),
            TypeError,
            "ends in a LogisticRegression",
        ),
    ],
)
def test_estimators_without_a_converter_are_refused(make, kind, message):
    with pytest.raises(kind, match=f"(?s){message}"):
        to_onnx(make())


@pytest.mark.parametrize("step", [SimpleImputer(), PolynomialFeatures(2)])
def test_steps_without_float64_operators_are_refused(step):
    with pytest.raises(TypeError, match=f"(?s){type(step).__name__}.*convert with dtype float32"):
        to_onnx(fitted(step, classifier()), dtype=np.float64)
    to_onnx(fitted(step, classifier()))


@pytest.mark.parametrize("dtype", [np.uint8, "float16", int, None, "foo"])
def test_rows_of_another_type_are_refused(dtype):
    with pytest.raises(
        ValueError, match="dtype must be float32 or float64.*got (uint8|float16|int|None|foo)"
    ):
        to_onnx(fitted(classifier()), dtype=dtype)


def test_an_older_opset_is_refused():
    estimator = fitted(classifier())
    with pytest.raises(RuntimeError, match="target_opset must be at least 18.*got 15"):
        skl2onnx.to_onnx(estimator, np.zeros((1, 3)), target_opset=15)


def test_text_for_numbers_is_refused():
    estimator = fitted(classifier())
    with pytest.raises(TypeError, match="takes a tensor of numbers, got StringTensorType"):
        skl2onnx.to_onnx(estimator, np.array([["a", "b", "c"]]))


def test_the_missing_extra_is_named():
    code = "import sys; sys.modules['skl2onnx'] = None\nimport kmeans_kernel.export.onnx"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'kmeans-kernel[onnx]'" in done.stderr


MNIST = {
    "paper.raw": (paper.raw(30, random_state=0), 6000),
    "paper.raw_fft": (paper.raw_fft(30, random_state=0), 6000),
    "paper.patches": (paper.patches(20, random_state=0), 2000),
    "gradients": (make_pipeline(OrientedGradients(), paper.classifier(30, random_state=0)), 6000),
}


@pytest.mark.mnist
@pytest.mark.slow
@pytest.mark.parametrize("name", MNIST)
def test_all_images_of_mnist(name, mnist):
    estimator, n = MNIST[name]
    estimator.fit(mnist.X_train[:n], mnist.y_train[:n])
    X = mnist.X_test.reshape(-1, 784)
    session = session_of(to_onnx(estimator))
    batches = [X[k : k + 500].astype(np.float32) for k in range(0, len(X), 500)]
    found = [session.run(None, {"X": batch}) for batch in batches]
    labels, probabilities = (np.concatenate(parts) for parts in zip(*found, strict=True))
    check = assert_votes_alike if name == "paper.patches" else assert_alike
    check(estimator, X, labels, probabilities)
