"""Conversion of parameters, labels and kernels to JSON, and validated reading of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.kernels.kernels import Kernel, kernel_from_dict
from kmeans_kernel.export.model_file._file import ModelFileError

# Parameters that may be a dict.
_DICTS = (".class_weight", ".kernel_params", ".column_types")

_LABEL_KINDS = "biufU"  # NumPy kinds: boolean, integer, unsigned, float, text


def shape_of(pair: Any) -> tuple[int, int]:
    """Return height and width of an image, validated."""
    height, width = pair
    return count_of(height), count_of(width)


def describe_features(estimator: Any) -> dict[str, Any]:
    """Return the number of features, and their names or None, as JSON."""
    names = getattr(estimator, "feature_names_in_", None)
    return {
        "count": int(estimator.n_features_in_),
        "names": None if names is None else [str(name) for name in names],
    }


def set_features(estimator: Any, tree: dict[str, Any]) -> int:
    """Set `n_features_in_` and `feature_names_in_` of an estimator; return the number."""
    features = tree["features"]
    count = count_of(features["count"])
    estimator.n_features_in_ = count
    if features["names"] is not None:
        names = np.array([str(name) for name in features["names"]], dtype=object)
        if len(names) != count:
            raise ModelFileError(f"it names {len(names)} features of {count}")
        estimator.feature_names_in_ = names
    return count


def describe_params(estimator: Any) -> dict[str, Any]:
    """Return the parameters as JSON; a RandomState becomes None, as the fit has used it."""
    params = {}
    for name, value in estimator.get_params(deep=False).items():
        plain = _plain(value)
        if name == "time_budget" and plain is None:
            continue  # a limit of the search is no part of the model
        if isinstance(plain, np.random.RandomState):
            plain = None
        if isinstance(plain, dict):
            plain = {"items": [[_plain(key), _plain(item)] for key, item in plain.items()]}
        params[name] = plain
    return params


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def params_of(kind: type, tree: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of an estimator; raise `ModelFileError` for unknown names or types."""
    params: dict[str, Any] = dict(tree["params"])
    known = set(kind._get_param_names())  # type: ignore[attr-defined]
    if set(params) - known:
        raise ModelFileError(f"{kind.__name__} has no parameter {sorted(set(params) - known)}")
    return {name: _param(f"{kind.__name__}.{name}", value) for name, value in params.items()}


def _param(name: str, value: Any) -> Any:
    if name.endswith(_DICTS) and isinstance(value, dict):
        return {_param(name, label): _param(name, weight) for label, weight in value["items"]}
    if name.endswith(".image_shape") and isinstance(value, list):
        return shape_of(value)
    if not isinstance(value, str | int | float | None):
        raise ModelFileError(f"the parameter {name!r} is {value!r}")
    return value


def build_kernel(tree: Any) -> Kernel:
    """Return the kernel that JSON describes."""
    try:
        return kernel_from_dict(tree)
    except ValueError as error:
        raise ModelFileError(str(error)) from None


def describe_labels(labels: npt.NDArray[Any]) -> dict[str, Any]:
    """Return class labels as JSON."""
    if labels.dtype.kind == "O" and all(isinstance(label, str) for label in labels):
        return {"dtype": "object", "values": labels.tolist()}
    if labels.dtype.kind not in _LABEL_KINDS:
        raise TypeError(
            f"save_model saves labels that are numbers or text, got {labels.dtype}. Train on "
            "labels of such a type, for example y.astype(str)."
        )
    return {"dtype": labels.dtype.str, "values": labels.tolist()}


def build_labels(tree: dict[str, Any]) -> npt.NDArray[Any]:
    """Return the class labels of a JSON object, validated."""
    values = tree["values"]
    if tree["dtype"] == "object":
        labels = np.array([_text(label) for label in values], dtype=object)
    else:
        dtype = np.dtype(tree["dtype"])
        if dtype.kind not in _LABEL_KINDS:
            raise ModelFileError(f"its labels are of type {dtype}")
        if dtype.kind == "U":  # the width in the file is ignored: it may be huge
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


def number_of(tree: dict[str, Any], name: str, minimum: float) -> float:
    """Return the number `name` of a JSON object; it must be at least `minimum`."""
    value = tree[name]
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= minimum:
        raise ModelFileError(f"{name} is {value!r}")
    return float(value)  # raises OverflowError for an integer beyond float64


def count_of(value: Any) -> int:
    """Return `value` if it is an integer of at least 1, else raise `ModelFileError`."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ModelFileError(f"{value!r} stands where a whole number of at least 1 should")
    return value
