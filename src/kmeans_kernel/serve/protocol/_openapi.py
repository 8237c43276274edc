"""OpenAPI descriptions of the paths: parameters, request bodies, errors, and curl examples."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from kmeans_kernel.serve._models import INPUT, LABEL, ServedModel
from kmeans_kernel.serve._tables import ServedTable, datatype_of, words_of

# Placeholder for the server's address in the examples; the pages of a server replace it.
BASE_URL = "http://localhost:8000"

# The examples write rows of more features with a shell loop.
_MAX_WRITTEN_FEATURES = 12

_ERROR_RESPONSES = {
    "400": "The request is invalid; the error names the problem.",
    "401": "The token is missing or wrong.",
    "404": "The model does not exist.",
    "408": "The body did not arrive in time.",
    "413": "The body has too many bytes or rows.",
    "503": "The server is overloaded or stopping; retry later.",
    "504": "The response was not ready in time.",
}

_PARAMETERS = {"name": "Name of the model.", "version": "Version of the model, always 1."}


def example_model(models: Sequence[ServedModel], *, token: bool) -> ServedModel:
    """Return the model that the examples use.

    The documentation needs no token, so a server with a token must not reveal its models there.
    """
    if not token:
        return models[0]
    return replace(
        models[0], name="NAME", n_features=3, feature_names=None, image_shape=None, table=None
    )


def describe_operation(
    path: str, method: str, model: ServedModel, *, token: bool
) -> dict[str, Any]:
    """Return the OpenAPI operation of a path without its summary; the examples use the model."""
    operation: dict[str, Any] = {
        "parameters": [
            {
                "name": name,
                "in": "path",
                "required": True,
                "description": _PARAMETERS[name],
                "schema": {"type": "string"},
            }
            for name in re.findall(r"{(\w+)}", path)
        ],
        "x-codeSamples": [
            {"lang": "curl", "source": source}
            for source in _samples(path, method, model, token=token)
        ],
    }
    content = _request_body(path, model)
    if content is not None:
        operation["requestBody"] = {"required": True, "content": content}
        operation["responses"] = {
            status: {"description": why} for status, why in _ERROR_RESPONSES.items()
        }
    return operation


def _samples(path: str, method: str, model: ServedModel, *, token: bool) -> list[str]:
    line = curl_command(path, method, model, token=token)
    if not path.startswith("/predict"):
        return [line]
    csv = '-H "Content-Type: text/csv" --data-binary @rows.csv'
    return [line, " ".join([*_curl_prefix(token=token), csv, _url(path, model)])]


def _curl_prefix(*, token: bool) -> list[str]:
    return ["curl", '-H "Authorization: Bearer $KMEANS_KERNEL_TOKEN"'] if token else ["curl"]


def _url(path: str, model: ServedModel) -> str:
    return BASE_URL + path.replace("{name}", quote(model.name)).replace("{version}", "1")


def curl_command(path: str, method: str, model: ServedModel, *, token: bool) -> str:
    """Return an example request as a shell command."""
    words = _curl_prefix(token=token)
    if path.endswith("/infer"):
        words.append(f"-d '{_inference_example(model)}'")
    elif path.startswith("/predict"):
        words.append(f"-d '{_rows_example(model)}'")
    elif method == "POST":
        words.append("-X POST")
    return " ".join([*words, _url(path, model)])


def _zeros(n: int) -> str:
    if n <= _MAX_WRITTEN_FEATURES:
        return ", ".join("0" * n)
    return f"'$(printf '0,%.0s' $(seq {n - 1}))'0"


def _quoted(content: Any) -> str:
    """Return JSON for the inside of single quotes of a shell."""
    return json.dumps(content, ensure_ascii=False).replace("'", "'\\''")


def _rows_example(model: ServedModel) -> str:
    if model.table is not None:
        return _quoted({"rows": [model.table.example]})
    names = model.feature_names
    if names is not None and len(names) <= _MAX_WRITTEN_FEATURES:
        return _quoted({"rows": [dict.fromkeys(names, 0)]})
    return f'{{"rows": [[{_zeros(model.n_features)}]]}}'


def _inference_example(model: ServedModel) -> str:
    if model.table is not None and not model.table.is_numeric:
        return _quoted({"inputs": [_tensor_example(*one) for one in _typical(model.table)]})
    n = model.n_features
    return (
        f'{{"inputs": [{{"name": "{INPUT}", "shape": [1, {n}], "datatype": '
        f'"{model.input_datatype}", "data": [{_zeros(n)}]}}]}}'
    )


def _typical(table: ServedTable) -> list[tuple[str, str, Any]]:
    """Return name, datatype and value of each column of the typical row."""
    return [(one.name, datatype_of(one), table.example[one.name]) for one in table.used]


def _tensor_example(name: str, datatype: str, value: Any) -> dict[str, Any]:
    return {"name": name, "shape": [1], "datatype": datatype, "data": [value]}


def _row_schema(model: ServedModel, table: ServedTable) -> dict[str, Any]:
    """Return the schema of a row by name; other columns are allowed, and ignored."""
    types = {"BOOL": "boolean", "FP64": "number", "BYTES": "string"}
    return {
        "type": "object",
        "description": f"A row of the model {model.name!r}.",
        "properties": {
            name: {"type": [types[datatype], "null"], "description": words_of(column)}
            for column, (name, datatype, _) in zip(table.used, _typical(table), strict=True)
        },
        "example": table.example,
    }


def _request_body(path: str, model: ServedModel) -> dict[str, Any] | None:
    """Return the request body's media types and schemas; None for a path without a body."""
    if path.endswith("/infer"):
        tensor = {
            "type": "object",
            "required": ["name", "shape", "datatype"],
            "properties": {
                "name": {"type": "string", "example": INPUT},
                "shape": {"type": "array", "items": {"type": "integer"}},
                "datatype": {"type": "string", "example": model.input_datatype},
                "data": {"type": "array", "items": {}},
            },
        }
        output = {"type": "object", "properties": {"name": {"type": "string", "example": LABEL}}}
        properties = {
            "id": {"type": "string"},
            "inputs": {"type": "array", "items": tensor},
            "outputs": {"type": "array", "items": output},
        }
        schema = {"type": "object", "required": ["inputs"], "properties": properties}
        binary = {"schema": {"type": "string", "format": "binary"}}
        return {"application/json": {"schema": schema}, "application/octet-stream": binary}
    if path.startswith("/predict"):
        row = {} if model.table is None else _row_schema(model, model.table)
        rows = {"type": "array", "items": row}
        schema = {"type": "object", "required": ["rows"], "properties": {"rows": rows}}
        return {
            "application/json": {"schema": schema},
            "text/csv": {"schema": {"type": "string"}},
        }
    return None
