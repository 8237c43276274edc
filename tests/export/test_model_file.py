import json
import re
import struct
import subprocess
import sys
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from safetensors import safe_open
from safetensors.numpy import save_file
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel import (
    AGOPProjection,
    Deskewer,
    FourierFeatures,
    KMeansKernelClassifier,
    OrientedGradients,
    PatchVotingClassifier,
    PixelNormalizer,
    image_classifier,
    load_model,
    paper,
    save_model,
)
from kmeans_kernel.data import load_digits
from kmeans_kernel.export.model_file import ModelFileError
from kmeans_kernel.export.model_file._file import digest


@pytest.fixture(scope="module")
def digits():
    return load_digits()


def classifier(**options):
    given = {"gamma": 0.5, "regularization": 1e-3, "feature_scales": None}
    return KMeansKernelClassifier(5, random_state=0, **{**given, **options})


ESTIMATORS = {
    "classifier": KMeansKernelClassifier(5, random_state=0),
    "laplace": classifier(kernel="laplacian"),
    "logistic": classifier(loss="logistic"),
    "paper": classifier(kernel="poly", lift=0.0, regularization=np.float64(1e-3)),
    "on representatives": classifier(fit_on="representatives"),
    "weighted": classifier(class_weight={0: 1.0, np.int64(1): 2.5}, feature_scales="learned"),
    "asinh": classifier(feature_transform="asinh"),
    "standard": classifier(feature_transform="standard"),
    "as they come": classifier(feature_transform=None),
    "patterns": image_classifier(3, random_state=0),
    "gradients": make_pipeline(Deskewer((8, 8)), OrientedGradients(stride=3), classifier()),
    "scaled": make_pipeline(StandardScaler(), classifier(gamma=np.float32(0.5))),
    "scaled without mean": make_pipeline(StandardScaler(with_mean=False), classifier()),
    "centred": make_pipeline(StandardScaler(with_std=False), classifier()),
    "pixels": make_pipeline(PixelNormalizer(), classifier()),
    "fourier": make_pipeline(FourierFeatures(root=False), classifier()),
    "metric": make_pipeline(
        AGOPProjection(9, gamma=0.5, regularization=1e-3, random_state=0), classifier()
    ),
    "patches": paper.patches(3, patch=6, random_state=0),
    "nothing but a step": make_pipeline("passthrough", classifier()),
    "patches alone": PatchVotingClassifier(classifier(), (7, 7), vote="sum"),
}


@pytest.fixture(scope="module")
def rows(digits):
    return digits.X_train.reshape(len(digits.X_train), -1)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_saved_estimator_is_loaded(name, rows, digits, tmp_path):
    estimator = ESTIMATORS[name].fit(rows, digits.y_train)
    path = tmp_path / "model.safetensors"
    save_model(estimator, path)
    loaded = load_model(path)
    X_test = digits.X_test.reshape(len(digits.X_test), -1)
    np.testing.assert_array_equal(loaded.predict(X_test), estimator.predict(X_test))
    np.testing.assert_array_equal(loaded.predict_proba(X_test), estimator.predict_proba(X_test))
    assert loaded.n_features_in_ == 64
    assert type(loaded) is type(estimator)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.safetensors"]
    # saved again it is the same file, and it can be trained again
    save_model(loaded, tmp_path / "again")
    assert (
        load_model(tmp_path / "again").predict(X_test).tolist() == loaded.predict(X_test).tolist()
    )
    loaded.fit(rows, digits.y_train)


def test_attributes_and_parameters_survive(rows, digits, tmp_path):
    before = classifier(tol=1e-4).fit(rows, digits.y_train)
    save_model(before, tmp_path / "model")
    after = load_model(tmp_path / "model")
    assert after.get_params() == before.get_params()
    for name in ("representatives_", "representative_counts_", "dual_coef_", "intercept_",
                 "classes_", "n_iter_"):  # fmt: skip
        np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
        assert getattr(after, name).dtype == getattr(before, name).dtype
    assert after.relative_residual_ == before.relative_residual_
    assert after.stage_seconds_ == {}  # the file is the same whenever it is made
    assert repr(after) == repr(before)


@pytest.mark.parametrize(
    "labels",
    [
        ["cat", "dög"],
        [True, False],
        [1.0, 2.0],
        [-3, 7],
        np.array(["x", "y"], dtype=object),
        np.array([3, 200], dtype=np.uint8),
    ],
)
def test_labels_of_every_type(labels, rng, tmp_path):
    X, labels = rng.normal(size=(20, 3)), np.asarray(labels)
    model = classifier().fit(X, labels[np.arange(20) % 2])
    save_model(model, tmp_path / "model")
    loaded = load_model(tmp_path / "model")
    assert loaded.classes_.dtype == model.classes_.dtype
    assert loaded.predict(X).tolist() == model.predict(X).tolist()


def test_names_of_features_are_kept_and_checked(rng, tmp_path):
    X = pd.DataFrame(rng.normal(size=(20, 2)), columns=["height", "weight"])
    save_model(make_pipeline(StandardScaler(), classifier()).fit(X, np.arange(20) % 2),
               tmp_path / "model")  # fmt: skip
    loaded = load_model(tmp_path / "model")
    assert loaded.feature_names_in_.tolist() == ["height", "weight"]
    loaded.predict(X)
    with pytest.raises(ValueError, match="feature names"):
        loaded.predict(X.rename(columns={"weight": "width"}))


def test_a_generator_as_random_state_is_not_saved(rng, tmp_path):
    model = KMeansKernelClassifier(2, random_state=np.random.RandomState(0))
    save_model(model.fit(rng.normal(size=(9, 2)), np.arange(9) % 2), tmp_path / "model")
    assert load_model(tmp_path / "model").random_state is None


def test_only_classifiers_are_saved(rows, tmp_path):
    with pytest.raises(TypeError, match="saves classifiers, got a StandardScaler"):
        save_model(StandardScaler().fit(rows), tmp_path / "model")


def test_text_labels_are_no_wider_than_they_are(tmp_path, rng):
    X = rng.normal(size=(20, 3))
    save_model(classifier().fit(X, np.array(["u", "v"])[np.arange(20) % 2]), tmp_path / "model")
    resaved(tmp_path / "model", lambda tree: tree["classes"].update(dtype="<U500000000"))
    assert load_model(tmp_path / "model").classes_.dtype == np.dtype("<U1")


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (RidgeClassifier(), "saves classifiers, got a RidgeClassifier"),
        (
            make_pipeline(PCA(2), classifier()),
            "A PCA cannot be saved.*these estimators can: KMeansKernelClassifier",
        ),
        (PatchVotingClassifier(RidgeClassifier(), (4, 4)), "A RidgeClassifier cannot be saved"),
    ],
)
def test_other_estimators_are_refused(estimator, message, rows, digits, tmp_path):
    with pytest.raises(TypeError, match=message):
        save_model(estimator.fit(rows, digits.y_train), tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_bad_use_is_explained(rng, tmp_path):
    with pytest.raises(NotFittedError):
        save_model(classifier(), tmp_path / "model")
    fitted = classifier().fit(rng.normal(size=(9, 2)), np.arange(9) % 2)
    with pytest.raises(IsADirectoryError, match="is a directory: name a file to write"):
        save_model(fitted, tmp_path)
    with pytest.raises(IsADirectoryError, match="is a directory: name a file that"):
        load_model(tmp_path)
    with pytest.raises(FileNotFoundError):
        load_model(tmp_path / "absent")
    with pytest.raises(FileNotFoundError):
        save_model(fitted, tmp_path / "absent" / "model")


@pytest.fixture
def saved(rng, tmp_path):
    path = tmp_path / "model"
    X = rng.normal(size=(40, 3)).astype(np.float32)
    save_model(make_pipeline(StandardScaler(), classifier()).fit(X, np.arange(40) % 2), path)
    return path


def header_length(content):
    return 8 + struct.unpack("<Q", content[:8])[0]


def test_every_flipped_bit_of_the_header_is_refused(saved):
    whole = saved.read_bytes()
    for position in range(header_length(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 1 << (position % 7)
        saved.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="not a whole model|not a model|format version"):
            load_model(saved)


def test_flipped_bytes_of_the_arrays_are_refused(saved):
    whole = saved.read_bytes()
    for position in range(header_length(whole), len(whole), 37):
        damaged = bytearray(whole)
        damaged[position] ^= 0x40
        saved.write_bytes(damaged)
        with pytest.raises(ModelFileError, match="digest"):
            load_model(saved)


def test_every_truncated_file_is_refused(saved):
    whole = saved.read_bytes()
    for length in [*range(64), header_length(whole), len(whole) // 2, len(whole) - 1]:
        saved.write_bytes(whole[:length])
        with pytest.raises(ModelFileError, match="not a whole model"):
            load_model(saved)
    saved.write_bytes(whole + b"more")
    with pytest.raises(ModelFileError, match="not a whole model"):
        load_model(saved)


def with_tensor_entry(content, name, **changes):
    length = header_length(content)
    header = json.loads(content[8:length])
    header[name].update(changes)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + content[length:]


def test_a_huge_shape_is_refused_without_allocating_it(saved):
    content = saved.read_bytes()
    with safe_open(saved, framework="np") as file:
        name = next(iter(file.keys()))
    tracemalloc.start()
    for changes in ({"shape": [10**12, 10**6]}, {"data_offsets": [0, 10**15]},
                    {"shape": [10**12], "data_offsets": [0, 8 * 10**12]}):  # fmt: skip
        saved.write_bytes(with_tensor_entry(content, name, **changes))
        with pytest.raises(ModelFileError, match="not a whole model"):
            load_model(saved)
    saved.write_bytes(struct.pack("<Q", 2**62) + content[8:])
    with pytest.raises(ModelFileError, match="not a whole model"):
        load_model(saved)
    assert tracemalloc.get_traced_memory()[1] < 10e6
    tracemalloc.stop()


def resaved(path, change_tree=lambda tree: tree, change_arrays=lambda arrays: arrays, **metadata):
    """Write the file again, changed, with a digest that fits."""
    with safe_open(path, framework="np") as file:
        found = {**file.metadata(), **metadata}
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    arrays = change_arrays(arrays)
    tree = json.loads(found["estimator"])
    text = json.dumps(change_tree(tree) or tree)
    save_file(arrays, path, {**found, "estimator": text, "digest": digest(text, arrays)})


def at_classifier(change):
    def changed(tree):
        change(tree["steps"][1][1])

    return changed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: c.update(kind="os.system"), "unknown kind, 'os.system'"),
        (lambda c: c["features"].update(count=4), "of shape"),
        (lambda c: c["features"].update(count=-1), "at least 1"),
        (lambda c: c["features"].update(names=["a"]), "names 1 features of 3"),
        (lambda c: c["params"].update(verbosity=3), "no parameter"),
        (lambda c: c["params"].update(gamma=[1]), "Classifier.gamma' is"),
        (lambda c: c["params"].update(regularization="abc"), "regularization"),
        (lambda c: c["params"].update(degree=10**400), "degree"),
        (lambda c: c["kernel"].update(name="magic"), "kernel is 'magic'"),
        (lambda c: c["kernel"].update(gamma=-1), "gamma of the kernel .* got -1"),
        (lambda c: c.update(lift="x"), "lift is 'x'"),
        (lambda c: c.update(temperature=0.0), "temperature is 0"),
        (lambda c: c.update(feature_transform="log"), "feature transform is 'log'"),
        (lambda c: c.update(feature_transform=None), "no part of it names.*transform_centers"),
        (lambda c: c.pop("feature_transform"), "KeyError"),
        (lambda c: c["classes"].update(values=[0, 0]), "differ"),
        (lambda c: c["classes"].update(values=[0, 1, 2]), "dual_coef"),
        (lambda c: c["classes"].update(dtype="O"), "labels are of type object"),
        (lambda c: c["classes"].update(dtype="nonsense"), "TypeError"),
        (lambda c: c.pop("n_iter"), "KeyError"),
        (lambda c: c.update(n_iter=[10**30, 1]), "OverflowError"),
        (lambda c: c.update(n_iter=[1]), "how many iterations"),
        (lambda c: c.update(lift=10**400), "OverflowError"),
        (lambda c: c.update(lift=float("inf")), "the number Infinity"),
        (lambda c: c["classes"].update(values=[1, 0]), "in order"),
        (lambda c: c["classes"].update(values=[0, 10**30]), "OverflowError"),
        (lambda c: c["classes"].update(values=["0", "1"]), "not of type|ValueError"),
        (lambda c: c["classes"].update(dtype="<U500000000"), "stands where text should"),
    ],
)
def test_a_header_that_lies_is_refused(change, message, saved):
    resaved(saved, at_classifier(change))
    with pytest.raises(ModelFileError, match=message):
        load_model(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: {k: v for k, v in a.items() if "dual" not in k}, "dual_coef' is missing"),
        (lambda a: {**a, "extra": np.zeros(3)}, "no part of it names.*extra"),
        (lambda a: {k: np.full_like(v, np.nan) if "dual" in k else v for k, v in a.items()},
         "not finite"),
        (lambda a: {k: v + 7 if k.endswith("_classes") else v for k, v in a.items()},
         "do not belong"),
        (lambda a: {k: v * 0 if k.endswith("_classes") else v for k, v in a.items()},
         "do not belong"),
        (lambda a: {k: v * 1e6 if "directions" in k else v for k, v in a.items()},
         "not on the unit sphere"),
        (lambda a: {k: v.astype(np.float16) if "dual" in k else v for k, v in a.items()},
         "float64 of shape"),
        (lambda a: {k: v * 0 if "scale_" in k else v for k, v in a.items()}, "not above zero"),
        (lambda a: {k: -v if "transform_widths" in k else v for k, v in a.items()},
         "widths and gains of its feature transform are not above zero"),
        (lambda a: {k: v * 0 if "transform_gains" in k else v for k, v in a.items()},
         "widths and gains of its feature transform are not above zero"),
        (lambda a: {k: v + np.inf if "transform_centers" in k else v for k, v in a.items()},
         "transform_centers' holds values that are not finite"),
        (lambda a: {k: v[1:] if "transform_widths" in k else v for k, v in a.items()},
         "transform_widths' should be float64 of shape"),
    ],
)  # fmt: skip
def test_arrays_that_do_not_fit_are_refused(change, message, saved):
    resaved(saved, change_arrays=change)
    with pytest.raises(ModelFileError, match=message):
        load_model(saved)


def test_numbers_too_large_to_be_one_are_refused(saved):
    resaved(saved, at_classifier(lambda c: c.update(lift=123456.789)))
    content = saved.read_bytes()
    forged = content.replace(b"123456.789", b"123456e789")
    assert forged != content
    tree = re.search(rb'"estimator":"((?:[^"\\]|\\.)*)"', forged)[1]
    arrays = {}
    with safe_open(saved, framework="np") as file:
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        old = file.metadata()["digest"]
    fits = digest(json.loads(b'"' + tree + b'"'), arrays)
    saved.write_bytes(forged.replace(old.encode(), fits.encode()))
    with pytest.raises(ModelFileError, match="the number 123456e789"):
        load_model(saved)


def test_arrays_of_types_unknown_to_numpy_are_refused(saved):
    content = saved.read_bytes()
    saved.write_bytes(content.replace(b'"dtype":"F64"', b'"dtype":"C64"', 1))
    with pytest.raises(ModelFileError):
        load_model(saved)
    header = json.dumps({
        "__metadata__": {"format": "kmeans-kernel", "version": "5", "estimator": "", "digest": ""},
        "x": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]},
    }).encode()  # fmt: skip
    saved.write_bytes(struct.pack("<Q", len(header)) + header + b"\0\0")
    with pytest.raises(ModelFileError, match="unknown type"):
        load_model(saved)


def test_an_endless_stream_is_refused():
    with pytest.raises(ModelFileError, match="not a whole model"):
        load_model("/dev/zero")


def test_other_versions_and_other_files_are_told(saved, tmp_path):
    resaved(saved, version="4")
    with pytest.raises(ModelFileError, match="version '4'.*reads version 5.*that wrote"):
        load_model(saved)
    save_file({"weights": np.zeros(3)}, tmp_path / "other")
    with pytest.raises(ModelFileError, match="not a model of kmeans-kernel"):
        load_model(tmp_path / "other")
    deep = {"kind": "Pipeline"}
    for _ in range(100):
        deep = {"kind": "Pipeline", "steps": [["a", deep]]}
    resaved(saved, lambda _: deep, version="5")
    with pytest.raises(ModelFileError):
        load_model(saved)


def test_a_write_that_fails_leaves_what_was_there(saved, rng, monkeypatch):
    before = saved.read_bytes()

    def fails(*_):
        raise OSError("disk full")

    monkeypatch.setattr("pathlib.Path.replace", fails)
    with pytest.raises(OSError, match="disk full"):
        save_model(classifier().fit(rng.normal(size=(9, 2)), np.arange(9) % 2), saved)
    assert saved.read_bytes() == before
    assert len(list(saved.parent.iterdir())) == 1


def test_a_file_is_loaded_in_a_fresh_process(saved):
    code = f"import kmeans_kernel; print(len(kmeans_kernel.load_model({str(saved)!r}).classes_))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"
