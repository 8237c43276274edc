"""Saving and loading fitted estimators: one safetensors file, and nothing in it can run code.

The arrays are the file's tensors. Everything else is JSON in its metadata: the format's version, a
tree of estimators with their parameters, and a digest of the whole. Loading checks the header, the
version, the digest, and every name, type and shape, before an estimator is built.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel._kernels import Gaussian, Kernel, Polynomial
from kmeans_kernel._model import FittedModel
from kmeans_kernel.classifier import KMeansKernelClassifier
from kmeans_kernel.files import check_writable, write_whole
from kmeans_kernel.images import FourierFeatures, PixelNormalizer
from kmeans_kernel.patches import PatchVotingClassifier

FORMAT = "kmeans-kernel"
VERSION = 1

_FLOATS = ("float32", "float64")
_LABEL_KINDS = "biufU"  # booleans, whole numbers, numbers, text


class ModelFileError(ValueError):
    """A file that is no model of ours, or one that is damaged."""


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file, to be read by `load_model`.

    Parameters
    ----------
    estimator : KMeansKernelClassifier, PatchVotingClassifier, or a Pipeline that ends in one
        Before the classifier a pipeline may hold PixelNormalizer, FourierFeatures and
        scikit-learn's StandardScaler.
    path : path
        The file. It is written under a temporary name and renamed, so that there is always a
        whole one.

    Examples
    --------
    >>> import os, tempfile
    >>> from kmeans_kernel import KMeansKernelClassifier, load_model, save_model
    >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["a", "a", "b", "b"]
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save_model(KMeansKernelClassifier(2).fit(X, y), path)
    >>> load_model(path).predict([[0.0, 0.9]]).tolist()
    ['a']
    """
    from safetensors.numpy import save

    path = check_writable(Path(path))
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"save_model saves classifiers, got a {type(estimator).__name__}.")
    arrays: dict[str, npt.NDArray[Any]] = {}
    tree = json.dumps(_describe(estimator, _Place("", arrays)), allow_nan=False)
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    metadata = {
        "format": FORMAT,
        "version": str(VERSION),
        "estimator": tree,
        "digest": _digest(tree, arrays),
    }
    write_whole(path, _in_order(save(arrays, metadata)))


def _in_order(content: bytes) -> bytes:
    """Return a safetensors file with its header in alphabetical order, the same every time."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.dumps(json.loads(content[8:end]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + content[end:]


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save_model` wrote.

    Parameters
    ----------
    path : path
        The file. It may come from anyone: nothing in it is run, and nothing larger than the file
        is allocated.

    Returns
    -------
    the estimator, fitted

    Raises
    ------
    ModelFileError
        when the file is no model, is damaged, or is of a later version; the message says which
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory: name a file that save_model wrote.")
    metadata, arrays = _read(path)
    try:
        tree = json.loads(
            metadata["estimator"], parse_constant=_refuse_constant, parse_float=_finite
        )
        if metadata["digest"] != _digest(metadata["estimator"], arrays):
            raise ModelFileError("its digest does not match its content")
        place = _Place("", arrays)
        estimator = _build(tree, place)
        if place.unused():
            raise ModelFileError(f"it holds arrays that no part of it names: {place.unused()}")
    except ModelFileError as error:
        raise _damaged(path, str(error)) from None
    except (
        KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError, MemoryError,
    ) as error:  # fmt: skip
        raise _damaged(path, f"{type(error).__name__}: {error}") from error
    return estimator


def _read(path: Path) -> tuple[dict[str, str], dict[str, npt.NDArray[Any]]]:
    """Return the metadata and the arrays of a file whose header is sound."""
    from safetensors import SafetensorError, safe_open

    try:
        with _on_disk(path) as place, safe_open(place, framework="np") as file:
            metadata: dict[str, str] = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise ModelFileError(
                    f"{path} is a safetensors file, but not a model of kmeans-kernel. Name a file "
                    "that save_model wrote."
                )
            if metadata.get("version") != str(VERSION):
                raise ModelFileError(
                    f"{path} is a model of format version {metadata.get('version')!r}, and this "
                    f"kmeans-kernel reads version {VERSION}. Install the kmeans-kernel that wrote "
                    "it, or save the model again with this one."
                )
            missing = {"estimator", "digest"} - set(metadata)
            if missing:
                raise _damaged(path, f"its metadata lacks {', '.join(sorted(missing))}")
            return metadata, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except SafetensorError as error:
        raise _damaged(path, f"no safetensors file, or a part of one ({error})") from error
    except (TypeError, AttributeError) as error:  # arrays of types that NumPy does not have
        raise _damaged(path, f"it holds an array of an unknown type ({error})") from error


@contextmanager
def _on_disk(path: Path) -> Iterator[Path]:
    """Give a file that can be mapped into memory: what comes through a pipe is copied to one."""
    if path.is_file() or not path.exists():
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "model"
        with path.open("rb") as source, copy.open("wb") as target:
            start = source.read(9)  # the length of the header, and its first character
            target.write(start)
            if start[8:] == b"{":  # else it is no model, and may be endless
                shutil.copyfileobj(source, target)
        yield copy


def _damaged(path: Path, why: str) -> ModelFileError:
    return ModelFileError(
        f"{path} is not a whole model of kmeans-kernel: {why}. Copy it again from where it came "
        "from, or save the model again."
    )


def _refuse_constant(name: str) -> float:
    raise ModelFileError(f"it holds the number {name}")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)


def _digest(tree: str, arrays: dict[str, npt.NDArray[Any]]) -> str:
    """Return a digest of all that a model consists of."""
    digest = hashlib.sha256(tree.encode())
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"\n{name} {array.dtype.str} {array.shape}\n".encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return digest.hexdigest()


class _Place:
    """A place in the tree of estimators, and the arrays that belong there."""

    def __init__(self, name: str, arrays: dict[str, npt.NDArray[Any]], used: Any = None) -> None:
        self._name = name
        self._arrays = arrays
        self._used: set[str] = set() if used is None else used

    def below(self, name: str) -> _Place:
        """Return the place of a part."""
        return _Place(f"{self._name}{name}.", self._arrays, self._used)

    def put(self, name: str, array: npt.NDArray[Any]) -> None:
        """Store an array of this place."""
        self._arrays[self._name + name] = array

    def take(
        self, name: str, shape: tuple[int | None, ...], dtypes: tuple[str, ...]
    ) -> npt.NDArray[Any]:
        """Return an array of this place; None in `shape` is any length."""
        full = self._name + name
        if full not in self._arrays:
            raise ModelFileError(f"the array {full!r} is missing")
        array = self._arrays[full]
        fits = len(shape) == array.ndim and all(
            expected in (None, found) for expected, found in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype.name not in dtypes:
            raise ModelFileError(
                f"the array {full!r} should be {' or '.join(dtypes)} of shape {shape}, "
                f"got {array.dtype.name} of shape {array.shape}"
            )
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError(f"the array {full!r} holds values that are not finite")
        self._used.add(full)
        return array

    def unused(self) -> list[str]:
        """Return the names of the arrays that nobody took."""
        return sorted(set(self._arrays) - self._used)


def _describe(estimator: Any, place: _Place) -> dict[str, Any]:
    """Return the JSON of an estimator, and put its arrays in place."""
    for kind, (describe, _) in _KINDS.items():
        if type(estimator) is kind:
            check_is_fitted(estimator)
            return {"kind": kind.__name__, **describe(estimator, place)}
    raise TypeError(
        f"save_model cannot save a {type(estimator).__name__}; it saves "
        f"{', '.join(kind.__name__ for kind in _KINDS)}. Apply other steps before the model that "
        "is saved, and again before it predicts."
    )


def _build(tree: Any, place: _Place) -> Any:
    """Return the estimator that a JSON describes."""
    if not isinstance(tree, dict):
        raise ModelFileError("an estimator is not described by an object")
    for kind, (_, build) in _KINDS.items():
        if tree.get("kind") == kind.__name__:
            return build(tree, place)
    raise ModelFileError(f"it holds an estimator of an unknown kind, {tree.get('kind')!r}")


def _describe_pipeline(pipeline: Pipeline, place: _Place) -> dict[str, Any]:
    steps = [step for step in pipeline.steps if step[1] not in (None, "passthrough")]
    described = [
        [name, _describe(step, place.below(f"steps.{k}"))] for k, (name, step) in enumerate(steps)
    ]
    return {"steps": described}


def _build_pipeline(tree: dict[str, Any], place: _Place) -> Pipeline:
    steps = [
        (str(name), _build(step, place.below(f"steps.{k}")))
        for k, (name, step) in enumerate(tree["steps"])
    ]
    if not steps or not hasattr(steps[-1][1], "predict"):
        raise ModelFileError("a pipeline does not end in a classifier")
    return Pipeline(steps)


def _describe_scaler(scaler: StandardScaler, place: _Place) -> dict[str, Any]:
    for name, there in (("mean_", scaler.with_mean), ("scale_", scaler.with_std)):
        if there:
            place.put(name, getattr(scaler, name))
    return {
        "features": _features(scaler),
        "params": _plain_params(scaler),
        "n_samples_seen": int(np.max(scaler.n_samples_seen_)),
    }


def _build_scaler(tree: dict[str, Any], place: _Place) -> StandardScaler:
    scaler = StandardScaler(**_params(StandardScaler, tree))
    n_features = _set_features(scaler, tree)
    wanted = {"mean_": scaler.with_mean, "scale_": scaler.with_std}
    for name, there in wanted.items():
        value = place.take(name, (n_features,), ("float64",)) if there else None
        setattr(scaler, name, value)
    if scaler.scale_ is not None and (scaler.scale_ <= 0).any():
        raise ModelFileError("it divides by scales that are not above zero")
    scaler.var_ = None if scaler.scale_ is None else scaler.scale_**2
    scaler.n_samples_seen_ = _count(tree["n_samples_seen"])
    return scaler


def _describe_pixels(transformer: Any, place: _Place) -> dict[str, Any]:  # noqa: ARG001
    shape = transformer.image_shape_
    return {
        "features": _features(transformer),
        "params": _plain_params(transformer),
        "image_shape": None if shape is None else list(shape),
    }


def _build_pixels(kind: type) -> Callable[[dict[str, Any], _Place], Any]:
    def build(tree: dict[str, Any], place: _Place) -> Any:  # noqa: ARG001
        transformer = kind(**_params(kind, tree))
        n_pixels = _set_features(transformer, tree)
        shape = None if tree["image_shape"] is None else _shape(tree["image_shape"])
        if shape is not None and shape[0] * shape[1] != n_pixels:
            raise ModelFileError("its images are not of the size that it was trained on")
        transformer.image_shape_ = shape
        return transformer

    return build


def _describe_classifier(classifier: KMeansKernelClassifier, place: _Place) -> dict[str, Any]:
    model = classifier.model_
    place.put("directions", model.directions)
    place.put("representative_classes", model.representative_classes.astype(np.int64))
    place.put("representative_counts", model.representative_counts.astype(np.int64))
    place.put("dual_coef", model.dual_coef)
    place.put("intercept", model.intercept)
    return {
        "features": _features(classifier),
        "params": _plain_params(classifier),
        "classes": _describe_labels(model.classes),
        "kernel": _describe_kernel(model.kernel),
        "lift": model.lift,
        "temperature": model.temperature,
        "n_iter": classifier.n_iter_.tolist(),
        "relative_residual": classifier.relative_residual_,
    }


def _build_classifier(tree: dict[str, Any], place: _Place) -> KMeansKernelClassifier:
    classifier = KMeansKernelClassifier(**_params(KMeansKernelClassifier, tree))
    classifier._settings()  # refuses what no fit accepts
    n_features = _set_features(classifier, tree)
    classes = _build_labels(tree["classes"])
    lift = _number(tree, "lift", 0.0)
    directions = place.take("directions", (None, n_features + (lift > 0)), _FLOATS)
    m = len(directions)
    owners = place.take("representative_classes", (m,), ("int64",))
    counts = place.take("representative_counts", (m,), ("int64",))
    owned = np.unique(owners).tolist()
    if owned != list(range(len(classes))) or (counts < 0).any():
        raise ModelFileError("its representatives do not belong to its classes")
    lengths = np.linalg.norm(directions.astype(np.float64), axis=1)
    if (np.abs(lengths[lengths > 0] - 1) > 1e-3).any():
        raise ModelFileError("its representatives are not on the unit sphere")
    classifier.model_ = FittedModel(
        directions=directions,
        representative_classes=owners.astype(np.intp, copy=False),
        representative_counts=counts.astype(np.intp, copy=False),
        dual_coef=place.take("dual_coef", (m, len(classes)), ("float64",)),
        intercept=place.take("intercept", (len(classes),), ("float64",)),
        kernel=_build_kernel(tree["kernel"]),
        lift=lift,
        classes=classes,
        temperature=_number(tree, "temperature", np.finfo(float).tiny),
    )
    classifier.n_iter_ = np.array([_count(n) for n in tree["n_iter"]], dtype=np.intp)
    if len(classifier.n_iter_) != len(classes):
        raise ModelFileError("it does not say how many iterations each class took")
    classifier.relative_residual_ = _number(tree, "relative_residual", 0.0)
    classifier.stage_seconds_ = {}  # the file is of the model, not of the day it was trained
    return classifier


def _describe_voting(voting: PatchVotingClassifier, place: _Place) -> dict[str, Any]:
    return {
        "features": _features(voting),
        "vote": voting.vote,
        "image_shape": list(voting.image_shape_),
        "patch_shape": list(voting.patch_shape_),
        "score_method": voting.score_method_,
        "classifier": _describe(voting.classifier_, place.below("classifier")),
    }


def _build_voting(tree: dict[str, Any], place: _Place) -> PatchVotingClassifier:
    from sklearn.base import clone

    classifier = _build(tree["classifier"], place.below("classifier"))
    image_shape, patch_shape = _shape(tree["image_shape"]), _shape(tree["patch_shape"])
    if tree["score_method"] not in ("decision_function", "predict_proba", "predict"):
        raise ModelFileError(f"its score method is {tree['score_method']!r}")
    if tree["vote"] not in ("majority", "sum"):
        raise ModelFileError(f"its vote is {tree['vote']!r}")
    voting = PatchVotingClassifier(
        clone(classifier), patch_shape=patch_shape, vote=tree["vote"], image_shape=image_shape
    )
    if _set_features(voting, tree) != image_shape[0] * image_shape[1]:
        raise ModelFileError("its images are not of the size that it was trained on")
    voting.classifier_ = classifier
    voting.classes_ = classifier.classes_
    voting.image_shape_ = image_shape
    voting.patch_shape_ = patch_shape
    voting.score_method_ = tree["score_method"]
    return voting


def _shape(pair: Any) -> tuple[int, int]:
    height, width = pair
    return _count(height), _count(width)


def _features(estimator: Any) -> dict[str, Any]:
    """Return the number of features, and their names if they have any."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "count": int(estimator.n_features_in_),
        "names": None if names is None else [str(name) for name in names],
    }


def _set_features(estimator: Any, tree: dict[str, Any]) -> int:
    features = tree["features"]
    count = _count(features["count"])
    estimator.n_features_in_ = count
    if features["names"] is not None:
        names = np.array([str(name) for name in features["names"]], dtype=object)
        if len(names) != count:
            raise ModelFileError(f"it names {len(names)} features of {count}")
        estimator.feature_names_in_ = names
    return count


def _plain_params(estimator: Any) -> dict[str, Any]:
    """Return the parameters as JSON knows them; a generator means nothing after the fit."""
    params = {}
    for name, value in estimator.get_params(deep=False).items():
        plain = value.item() if isinstance(value, np.generic) else value
        params[name] = None if isinstance(plain, np.random.RandomState) else plain
    return params


def _params(kind: type, tree: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator; none that it does not know, none that is no value."""
    params: dict[str, Any] = dict(tree["params"])
    known = set(kind._get_param_names())  # type: ignore[attr-defined]
    if set(params) - known:
        raise ModelFileError(f"{kind.__name__} has no parameter {sorted(set(params) - known)}")
    for name, value in params.items():
        if not isinstance(value, str | int | float | None):
            raise ModelFileError(f"the parameter {name!r} of {kind.__name__} is {value!r}")
    return params


def _describe_kernel(kernel: Kernel) -> dict[str, Any]:
    if isinstance(kernel, Polynomial):
        return {"kind": "Polynomial", "degree": kernel.degree}
    if isinstance(kernel, Gaussian):
        return {"kind": "Gaussian", "gamma": kernel.gamma}
    raise TypeError(f"save_model cannot save the kernel {kernel!r}.")


def _build_kernel(tree: dict[str, Any]) -> Kernel:
    if tree["kind"] == "Polynomial":
        return Polynomial(_count(tree["degree"]))
    if tree["kind"] == "Gaussian":
        return Gaussian(_number(tree, "gamma", 0.0))
    raise ModelFileError(f"its kernel is {tree['kind']!r}")


def _describe_labels(labels: npt.NDArray[Any]) -> dict[str, Any]:
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
        return {"dtype": "object", "values": labels.tolist()}
    if labels.dtype.kind not in _LABEL_KINDS:
        raise TypeError(
            f"save_model saves labels that are numbers or text, got {labels.dtype}. Train on "
            "labels of such a type, for example y.astype(str)."
        )
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def _build_labels(tree: dict[str, Any]) -> npt.NDArray[Any]:
    values = tree["values"]
    if tree["dtype"] == "object":
        labels = np.array([_text(label) for label in values], dtype=object)
    else:
        dtype = np.dtype(tree["dtype"])
        if dtype.kind not in _LABEL_KINDS:
            raise ModelFileError(f"its labels are of type {dtype}")
        if dtype.kind == "U":  # no wider than its labels, whatever it says
            labels = np.array([_text(label) for label in values])
        else:
            labels = np.array(values, dtype=dtype)
            if labels.tolist() != values:
                raise ModelFileError(f"its labels are not of type {dtype}")
    if labels.ndim != 1 or len(labels) < 2 or np.unique(labels).tolist() != labels.tolist():
        raise ModelFileError("its labels are not two or more that differ, in order")
    return labels


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ModelFileError(f"{value!r} stands where text should")
    return value


def _number(tree: dict[str, Any], name: str, minimum: float) -> float:
    value = tree[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= minimum:
        raise ModelFileError(f"{name} is {value!r}")
    return float(value)  # a whole number too large for a float is an OverflowError


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelFileError(f"{value!r} stands where a whole number of at least 1 should")
    return value


_Describe = Callable[[Any, _Place], dict[str, Any]]
_Build = Callable[[dict[str, Any], _Place], Any]

_KINDS: dict[type, tuple[_Describe, _Build]] = {
    KMeansKernelClassifier: (_describe_classifier, _build_classifier),
    PatchVotingClassifier: (_describe_voting, _build_voting),
    Pipeline: (_describe_pipeline, _build_pipeline),
    PixelNormalizer: (_describe_pixels, _build_pixels(PixelNormalizer)),
    FourierFeatures: (_describe_pixels, _build_pixels(FourierFeatures)),
    StandardScaler: (_describe_scaler, _build_scaler),
}
