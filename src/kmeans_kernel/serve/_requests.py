"""What the bodies of requests mean: rows for a model, and how the answer is wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.serve._csv import read_csv
from kmeans_kernel.serve._limits import Limits
from kmeans_kernel.serve._models import INPUT, LABEL, PROBABILITIES, VERSION, ServedModel
from kmeans_kernel.serve._refusals import Refusal, bad, count, shown, some
from kmeans_kernel.serve._tensors import (
    Output,
    numbers,
    read_json,
    read_tensors,
    split,
    write_tensors,
)
from kmeans_kernel.utils.validation import check_finite

Rows = npt.NDArray[Any]

# A request may have so many lists and objects beside those of its rows, and for each row so many
# beside those of an image. More would take hundreds of times the memory of their text.
_LISTS, _LISTS_PER_ROW = 10_000, 2

_HOW_CSV = 'For CSV: curl -H "Content-Type: text/csv" --data-binary @rows.csv …/predict'


@dataclass(frozen=True)
class Inference:
    """A request of the protocol.

    Attributes
    ----------
    rows : (n, n_features) finite numbers
    identity : what the client calls it, None if nothing
    outputs : the names of what is wanted, and whether in binary
    """

    rows: Rows
    identity: str | None
    outputs: tuple[tuple[str, bool], ...]


def read_inference(
    body: bytes, header_length: str | None, model: ServedModel, limits: Limits
) -> Inference:
    """Return what a body of the protocol asks of a model."""
    text, binary = split(body, header_length)
    if len(text) > limits.text.most:
        raise limits.text.too_large(f"has {len(text):,}")
    _check_text(text, model, limits)
    content = read_json(text)
    if not isinstance(content, dict):
        raise bad(f'The body must be a JSON object with "inputs", got {shown(content)}.')
    identity = content.get("id")
    if identity is not None and not isinstance(identity, str):
        raise bad(f'The "id" of a request must be text, got {shown(identity)}.')
    outputs = _wanted(content, model)
    tensors = read_tensors(content.get("inputs"), binary)
    return Inference(_rows_of(tensors, model, limits.rows), identity, outputs)


def _check_text(text: bytes, model: ServedModel, limits: Limits) -> None:
    """Refuse text of more lists or numbers than its rows can need, before it is read."""
    if len(text) <= _LISTS:
        return
    names = model.feature_names or ()
    height = 0 if model.image_shape is None else model.image_shape[0] or model.n_features
    per_row = _LISTS_PER_ROW + height
    most_lists = _LISTS + limits.rows * per_row
    most_commas = most_lists + limits.rows * (
        model.n_features + sum(name.count(",") for name in names)
    )
    lists, commas = text.count(b"[") + text.count(b"{"), text.count(b",")
    if lists > most_lists or commas > most_commas:
        raise Refusal(
            413,
            f"Text for at most {count(limits.rows, 'row')} may have {most_lists:,} lists and "
            f"objects and {most_commas:,} commas, got {lists:,} and {commas:,}; send fewer rows at "
            "once, or binary tensors.",
        )


def _wanted(content: dict[str, Any], model: ServedModel) -> tuple[tuple[str, bool], ...]:
    binary = _parameter(content, "binary_data_output") is True
    asked = content.get("outputs")
    if asked is None or asked == []:
        return ((LABEL, binary), (PROBABILITIES, binary))
    if not isinstance(asked, list):
        raise bad(f'The "outputs" of a request must be a list, got {shown(asked)}.')
    wanted: dict[str, bool] = {}
    for one in asked:
        name = one.get("name") if isinstance(one, dict) else None
        if name not in (LABEL, PROBABILITIES):
            raise bad(
                f"The model {model.name!r} has the outputs {LABEL!r} and {PROBABILITIES!r}, got "
                f"{shown(name)}; ask for one of these."
            )
        if name in wanted:
            raise bad(f"The output {name!r} was asked for twice; ask for each output once.")
        own = _parameter(one, "binary_data")
        wanted[name] = binary if own is None else own is True
    return tuple(wanted.items())


def _parameter(owner: dict[str, Any], name: str) -> Any:
    parameters = owner.get("parameters")
    return parameters.get(name) if isinstance(parameters, dict) else None


def _rows_of(tensors: dict[str, Rows], model: ServedModel, most_rows: int) -> Rows:
    """Return the rows that tensors hold: all features in one, or each in its own."""
    names = model.feature_names
    if names is not None and (len(tensors) > 1 or set(tensors) == set(names)):
        return checked(_columns(tensors, names), model, most_rows)
    if set(tensors) != {INPUT}:
        also = "" if names is None else f", or one for each feature: {some(names)}"
        raise bad(f"The model {model.name!r} takes one input {INPUT!r}{also}; got {some(tensors)}.")
    return checked(tensors[INPUT], model, most_rows)


def _columns(tensors: dict[str, Rows], names: Sequence[str]) -> Rows:
    """Return one tensor of each feature as rows, in the order that the model has them."""
    missing = [name for name in names if name not in tensors]
    strange = [name for name in tensors if name not in names]
    if missing:
        lacking = f"{some(missing)} is" if len(missing) == 1 else f"{some(missing)} are"
        raise bad(f"Each feature must have its input, and {lacking} missing; send all of them.")
    if strange:
        raise bad(
            f"The inputs must be features of the model, got {some(strange)}; leave out others."
        )
    columns = []
    for name in names:
        column = tensors[name]
        if column.ndim != 1 and column.shape[1:] != (1,):
            raise bad(
                f"The shape of the input {name!r} must be [n] or [n, 1], for one number a row, got "
                f"{list(column.shape)}."
            )
        columns.append(column.reshape(-1))
    lengths = {name: len(column) for name, column in zip(names, columns, strict=True)}
    if len(set(lengths.values())) > 1:
        ordered = sorted(lengths, key=lambda name: lengths[name])
        shortest, longest = ordered[0], ordered[-1]
        raise bad(
            f"All inputs must have one number for each row, got {lengths[shortest]:,} of "
            f"{shortest!r} and {lengths[longest]:,} of {longest!r}."
        )
    return np.stack(columns, axis=1)


def checked(X: Rows, model: ServedModel, most_rows: int) -> Rows:
    """Return finite rows (n, n_features), images flattened, or say what is wrong with them."""
    if X.ndim:
        _check_count(len(X), most_rows)
    if not _suits(X, model):
        raise bad(
            f"The rows for the model {model.name!r} must be of shape {_shapes(model)}, got "
            f"{list(X.shape)}; see to the number of features."
        )
    if not len(X):
        raise bad("A request must have at least one row, got none.")
    rows = X.reshape(len(X), model.n_features)
    try:
        check_finite(f"the model {model.name!r}", rows, model.feature_names)
    except ValueError as error:
        raise bad(str(error)) from None
    return rows


def _check_count(n: int, most_rows: int) -> None:
    if n > most_rows:
        raise Refusal(
            413,
            f"A request may have at most {count(most_rows, 'row')}, got {n:,}; send them in "
            "several, or raise the limit with --max-rows.",
        )


def _suits(X: Rows, model: ServedModel) -> bool:
    if X.ndim == 2:
        return bool(X.shape[1] == model.n_features)
    if X.ndim != 3 or model.image_shape is None:
        return False
    if None in model.image_shape:
        return bool(X.shape[1] * X.shape[2] == model.n_features)
    return bool(X.shape[1:] == model.image_shape)


def _shapes(model: ServedModel) -> str:
    rows = f"[n, {model.n_features}]"
    if model.image_shape is None:
        return rows
    height, width = (side or "?" for side in model.image_shape)
    return f"{rows} or [n, {height}, {width}]"


def write_inference(
    asked: Inference, model: ServedModel, probabilities: Array
) -> tuple[bytes, int | None]:
    """Return the body that answers a request of the protocol, and the length of its JSON."""
    head: dict[str, Any] = {"model_name": model.name, "model_version": VERSION}
    if asked.identity is not None:
        head["id"] = asked.identity
    outputs = []
    for name, binary in asked.outputs:
        if name == PROBABILITIES:
            outputs.append(Output(name, "FP64", probabilities.astype("<f8", copy=False), binary))
        else:
            labels = model.labels_of(probabilities)
            values = labels.tolist() if model.datatype == "BYTES" else labels
            outputs.append(Output(name, model.datatype, values, binary))
    return write_tensors(head, outputs)


def read_rows(body: bytes, content_type: str, model: ServedModel, limits: Limits) -> Rows:
    """Return the rows of a plain request: CSV if it says so, else JSON, whatever it says."""
    _check_text(body, model, limits)
    kind = content_type.split(";")[0].strip().lower()
    if kind in ("text/csv", "application/csv"):
        n_lines = max(body.count(b"\n"), body.count(b"\r"))
        if n_lines > limits.rows + _LISTS:  # before they are read; some lines may be empty
            _check_count(n_lines, limits.rows)
        return checked(read_csv(body, model), model, limits.rows)
    content = read_json(body, _HOW_CSV)
    rows = content.get("rows") if isinstance(content, dict) else content
    if not isinstance(rows, list) or not rows:
        raise bad(f'The body must be {{"rows": [[…], …]}} or a list of rows, got {shown(content)}.')
    _check_count(len(rows), limits.rows)
    if isinstance(rows[0], dict):
        rows = _from_records(rows, model)
    elif not isinstance(rows[0], list):
        raise bad(
            f"The rows must be lists of numbers, got {shown(rows[0])} for the first; write [[…]] "
            "for one row."
        )
    return checked(numbers(rows, "The rows"), model, limits.rows)


def _from_records(records: list[Any], model: ServedModel) -> list[list[Any]]:
    """Return rows that name their features as lists in the model's order."""
    names = model.feature_names
    if names is None:
        raise bad(
            f"The model {model.name!r} does not know the names of its features; send each row as a "
            f"list of {count(model.n_features, 'number')}."
        )
    rows = []
    for k, record in enumerate(records):
        if not isinstance(record, dict) or len(record) != len(names):
            _refuse_record(k, record, names)
        try:
            rows.append([record[name] for name in names])
        except KeyError:
            _refuse_record(k, record, names)
    return rows


def _refuse_record(k: int, record: Any, names: Sequence[str]) -> None:
    if not isinstance(record, dict):
        raise bad(f"Row {k} must name its features as the first does, got {shown(record)}.")
    missing = [name for name in names if name not in record]
    strange = [name for name in record if name not in names]
    what = f"lacks {some(missing)}" if missing else f"has {some(strange)} beside them"
    raise bad(f"Each row must have the features {some(names)}, and row {k} {what}.")


def write_rows(model: ServedModel, probabilities: Array) -> bytes:
    """Return the body that answers a plain request."""
    texts = model.label_texts
    content = {
        "model": model.name,
        "labels": model.labels_of(probabilities).tolist(),
        "probabilities": [dict(zip(texts, row, strict=True)) for row in probabilities.tolist()],
    }
    return orjson.dumps(content) + b"\n"
