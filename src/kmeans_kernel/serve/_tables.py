"""A served table: its columns as clients see them, and a typical row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from math import isfinite
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.estimators.columns._columns import Column
from kmeans_kernel.estimators.columns._encoder import TableEncoder

Predict: TypeAlias = Callable[[npt.NDArray[Any]], Array]

_DAY = 86_400

# Significant digits of a number in the typical row, where the decimal places are not known.
_DIGITS = 6


@dataclass(frozen=True, eq=False)
class ServedTable:
    """The columns of a model that was trained on more than plain numbers.

    Attributes
    ----------
    columns : all columns, in the order of training
    example : a typical row: a value for each column that the model uses
    """

    columns: tuple[Column, ...]
    example: dict[str, Any]

    @cached_property
    def used(self) -> tuple[Column, ...]:
        """The columns that the model uses; the others may be absent."""
        return tuple(column for column in self.columns if column.kind != "dropped")

    @property
    def width(self) -> int:
        """How many numbers the columns are turned into."""
        return sum(len(column.n_levels) for column in self.columns)

    @property
    def is_numeric(self) -> bool:
        """Whether all columns are numbers, so that rows may be one tensor."""
        return all(column.kind == "number" for column in self.columns)


def to_served_table(estimator: Any) -> tuple[ServedTable, Predict] | None:
    """Return the table of an estimator, and its predictions from the numbers of the columns.

    None is returned for a model of plain numbers without missing values.
    """
    while isinstance(estimator, Pipeline) and len(estimator.steps) == 1:
        estimator = estimator[0]
    if isinstance(estimator, Pipeline) and isinstance(estimator[0], TableEncoder):
        return _encoded_table(estimator[0], without_feature_names(estimator[1:]))
    if not isinstance(estimator, KMeansKernelClassifier):
        return None
    takes_missing = estimator.model_.sphere_map.feature_transform is not None
    if estimator._columns is None and not takes_missing:
        return None
    columns = estimator.columns_
    of_numbers = copy(estimator)
    of_numbers._columns = None
    of_numbers.n_features_in_ = estimator.model_.n_columns
    of_numbers.__dict__.pop("feature_names_in_", None)
    return ServedTable(columns, _typical_row(estimator, columns)), of_numbers.predict_proba


def _encoded_table(encoder: TableEncoder, others: Pipeline) -> tuple[ServedTable, Predict]:
    """Return the table of an encoder, and the predictions of the steps behind it."""
    columns, encoding = encoder.columns_, encoder._encoding
    mean = encoder.inverse_transform(np.zeros((1, encoding.n_features))).tolist()[0]

    def predict(coded: npt.NDArray[Any]) -> Array:
        found: Array = others.predict_proba(encoding.apply(coded))
        return found

    return ServedTable(columns, _example(columns, mean)), predict


def without_feature_names(estimator: Any) -> Any:
    """Return a copy without feature names.

    Requests are matched by name when they are parsed; scikit-learn would warn about every array.
    """
    estimator = copy(estimator)
    if isinstance(estimator, Pipeline):
        estimator.steps = [(name, without_feature_names(step)) for name, step in estimator.steps]
    elif isinstance(estimator, PatchVotingClassifier):
        estimator.classifier_ = without_feature_names(estimator.classifier_)
    vars(estimator).pop("feature_names_in_", None)
    return estimator


def _typical_row(classifier: KMeansKernelClassifier, columns: tuple[Column, ...]) -> dict[str, Any]:
    """Return the representative of most training rows by name, as values of JSON."""
    with np.errstate(all="ignore"):  # a model file may hold numbers of any size
        representatives = classifier.representatives_
    row = representatives[int(classifier.representative_counts_.argmax())].tolist()
    return _example(columns, row)


def _example(columns: tuple[Column, ...], row: Sequence[Any]) -> dict[str, Any]:
    """Return the values of the columns that the model uses, by name, as values of JSON."""
    named = zip(columns, row, strict=True)
    return {column.name: _typical(column, value) for column, value in named
            if column.kind != "dropped"}  # fmt: skip


def _typical(column: Column, value: Any) -> Any:
    """Return a value for a row of JSON: one of the levels, or within the range of the column.

    It is not null, so that the row shows the type of every column.
    """
    if column.kind in ("category", "boolean"):
        return value if value in column.levels else next(iter(column.levels), "other")
    low, high = _bounds(column)
    if column.kind == "date":
        return value or low or "2020-01-31"
    if value is None or not isfinite(value):
        value = 0.0
    if low is not None and high is not None:
        value = min(max(value, low), high)
    if column.decimals is None:
        value = float(f"{value:.{_DIGITS}g}")
    return int(value) if float(value).is_integer() and abs(value) < 2**53 else value


def datatype_of(column: Column) -> str:
    """Return the preferred datatype of a column in the Open Inference Protocol."""
    if column.kind == "boolean":
        return "BOOL"
    if column.kind == "number" or any(isinstance(level, int | float) for level in column.levels):
        return "FP64"
    return "BYTES"


def describe_column(column: Column) -> dict[str, Any]:
    """Return what a client needs to know of a column, as JSON."""
    told: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "dropped":
        return {**told, "reason": column.reason}
    told["datatype"] = datatype_of(column)
    if column.kind in ("category", "boolean"):
        told["levels"] = list(column.levels)
        told["rare"] = column.rare
    else:
        told["minimum"], told["maximum"] = _bounds(column)
    return {**told, "missing": column.missing}


def _bounds(column: Column) -> tuple[Any, Any]:
    """Return the range of the training rows: numbers, or ISO text for dates."""
    bounds = (column.minimum, column.maximum)
    if column.kind == "date":
        return tuple(None if one is None else _iso(one) for one in bounds)  # type: ignore[return-value]
    return bounds


def _iso(seconds: float) -> str:
    unit = "D" if seconds % _DAY == 0 else "s"
    inside = min(max(seconds, -1e12), 1e12)
    return str(np.datetime64(int(inside), "s").astype(f"datetime64[{unit}]"))


def words_of(column: Column) -> str:
    """Return the values of a column in words, for the documentation."""
    if column.kind == "dropped":
        return "not used"
    if column.kind == "boolean":
        return "true, false or null"
    if column.kind == "category":
        some = [str(level) for level in column.levels[:8]]
        return ", ".join([*some, *(["…"] if len(column.levels) > len(some) else []), "or null"])
    what = "a number" if column.kind == "number" else "a date"
    low, high = _bounds(column)
    inside = "" if low is None or high is None else f", {low} to {high} in training,"
    return f"{what}{inside} or null"
