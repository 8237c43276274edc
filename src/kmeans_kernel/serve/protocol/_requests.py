"""Parsing of request bodies into rows, and writing of response bodies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.serve._models import INPUT, LABEL, PROBABILITIES, VERSION, ServedModel
from kmeans_kernel.serve._tables import ServedTable
from kmeans_kernel.serve.protocol._column_tensors import read_column_tensors
from kmeans_kernel.serve.protocol._csv import read_csv
from kmeans_kernel.serve.protocol._table_rows import rows_of_csv, rows_of_json, rows_of_tensors
from kmeans_kernel.serve.protocol._tensors import (
    OutputTensor,
    read_json,
    read_tensors,
    split_body,
    to_number_array,
    write_tensors,
)
from kmeans_kernel.serve.protocol._values import CodedRows, ignored_columns
from kmeans_kernel.serve.transport._errors import (
    RequestError,
    abbreviate,
    abbreviate_list,
    bad_request,
    pluralize,
)
from kmeans_kernel.serve.transport._limits import Limits, check_count
from kmeans_kernel.utils.validation import check_finite

Rows = npt.NDArray[Any]

# JSON lists and objects that a request may have in addition to its rows, and that a row may have in
# addition to the lines of an image. An empty list takes 3 bytes of text and over 50 in memory.
_EXTRA_LISTS, _EXTRA_LISTS_PER_ROW = 10_000, 2

# Commas that a row of named columns may have for each column, in text and of columns to be ignored,
# and those that a row of few columns may have.
_COMMAS_PER_COLUMN, _EXTRA_COMMAS_PER_ROW = 2, 100

_CSV_ADVICE = 'For CSV: curl -H "Content-Type: text/csv" --data-binary @rows.csv …/predict'


@dataclass(frozen=True)
class InferenceRequest:
    """A parsed inference request of the protocol.

    Attributes
    ----------
    rows : (n, n_features) finite numbers; for a table (n, width), NaN for missing values
    request_id : the client's id of the request, None if it has none
    outputs : names of the requested output tensors, and whether each is sent in binary
    notes : what the client should know of the rows
    """

    rows: Rows
    request_id: str | None
    outputs: tuple[tuple[str, bool], ...]
    notes: tuple[str, ...] = ()


def read_inference(
    body: bytes, header_length: str | None, model: ServedModel, limits: Limits
) -> InferenceRequest:
    """Parse the body of an inference request.

    Parameters
    ----------
    header_length : the header Inference-Header-Content-Length; None for a body of JSON only
    """
    text, binary = split_body(body, header_length)
    if len(text) > limits.text.max_bytes:
        raise limits.text.too_large(f"has {len(text):,}")
    _check_text(text, model, limits)
    content = read_json(text)
    if not isinstance(content, dict):
        raise bad_request(
            f'The body must be a JSON object with "inputs", got {abbreviate(content)}.'
        )
    request_id = content.get("id")
    if request_id is not None and not isinstance(request_id, str):
        raise bad_request(f'The "id" of a request must be a string, got {abbreviate(request_id)}.')
    outputs, described = _requested_outputs(content, model), content.get("inputs")
    if model.table is None:
        rows = _rows_of(read_tensors(described, binary), model, limits.rows)
        return InferenceRequest(rows, request_id, outputs)
    tensors = read_column_tensors(described, binary, limits.text)
    coded = rows_of_tensors(tensors, model, model.table, limits.rows)
    return InferenceRequest(coded.rows, request_id, outputs, coded.notes)


def _check_text(text: bytes, model: ServedModel, limits: Limits) -> None:
    """Raise if text has more lists or commas than the allowed rows can have, before it is parsed.

    Parsed JSON of many short lists can take hundreds of times the memory of its text.
    """
    if len(text) <= _EXTRA_LISTS:
        return
    names = model.feature_names or ()
    height = 0 if model.image_shape is None else model.image_shape[0] or model.n_features
    per_row = _EXTRA_LISTS_PER_ROW + height
    most_lists = _EXTRA_LISTS + limits.rows * per_row
    commas_per_row = model.n_features + sum(name.count(",") for name in names)
    if model.feature_names is not None:  # a table has them too
        commas_per_row = _COMMAS_PER_COLUMN * commas_per_row + _EXTRA_COMMAS_PER_ROW
    most_commas = most_lists + limits.rows * commas_per_row
    lists, commas = text.count(b"[") + text.count(b"{"), text.count(b",")
    if lists > most_lists or commas > most_commas:
        raise RequestError(
            413,
            f"A body of at most {pluralize(limits.rows, 'row')} may have {most_lists:,} lists and "
            f"objects and {most_commas:,} commas, got {lists:,} and {commas:,}; send fewer rows "
            "per request, or binary tensors.",
        )


def _requested_outputs(content: dict[str, Any], model: ServedModel) -> tuple[tuple[str, bool], ...]:
    binary = _parameter(content, "binary_data_output") is True
    asked = content.get("outputs")
    if asked is None or asked == []:
        return ((LABEL, binary), (PROBABILITIES, binary))
    if not isinstance(asked, list):
        raise bad_request(f'The "outputs" of a request must be a list, got {abbreviate(asked)}.')
    wanted: dict[str, bool] = {}
    for one in asked:
        name = one.get("name") if isinstance(one, dict) else None
        if name not in (LABEL, PROBABILITIES):
            raise bad_request(
                f"The model {model.name!r} has the outputs {LABEL!r} and {PROBABILITIES!r}, got "
                f"{abbreviate(name)}; request one or both of these."
            )
        if name in wanted:
            raise bad_request(f"The output {name!r} was requested twice; request each output once.")
        own = _parameter(one, "binary_data")
        wanted[name] = binary if own is None else own is True
    return tuple(wanted.items())


def _parameter(owner: dict[str, Any], name: str) -> Any:
    parameters = owner.get("parameters")
    return parameters.get(name) if isinstance(parameters, dict) else None


def _rows_of(tensors: dict[str, Rows], model: ServedModel, max_rows: int) -> Rows:
    """Return the rows of one tensor with all features, or of one tensor per feature."""
    names = model.feature_names
    if names is not None and (len(tensors) > 1 or set(tensors) == set(names)):
        return validate_rows(_stack_columns(tensors, names), model, max_rows)
    if set(tensors) != {INPUT}:
        also = "" if names is None else f", or one input for each feature: {abbreviate_list(names)}"
        raise bad_request(
            f"The model {model.name!r} takes one input {INPUT!r}{also}; got "
            f"{abbreviate_list(tensors)}."
        )
    return validate_rows(tensors[INPUT], model, max_rows)


def _stack_columns(tensors: dict[str, Rows], names: Sequence[str]) -> Rows:
    """Stack one tensor per feature into rows, in the feature order of the model."""
    missing = [name for name in names if name not in tensors]
    strange = [name for name in tensors if name not in names]
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        raise bad_request(
            f"Each feature must have an input, and {abbreviate_list(missing)} {verb} missing; send "
            "all features."
        )
    if strange:
        raise bad_request(
            f"The inputs must be features of the model, got {abbreviate_list(strange)}; send no "
            "other inputs."
        )
    columns = []
    for name in names:
        column = tensors[name]
        if column.ndim != 1 and column.shape[1:] != (1,):
            raise bad_request(
                f"The shape of the input {name!r} must be [n] or [n, 1], one number per row, got "
                f"{list(column.shape)}."
            )
        columns.append(column.reshape(-1))
    lengths = {name: len(column) for name, column in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        ordered = sorted(lengths, key=lambda name: lengths[name])
        shortest, longest = ordered[0], ordered[-1]
        raise bad_request(
            f"All inputs must have the same number of rows, got {lengths[shortest]:,} of "
            f"{shortest!r} and {lengths[longest]:,} of {longest!r}."
        )
    return np.stack(columns, axis=1)


def validate_rows(X: Rows, model: ServedModel, max_rows: int) -> Rows:
    """Return finite rows (n, n_features), images flattened; raise if they are invalid."""
    if X.ndim:
        check_count(len(X), max_rows)
    if not _has_valid_shape(X, model):
        raise bad_request(
            f"The rows for the model {model.name!r} must have shape {_expected_shapes(model)}, got "
            f"{list(X.shape)}; correct the number of features."
        )
    if not len(X):
        raise bad_request("A request must have at least one row, got none.")
    rows = X.reshape(len(X), model.n_features)
    try:
        check_finite(f"the model {model.name!r}", rows, model.feature_names)
    except ValueError as error:
        raise bad_request(str(error)) from None
    return rows


def _has_valid_shape(X: Rows, model: ServedModel) -> bool:
    if X.ndim == 2:
        return bool(X.shape[1] == model.n_features)
    if X.ndim != 3 or model.image_shape is None:
        return False
    if None in model.image_shape:
        return bool(X.shape[1] * X.shape[2] == model.n_features)
    return bool(X.shape[1:] == model.image_shape)


def _expected_shapes(model: ServedModel) -> str:
    rows = f"[n, {model.n_features}]"
    if model.image_shape is None:
        return rows
    height, width = (side or "?" for side in model.image_shape)
    return f"{rows} or [n, {height}, {width}]"


def write_inference(
    request: InferenceRequest, model: ServedModel, probabilities: Array
) -> tuple[bytes, int | None]:
    """Return the body of an inference response, and the length of its JSON if binary follows."""
    head: dict[str, Any] = {"model_name": model.name, "model_version": VERSION}
    if request.request_id is not None:
        head["id"] = request.request_id
    if request.notes:  # a parameter of the protocol is one string
        head["parameters"] = {"notes": "; ".join(request.notes)}
    outputs = []
    for name, binary in request.outputs:
        if name == PROBABILITIES:
            outputs.append(
                OutputTensor(name, "FP64", probabilities.astype("<f8", copy=False), binary)
            )
        else:
            labels = model.labels_of(probabilities)
            values = labels.tolist() if model.datatype == "BYTES" else labels
            outputs.append(OutputTensor(name, model.datatype, values, binary))
    return write_tensors(head, outputs)


def read_rows(body: bytes, content_type: str, model: ServedModel, limits: Limits) -> CodedRows:
    """Parse the rows of a /predict request: CSV by its Content-Type, else JSON.

    Any other Content-Type is taken as JSON, because `curl -d` sends that of a form.
    """
    _check_text(body, model, limits)
    if _is_csv(body, content_type, limits):
        read = read_csv(body, model)
        return CodedRows(validate_rows(read.rows, model, limits.rows), read.notes)
    notes: tuple[str, ...] = ()
    rows = _json_rows(body, limits, '{"rows": [[…], …]}')
    if isinstance(rows[0], dict):
        rows, notes = _from_records(rows, model)
    elif not isinstance(rows[0], list):
        raise bad_request(
            f"The rows must be lists of numbers, got {abbreviate(rows[0])} for the first; write "
            "[[…]] for one row."
        )
    return CodedRows(validate_rows(to_number_array(rows, "The rows"), model, limits.rows), notes)


def read_table_rows(
    body: bytes, content_type: str, model: ServedModel, table: ServedTable, limits: Limits
) -> CodedRows:
    """Parse the rows of a /predict request for a table, as `read_rows` does for numbers."""
    _check_text(body, model, limits)
    if _is_csv(body, content_type, limits):
        return rows_of_csv(body, table, limits.rows)
    rows = _json_rows(body, limits, '{"rows": [{"name": value, …}, …]}')
    return rows_of_json(rows, model, table)


def _is_csv(body: bytes, content_type: str, limits: Limits) -> bool:
    """Return whether a body is CSV; raise if it has too many lines."""
    if content_type.split(";")[0].strip().lower() not in ("text/csv", "application/csv"):
        return False
    n_lines = max(body.count(b"\n"), body.count(b"\r"))
    if n_lines > limits.rows + _EXTRA_LISTS:  # before parsing, with a tolerance for empty lines
        check_count(n_lines, limits.rows)
    return True


def _json_rows(body: bytes, limits: Limits, form: str) -> list[Any]:
    """Return the list of rows of a JSON body, at least one."""
    content = read_json(body, _CSV_ADVICE)
    rows = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not rows:
        raise bad_request(f"The body must be {form} or a list of rows, got {abbreviate(content)}.")
    check_count(len(rows), limits.rows)
    return rows


def _from_records(
    records: list[Any], model: ServedModel
) -> tuple[list[list[Any]], tuple[str, ...]]:
    """Return rows given as objects as lists, in the feature order of the model, and the notes."""
    names = model.feature_names
    if names is None:
        raise bad_request(
            f"The model {model.name!r} was fitted without feature names; send each row as a list "
            f"of {pluralize(model.n_features, 'number')}."
        )
    rows = []
    for k, record in enumerate(records):
        if not isinstance(record, dict):
            raise bad_request(
                f"Row {k} must be an object, as the first row is, got {abbreviate(record)}."
            )
        try:
            rows.append([record[name] for name in names])
        except KeyError:
            absent = abbreviate_list([name for name in names if name not in record])
            raise bad_request(
                f"Each row must have the features {abbreviate_list(names)}, and row {k} lacks "
                f"{absent}."
            ) from None
    others = (name for record in records if len(record) > len(names) for name in record)
    return rows, ignored_columns(others, names)


def write_rows(model: ServedModel, probabilities: Array, notes: Sequence[str] = ()) -> bytes:
    """Return the body of a /predict response, with the notes on the rows, if any or of a table."""
    texts = model.label_texts
    content = {
        "model": model.name,
        "labels": model.labels_of(probabilities).tolist(),
        "probabilities": [dict(zip(texts, row, strict=True)) for row in probabilities.tolist()],
    }
    if notes or model.table is not None:
        content["notes"] = list(notes)
    return orjson.dumps(content) + b"\n"
