"""What OpenAPI tells of each path: a summary, parameters, a body, and a line for curl."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from kmeans_kernel.serve._models import INPUT, LABEL, ServedModel

# Stands for the address of the server in the examples.
BASE = "http://localhost:8000"

# A row of more features is written by a small program in the examples.
_SHORT = 12

_REFUSED = {
    "400": "The body is wrong, and the error says in what.",
    "401": "The token is missing or another.",
    "404": "There is no such model.",
    "408": "The body took too long to arrive.",
    "413": "The body or its rows are too many.",
    "503": "The server is busy or stopping; come again.",
    "504": "The answer took too long to find.",
}

_PARAMETERS = {"name": "The name of a model.", "version": "Its version, which is 1."}


def example(models: Sequence[ServedModel], *, token: bool) -> ServedModel:
    """Return the model that the examples speak to.

    Where a token is needed they are read without one, so they tell nothing of the models.
    """
    if not token:
        return models[0]
    return replace(models[0], name="NAME", n_features=3, feature_names=None, image_shape=None)


def extra(path: str, method: str, model: ServedModel, *, token: bool) -> dict[str, Any]:
    """Return what is told of a path beside its summary; the example speaks to this model."""
    told: dict[str, Any] = {
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
    content = _body(path, model)
    if content is not None:
        told["requestBody"] = {"required": True, "content": content}
        told["responses"] = {status: {"description": why} for status, why in _REFUSED.items()}
    return told


def _samples(path: str, method: str, model: ServedModel, *, token: bool) -> list[str]:
    line = curl(path, method, model, token=token)
    if not path.startswith("/predict"):
        return [line]
    csv = '-H "Content-Type: text/csv" --data-binary @rows.csv'
    return [line, " ".join([*_begin(token=token), csv, _address(path, model)])]


def _begin(*, token: bool) -> list[str]:
    return ["curl", '-H "Authorization: Bearer $KMEANS_KERNEL_TOKEN"'] if token else ["curl"]


def _address(path: str, model: ServedModel) -> str:
    return BASE + path.replace("{name}", quote(model.name)).replace("{version}", "1")


def curl(path: str, method: str, model: ServedModel, *, token: bool) -> str:
    """Return a line to be copied into a shell."""
    words = _begin(token=token)
    if path.endswith("/infer"):
        words.append(f"-d '{_inference(model)}'")
    elif path.startswith("/predict"):
        words.append(f"-d '{_rows(model)}'")
    elif method == "POST":
        words.append("-X POST")
    return " ".join([*words, _address(path, model)])


def _numbers(n: int) -> str:
    if n <= _SHORT:
        return ", ".join("0" * n)
    return f"'$(printf '0,%.0s' $(seq {n - 1}))'0"


def _rows(model: ServedModel) -> str:
    names = model.feature_names
    if names is not None and len(names) <= _SHORT:
        record = json.dumps(dict.fromkeys(names, 0), ensure_ascii=False)
        return f'{{"rows": [{record}]}}'.replace("'", "'\\''")
    return f'{{"rows": [[{_numbers(model.n_features)}]]}}'


def _inference(model: ServedModel) -> str:
    n = model.n_features
    return (
        f'{{"inputs": [{{"name": "{INPUT}", "shape": [1, {n}], "datatype": '
        f'"{model.input_datatype}", "data": [{_numbers(n)}]}}]}}'
    )


def _body(path: str, model: ServedModel) -> dict[str, Any] | None:
    """Return the schema of a body, None for a path that takes none."""
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
        rows = {"type": "array", "items": {}}
        schema = {"type": "object", "required": ["rows"], "properties": {"rows": rows}}
        return {
            "application/json": {"schema": schema},
            "text/csv": {"schema": {"type": "string"}},
        }
    return None
