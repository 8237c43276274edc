"""A served model: its input and output tensors, its metadata and its configuration."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.report._inspection import input_shape, sees_images
from kmeans_kernel.serve._tables import (
    ServedTable,
    datatype_of,
    describe_column,
    to_served_table,
    without_feature_names,
)
from kmeans_kernel.utils.pipelines import flatten

# Model files have no versions, but the protocol requires one.
VERSION = "1"

_UNKNOWN_SHAPE = (None, None)

INPUT, LABEL, PROBABILITIES = "X", "label", "probabilities"

_OWN = "kmeans_kernel."

_NAME = re.compile(r"[\w][\w .-]*", re.ASCII)


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A fitted classifier with the description of its tensors.

    Attributes
    ----------
    predict : map rows (n, width) to probabilities (n, K)
    feature_names : column names seen in `fit`, None if there were none
    image_shape : height and width for a model of images, (None, None) if unknown; else None
    labels : (K,) classes, converted to the datatype
    datatype : protocol datatype of the labels
    table : the columns of a model that was trained on more than plain numbers, else None
    """

    name: str
    predict: Callable[[npt.NDArray[Any]], Array]
    n_features: int
    feature_names: tuple[str, ...] | None
    image_shape: tuple[int | None, int | None] | None
    labels: npt.NDArray[Any]
    datatype: str
    table: ServedTable | None = None

    @property
    def width(self) -> int:
        """How many numbers a row is for `predict`."""
        return self.n_features if self.table is None else self.table.width

    @property
    def input_datatype(self) -> str:
        """Preferred datatype of the input; every numeric datatype is accepted."""
        return "FP64" if self.image_shape is None else "FP32"

    @property
    def label_texts(self) -> list[str]:
        """The labels as JSON object keys."""
        texts = [str(label) for label in self.labels.tolist()]
        return [text.lower() for text in texts] if self.datatype == "BOOL" else texts

    def labels_of(self, probabilities: Array) -> npt.NDArray[Any]:
        """Return the most probable label of each row."""
        found: npt.NDArray[Any] = self.labels[probabilities.argmax(axis=1)]
        return found


def to_served_model(name: str, estimator: Any) -> ServedModel:
    """Validate a fitted classifier and describe its tensors."""
    if not _NAME.fullmatch(name) or name == "stats":
        raise ValueError(
            f"the name of a model must consist of letters, digits, '_', '-', '.' and spaces, and "
            f"not be 'stats', got {name!r}; set another name with NAME=FILE."
        )
    if not hasattr(estimator, "predict_proba") or not hasattr(estimator, "classes_"):
        raise TypeError(
            "only fitted classifiers with predict_proba can be served, got a "
            f"{type(estimator).__name__}."
        )
    if hasattr(estimator, "best_estimator_") or hasattr(estimator, "calibrated_classifiers_"):
        raise TypeError(
            f"a {type(estimator).__name__} cannot be served, since it does not tell what its "
            "columns are; pass best_estimator_ of a search, or the classifier itself."
        )
    estimator = flatten(estimator)
    names = getattr(estimator, "feature_names_in_", None)
    table, predict = to_served_table(estimator) or (None, None)
    if table is not None:
        names = [column.name for column in table.columns]
    labels, datatype = _protocol_labels(np.asarray(estimator.classes_))
    if predict is None:
        predict = without_feature_names(estimator).predict_proba
        _check_takes_rows(name, estimator, predict)
    return ServedModel(
        name=name,
        predict=predict,
        n_features=int(estimator.n_features_in_),
        feature_names=None if names is None else tuple(str(one) for one in names),
        image_shape=(input_shape(estimator) or _UNKNOWN_SHAPE) if sees_images(estimator) else None,
        labels=labels,
        datatype=datatype,
        table=table,
    )


def _check_takes_rows(name: str, estimator: Any, predict: Callable[..., Any]) -> None:
    """Raise TypeError for an estimator that cannot predict a row of numbers, as servers send it."""
    if not isinstance(estimator, Pipeline) and type(estimator).__module__.startswith(_OWN):
        return
    try:
        predict(np.zeros((1, int(estimator.n_features_in_))))
    except Exception as error:  # of a step of another package
        raise TypeError(
            f"the model {name!r} cannot be served, as it takes no rows of numbers: {error}. "
            "Give the frame to KMeansKernelClassifier itself, or to a pipeline that begins with "
            "TableEncoder."
        ) from error


def metadata(model: ServedModel) -> dict[str, Any]:
    """Return the model metadata of the protocol."""
    known: dict[str, Any] = {
        "name": model.name,
        "versions": [VERSION],
        "platform": "kmeans-kernel",
        "inputs": _inputs(model),
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
    if model.table is not None:
        known["parameters"]["columns"] = [describe_column(one) for one in model.table.columns]
    return known


def _inputs(model: ServedModel) -> list[dict[str, Any]]:
    """Return one tensor of all features, or one for each column of a table."""
    if model.table is None or model.table.is_numeric:
        shape = [-1, model.n_features]
        return [{"name": INPUT, "datatype": model.input_datatype, "shape": shape}]
    return [
        {"name": column.name, "datatype": datatype_of(column), "shape": [-1]}
        for column in model.table.used
    ]


def config(model: ServedModel) -> dict[str, Any]:
    """Return the model configuration, an extension of Triton."""
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
    """Return the classes in a datatype of the protocol, and its name."""
    kind = classes.dtype.kind
    if kind in "iu":
        return classes.astype("<i8"), "INT64"
    if kind == "b":
        return classes, "BOOL"
    if kind == "f":
        return classes.astype("<f8"), "FP64"
    return np.array([str(label) for label in classes.tolist()], dtype=object), "BYTES"
