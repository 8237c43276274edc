"""Inputs of the graph of a table: one tensor of shape (n, 1) for each column that is used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from skl2onnx.common.data_types import (
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
    TensorType,
)

from kmeans_kernel.core.arrays.encoding import ColumnEncoding, FeatureMap
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators.columns._columns import Column
from kmeans_kernel.estimators.columns._encoder import TableEncoder
from kmeans_kernel.export.onnx._columns import column_numbers, missing_text, reads_text
from kmeans_kernel.export.onnx._graph import FLOAT32, Graph, Name, float_type

# Names of outputs, which no input can have.
_OUTPUTS = ("label", "probabilities")

# Whole numbers up to here are float32 numbers.
_LARGEST_WHOLE = 2**24

# A column is read as float32 if the rounding of its numbers changes no feature by more. Features
# have about unit variance, so that probabilities then change by less than 1e-4.
_LARGEST_CHANGE = 2e-5

_TYPE_NAMES = {FloatTensorType: "float", DoubleTensorType: "double", StringTensorType: "string"}


@dataclass(frozen=True)
class TableInput:
    """An input of the graph of a table.

    Attributes
    ----------
    name : its name, which is that of the column unless another input or an output has it
    column : the column
    type : type of its tensor: strings, float or double
    """

    name: str
    column: Column
    type: type[TensorType]

    def describe(self) -> dict[str, Any]:
        """Return the name, the meaning and the type of the values as JSON."""
        column, is_text = self.column, self.type is StringTensorType
        found: dict[str, Any] = {"name": self.name}
        if self.name != column.name:
            found["column"] = column.name
        found |= {"kind": column.kind, "type": _TYPE_NAMES[self.type]}
        if column.kind == "date":
            found["unit"] = "seconds since 1970-01-01 UTC"
        if column.levels:
            found["levels"] = list(column.levels)
        return {**found, "missing": missing_text(column) if is_text else "NaN"}


def is_of_table(step: Any) -> bool:
    """Return whether a fitted step takes the columns of a table instead of rows of numbers."""
    return isinstance(step, KMeansKernelClassifier | TableEncoder) and step._columns is not None


def table_inputs(step: Any, dtype: npt.DTypeLike) -> list[TableInput]:
    """Return the inputs of a fitted step that takes columns.

    Numbers have the type `dtype`, but float64 where rounding to float32 would change predictions.
    """
    columns = used_columns(step)
    ends = np.cumsum([len(column.n_levels) for column in columns])
    places = ends - [len(column.n_levels) for column in columns]
    return [
        TableInput(name, column, _tensor_type(column, int(place), _feature_map(step), dtype))
        for name, column, place in zip(input_names(columns), columns, places, strict=True)
    ]


def used_columns(step: Any) -> list[Column]:
    """Return the columns that are not dropped."""
    return [column for column in step._columns if column.kind != "dropped"]


def input_names(columns: Sequence[Column]) -> list[str]:
    """Return different names for the inputs: of the columns, with a number where they clash."""
    asked = [column.name or "column" for column in columns]
    used, found = set(_OUTPUTS), []
    for name in asked:
        number, free = 0, name
        while free in used or (number and free in asked):
            number += 1
            free = f"{name}.{number}"
        used.add(free)
        found.append(free)
    return found


def table_rows(graph: Graph, step: Any, variables: Sequence[Any]) -> Name:
    """Return the (n, d) float64 numbers of the variables that skl2onnx passes to a step."""
    columns = used_columns(step)
    given = {variable.raw_name: variable for variable in variables}
    names = input_names(columns)
    owner = type(step).__name__
    absent = [name for name in names if name not in given]
    if absent:
        raise TypeError(
            f"{owner} was trained on a table and takes one input of shape [None, 1] for each of "
            f"its columns, by name; {', '.join(map(repr, absent[:8]))} "
            f"{'is' if len(absent) == 1 else 'are'} not among {list(given)[:8]}. Give "
            "initial_types with these names, and no step before it."
        )
    for name, column in zip(names, columns, strict=True):
        _check_variable(owner, given[name], column)
    return column_numbers(graph, columns, [given[name].full_name for name in names])


def _check_variable(owner: str, variable: Any, column: Column) -> None:
    """Raise TypeError if the tensor of a column has another type or shape than it can be read."""
    found = variable.type
    if reads_text(column):
        fits, expected = isinstance(found, StringTensorType), "StringTensorType"
    elif column.kind == "date":
        fits = isinstance(found, DoubleTensorType | Int64TensorType)
        expected = "DoubleTensorType or Int64TensorType, seconds since 1970-01-01 UTC,"
    else:
        fits, expected = not isinstance(found, StringTensorType), "FloatTensorType"
        if fits:
            float_type(variable, owner)
    if not fits or list(found.shape)[1:] not in ([1], [None]):
        raise TypeError(
            f"{owner} takes column {column.name!r} as {expected} of shape [None, 1], got {found}."
        )


def rename_inputs(graph: Any, names: Sequence[str]) -> None:
    """Give the inputs of an ONNX graph their names, which skl2onnx has made identifiers."""
    new = {one.name: name for one, name in zip(graph.input, names, strict=True)}
    inner = _names_in(graph) - {*new}
    taken = {*inner, *names}
    for name in sorted(inner & set(names)):
        number = 1
        while f"{name}_{number}" in taken:
            number += 1
        new[name] = f"{name}_{number}"
        taken.add(new[name])
    _rename(graph, new)


def _names_in(graph: Any) -> set[str]:
    """Return the names of all tensors of a graph and its subgraphs."""
    found = {one.name for one in (*graph.input, *graph.initializer)}
    found.update(name for node in graph.node for name in node.output)
    return found.union(*map(_names_in, _subgraphs(graph)))


def _rename(graph: Any, new: dict[str, str]) -> None:
    for one in (*graph.input, *graph.output, *graph.initializer, *graph.value_info):
        one.name = new.get(one.name, one.name)
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]
        node.output[:] = [new.get(name, name) for name in node.output]
    for subgraph in _subgraphs(graph):
        _rename(subgraph, new)


def _subgraphs(graph: Any) -> list[Any]:
    attributes = [attribute for node in graph.node for attribute in node.attribute]
    return [attribute.g for attribute in attributes if attribute.HasField("g")]


def _feature_map(step: Any) -> FeatureMap | None:
    if isinstance(step, TableEncoder):
        return step._encoding
    found: FeatureMap | None = step.model_.sphere_map.feature_transform
    return found


def _tensor_type(
    column: Column, place: int, feature_map: FeatureMap | None, dtype: npt.DTypeLike
) -> type[TensorType]:
    """Return the type of a column's tensor; `place` is that of its first number."""
    found: type[TensorType] = DoubleTensorType
    if reads_text(column):
        found = StringTensorType
    elif column.kind != "date" and np.dtype(dtype) == FLOAT32:
        if column.kind == "number":
            narrow = column.decimals == 0 and _all_whole(_ends(column))
            narrow = narrow or _largest_change(column, place, feature_map) < _LARGEST_CHANGE
        else:
            narrow = _all_whole(np.array(column.levels, dtype=np.float64))
        found = FloatTensorType if narrow else DoubleTensorType
    return found


def _ends(column: Column) -> Array:
    """Return the least and the largest number of a column."""
    return np.array([column.minimum, column.maximum], dtype=np.float64)


def _all_whole(numbers: Array) -> bool:
    """Return whether numbers are whole and float32 has them and all whole numbers between."""
    return bool(((np.abs(numbers) <= _LARGEST_WHOLE) & (np.rint(numbers) == numbers)).all())


def _largest_change(column: Column, place: int, feature_map: FeatureMap | None) -> float:
    """Return the largest change of a feature by the rounding of numbers to float32."""
    if not isinstance(feature_map, ColumnEncoding):
        return np.inf
    steps, values = feature_map.step_columns == place, feature_map.value_columns == place
    starts, widths = feature_map.step_starts[steps], feature_map.step_widths[steps]
    sizes = np.maximum(np.abs(starts), np.abs(starts + widths))
    with np.errstate(over="ignore"):
        changes = (_rounding(sizes) / widths * feature_map.step_gains[steps]).tolist()
        if feature_map.values is not None and values.any():
            size = np.abs(_ends(column)).max(keepdims=True)
            slopes = feature_map.values.gains[values] / feature_map.values.widths[values]
            changes += (_rounding(size) * slopes).tolist()
    return float(max(changes))


def _rounding(sizes: Array) -> Array:
    """Return the largest error of float32 numbers of these sizes; infinity where it has none."""
    limits = np.finfo(FLOAT32)
    errors = np.maximum(sizes * float(limits.eps) / 2, float(limits.smallest_subnormal))
    return np.where(sizes <= float(limits.max), errors, np.inf)
