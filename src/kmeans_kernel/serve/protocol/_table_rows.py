"""Rows of a table by name: JSON objects, JSON lists, CSV, and one tensor for each column."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import chain
from operator import itemgetter
from typing import Any

import numpy as np

from kmeans_kernel.serve._models import INPUT, ServedModel
from kmeans_kernel.serve._tables import ServedTable
from kmeans_kernel.serve.protocol._column_tensors import Tensor
from kmeans_kernel.serve.protocol._csv import decode_csv, read_records
from kmeans_kernel.serve.protocol._values import (
    MISSING_TEXT,
    CodedRows,
    Values,
    absent_columns,
    code_values,
    ignored_columns,
    read_cells,
)
from kmeans_kernel.serve.transport._errors import (
    abbreviate,
    abbreviate_list,
    bad_request,
    pluralize,
)
from kmeans_kernel.serve.transport._limits import check_count


def rows_of_json(rows: list[Any], model: ServedModel, table: ServedTable) -> CodedRows:
    """Return rows of JSON, at least one: objects by name, or lists in the order of training."""
    kind = type(rows[0])
    if kind not in (dict, list):
        raise bad_request(
            f"The rows of the model {model.name!r} must be objects by column name, such as "
            f"{abbreviate(table.example)}, got {abbreviate(rows[0])} for the first."
        )
    strange = next((k for k, row in enumerate(rows) if type(row) is not kind), None)
    if strange is not None:
        what = "an object" if kind is dict else "a list"
        raise bad_request(
            f"Row {strange} must be {what}, as the first row is, got {abbreviate(rows[strange])}."
        )
    if kind is list:
        return code_values(table, _of_lists(rows, table), _row)
    values, first = _of_records(rows, table), rows[0].keys()
    # Most rows have the names of the first.
    others = [name for row in rows if row.keys() != first for name in row]
    return code_values(table, values, _row, _ignored([*first, *others], table))


def _ignored(names: Iterable[str], table: ServedTable) -> tuple[str, ...]:
    return ignored_columns(names, [column.name for column in table.columns])


def _of_records(rows: list[dict[str, Any]], table: ServedTable) -> dict[str, Values]:
    """Return the values of rows by name; an error names all columns that a row lacks."""
    values: dict[str, Values] = {}
    absent: list[str] = []
    for column in table.used:
        try:
            values[column.name] = [row[column.name] for row in rows]
        except KeyError:
            absent.append(column.name)
    if absent:
        first = next(k for k, row in enumerate(rows) if not row.keys() >= set(absent))
        raise absent_columns(absent, f" (first in row {first})" if len(rows) > 1 else "")
    return values


def _of_lists(rows: list[list[Any]], table: ServedTable) -> dict[str, Values]:
    names = [column.name for column in table.columns]
    wrong = next((k for k, row in enumerate(rows) if len(row) != len(names)), None)
    if wrong is not None:
        raise bad_request(
            f"Row {wrong} must have {pluralize(len(names), 'value')}, of {abbreviate_list(names)}, "
            f"got {len(rows[wrong])}; a row may be an object by name instead."
        )
    return {name: [row[j] for row in rows] for j, name in enumerate(names)}


def rows_of_csv(body: bytes, table: ServedTable, max_rows: int) -> CodedRows:
    """Return the rows of a CSV body.

    The first line names the columns, in any order; it may be left out if all are numbers.
    """
    records = filter(itemgetter(1), read_records(decode_csv(body), "values"))
    first: tuple[int, list[str]] = next(records, (0, []))
    header = _names_of_columns(first[1], table)
    names = header or [column.name for column in table.columns]
    lines, rows = _rows_of_width(records if header else chain([first], records), len(names))
    check_count(len(rows), max_rows)
    if not rows:
        raise bad_request("The CSV must have at least one row of values, got only a header.")
    values: dict[str, Values] = {}
    for column in table.used:
        j = names.index(column.name)
        values[column.name] = read_cells(column, [row[j] for row in rows])
    return code_values(table, values, lambda k: f"line {lines[k]}", _ignored(names, table))


def _names_of_columns(cells: list[str], table: ServedTable) -> list[str] | None:
    """Return the names in a first line; None if it is a row of numbers instead."""
    known = {column.name for column in table.columns}
    names = [cell if cell in known else cell.strip() for cell in cells]
    expected = [column.name for column in table.used]
    absent = [name for name in expected if name not in names]
    if absent and table.is_numeric and len(names) == len(expected) and all(map(_is_number, names)):
        return None
    if len(absent) == len(expected):
        raise bad_request(
            f"The first line of the CSV must name the columns, {abbreviate_list(expected)}, got "
            f"{abbreviate_list(names) if names else 'none'}."
        )
    if absent:
        raise absent_columns(absent)
    twice = next((name for name in expected if names.count(name) > 1), None)
    if twice is not None:
        raise bad_request(f"The CSV has two columns {abbreviate(twice)}; send each column once.")
    return names


def _rows_of_width(
    records: Iterable[tuple[int, list[str]]], width: int
) -> tuple[list[int], list[list[str]]]:
    """Return the numbers of the lines and their cells."""
    lines: list[int] = []
    rows: list[list[str]] = []
    for number, cells in records:
        if len(cells) != width:
            raise bad_request(
                f"Line {number} of the CSV must have {pluralize(width, 'cell')}, as the first line "
                f"has, got {len(cells)}."
            )
        lines.append(number)
        rows.append(cells)
    return lines, rows


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return cell in MISSING_TEXT
    return True


def rows_of_tensors(
    tensors: Mapping[str, Tensor], model: ServedModel, table: ServedTable, max_rows: int
) -> CodedRows:
    """Return the rows of one tensor for each column."""
    names = [column.name for column in table.columns]
    if set(tensors) == {INPUT} and INPUT not in names:
        tensors = _columns_of(tensors[INPUT], model, table)
    absent = [column.name for column in table.used if column.name not in tensors]
    if absent:
        raise absent_columns(absent)
    lengths = {column.name: _length(column.name, tensors[column.name]) for column in table.used}
    shortest, longest = (end(lengths, key=lambda name: lengths[name]) for end in (min, max))
    check_count(lengths[longest], max_rows)
    if lengths[shortest] != lengths[longest]:
        raise bad_request(
            f"All inputs must have the same number of rows, got {lengths[shortest]:,} of "
            f"{abbreviate(shortest)} and {lengths[longest]:,} of {abbreviate(longest)}."
        )
    if not lengths[longest]:
        raise bad_request("A request must have at least one row, got none.")
    values: dict[str, Values] = {}
    for column in table.used:
        tensor = tensors[column.name]
        found = tensor.values
        if tensor.is_text and "" not in column.levels:
            found = [None if text == "" else text for text in found]
        values[column.name] = found
    return code_values(table, values, _row, _ignored(tensors, table))


def _columns_of(tensor: Tensor, model: ServedModel, table: ServedTable) -> dict[str, Tensor]:
    """Return the columns of one tensor of all numbers."""
    names = [column.name for column in table.columns]
    if not table.is_numeric or tensor.is_text:
        used = [column.name for column in table.used]
        raise bad_request(
            f"The model {model.name!r} takes one input for each column: {abbreviate_list(used)}; "
            f"got {INPUT!r}."
        )
    if len(tensor.shape) != 2 or tensor.shape[1] != len(names):
        raise bad_request(
            f"The rows for the model {model.name!r} must have shape [n, {len(names)}], got "
            f"{tensor.shape}; correct the number of features."
        )
    columns = np.asarray(tensor.values).reshape(tensor.shape).T
    return {
        name: Tensor([len(column)], column, is_text=False)
        for name, column in zip(names, columns, strict=True)
    }


def _length(name: str, tensor: Tensor) -> int:
    if len(tensor.shape) != 1 and tensor.shape[1:] != [1]:
        raise bad_request(
            f"The shape of the input {abbreviate(name)} must be [n] or [n, 1], one value per row, "
            f"got {tensor.shape}."
        )
    return tensor.shape[0]


def _row(k: int) -> str:
    return f"row {k}"
