"""A served model: its name, what it takes, what it gives, and how that is told."""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.report._inspection import input_shape, sees_images

# A model file has no versions; clients of the protocol want one.
VERSION = "1"

_UNKNOWN = (None, None)

INPUT, LABEL, PROBABILITIES = "X", "label", "probabilities"

_NAME = re.compile(r"[\w][\w .-]*", re.ASCII)


@dataclass(frozen=True, eq=False)
class ServedModel:
    """What the server knows of a model.

    Attributes
    ----------
    predict : from rows to the probabilities (n, K)
    feature_names : those of `fit`, None if it had none
    image_shape : height and width if it takes images, of which they may be unknown (None, None)
    labels : (K,) the classes, as the protocol's type has them
    datatype : that type
    """

    name: str
    predict: Callable[[npt.NDArray[Any]], Array]
    n_features: int
    feature_names: tuple[str, ...] | None
    image_shape: tuple[int | None, int | None] | None
    labels: npt.NDArray[Any]
    datatype: str

    @property
    def input_datatype(self) -> str:
        """The type it is best sent: tables in float64, images in float32; others are as welcome."""
        return "FP64" if self.image_shape is None else "FP32"

    @property
    def label_texts(self) -> list[str]:
        """The labels as JSON has them for keys."""
        texts = [str(label) for label in self.labels.tolist()]
        return [text.lower() for text in texts] if self.datatype == "BOOL" else texts

    def labels_of(self, probabilities: Array) -> npt.NDArray[Any]:
        """Return the most probable label of each row."""
        found: npt.NDArray[Any] = self.labels[probabilities.argmax(axis=1)]
        return found


def serve_model(name: str, estimator: Any) -> ServedModel:
    """Return a fitted classifier as it is served."""
    if not _NAME.fullmatch(name) or name == "stats":
        raise ValueError(
            f"the name of a model must be letters, digits, '_', '-', '.' and spaces, and not "
            f"'stats', got {name!r}; name it with NAME=FILE."
        )
    if not hasattr(estimator, "predict_proba") or not hasattr(estimator, "classes_"):
        raise TypeError(f"only fitted classifiers are served, got a {type(estimator).__name__}.")
    names = getattr(estimator, "feature_names_in_", None)
    n_features = int(estimator.n_features_in_)
    labels, datatype = _protocol_labels(np.asarray(estimator.classes_))
    return ServedModel(
        name=name,
        predict=_nameless(estimator).predict_proba,
        n_features=n_features,
        feature_names=None if names is None else tuple(str(one) for one in names),
        image_shape=(input_shape(estimator) or _UNKNOWN) if sees_images(estimator) else None,
        labels=labels,
        datatype=datatype,
    )


def metadata(model: ServedModel) -> dict[str, Any]:
    """Return what the protocol tells of a model."""
    known: dict[str, Any] = {
        "name": model.name,
        "versions": [VERSION],
        "platform": "kmeans-kernel",
        "inputs": [
            {
                "name": INPUT,
                "datatype": model.input_datatype,
                "shape": [-1, model.n_features],
            }
        ],
        "outputs": [
            {"name": LABEL, "datatype": model.datatype, "shape": [-1]},
            {"name": PROBABILITIES, "datatype": "FP64", "shape": [-1, len(model.labels)]},
        ],
        "parameters": {"labels": model.labels.tolist()},
    }
    if model.feature_names is not None:
        known["parameters"]["feature_names"] = list(model.feature_names)
    if model.image_shape is not None:
        known["parameters"]["image_shape"] = [side or -1 for side in model.image_shape]
    return known


def config(model: ServedModel) -> dict[str, Any]:
    """Return what Triton's clients ask for beside that."""
    known = metadata(model)

    def tensors(key: str) -> list[dict[str, Any]]:
        types = {"BYTES": "STRING"}
        return [
            {
                "name": one["name"],
                "data_type": f"TYPE_{types.get(one['datatype'], one['datatype'])}",
                "dims": one["shape"],
            }
            for one in known[key]
        ]

    return {
        "name": model.name,
        "platform": known["platform"],
        "backend": known["platform"],
        "max_batch_size": 0,
        "input": tensors("inputs"),
        "output": tensors("outputs"),
    }


def _protocol_labels(classes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], str]:
    """Return the classes in one of the protocol's types, and its name."""
    kind = classes.dtype.kind
    if kind in "iu":
        return classes.astype("<i8"), "INT64"
    if kind == "b":
        return classes, "BOOL"
    if kind == "f":
        return classes.astype("<f8"), "FP64"
    return np.array([str(label) for label in classes.tolist()], dtype=object), "BYTES"


def _nameless(estimator: Any) -> Any:
    """Return a copy that does not ask for names of features: here they are matched at the door."""
    estimator = copy(estimator)
    if isinstance(estimator, Pipeline):
        estimator.steps = [(name, _nameless(step)) for name, step in estimator.steps]
    elif isinstance(estimator, PatchVotingClassifier):
        estimator.classifier_ = _nameless(estimator.classifier_)
    vars(estimator).pop("feature_names_in_", None)
    return estimator
