"""Handlers of inference requests: read the body, parse, predict, respond, within the limits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.serve._models import ServedModel
from kmeans_kernel.serve._service import Service
from kmeans_kernel.serve.protocol._requests import (
    Rows,
    read_inference,
    read_rows,
    read_table_rows,
    write_inference,
    write_rows,
)
from kmeans_kernel.serve.transport._compression import (
    compress,
    decompress,
    is_compressed,
    negotiate_encoding,
)
from kmeans_kernel.serve.transport._errors import RequestError, bad_request, shutting_down
from kmeans_kernel.serve.transport._limits import MEBIBYTE, SizeLimit, read_body
from kmeans_kernel.serve.transport._middleware import RequestRecord

# A serialiser maps probabilities to the response body, and the length of its JSON if a binary
# section follows. A parser maps the request body to rows, and the serialiser of their response.
Serializer: TypeAlias = Callable[[Array], tuple[bytes, int | None]]
Parser: TypeAlias = Callable[[bytes], tuple[Rows, Serializer]]

# Larger bodies, in bytes, are parsed in a thread to keep the event loop responsive; for smaller
# ones a thread costs more than it saves. Binary tensors are only copied, so their bound is higher.
_THREAD_ABOVE_TEXT, _THREAD_ABOVE_BINARY = MEBIBYTE // 4, 4 * MEBIBYTE

# Responses of more rows are serialised in a thread, for the same reason.
_THREAD_ABOVE_ROWS = 2000

# Smaller responses, in bytes, fit into one TCP packet anyway and are not compressed.
_MIN_COMPRESSED_BYTES = 1024


async def handle_infer(service: Service, request: Request, model: ServedModel) -> Response:
    """Handle an inference request of the protocol."""
    length = request.headers.get("inference-header-content-length")
    limits = service.limits

    def parse(body: bytes) -> tuple[Rows, Serializer]:
        parsed = read_inference(body, length, model, limits)
        return parsed.rows, lambda probabilities: write_inference(parsed, model, probabilities)

    if length is None:
        return await _handle(service, request, model, parse, limits.text, _THREAD_ABOVE_TEXT)
    return await _handle(service, request, model, parse, limits.body, _THREAD_ABOVE_BINARY)


async def handle_predict(service: Service, request: Request, model: ServedModel) -> Response:
    """Handle a /predict request."""
    content_type = request.headers.get("content-type", "")
    limits = service.limits

    def parse(body: bytes) -> tuple[Rows, Serializer]:
        if model.table is None:
            coded = read_rows(body, content_type, model, limits)
        else:
            coded = read_table_rows(body, content_type, model, model.table, limits)
        return coded.rows, lambda probabilities: (
            write_rows(model, probabilities, coded.notes),
            None,
        )

    return await _handle(service, request, model, parse, limits.text, _THREAD_ABOVE_TEXT)


async def _handle(
    service: Service,
    request: Request,
    model: ServedModel,
    parse: Parser,
    size: SizeLimit,
    thread_above: int,
) -> Response:
    headers, limits, deadlines = request.headers, service.limits, service.response_deadlines
    # Checked before the body is read, but counted only after it: a slow client takes no place.
    service.check_capacity()
    with service.memory.reserve() as set_used_bytes:
        body = await read_body(
            request.receive,
            headers,
            size,
            limits.body_seconds,
            service.body_deadlines,
            set_used_bytes,
        )
        encoding = headers.get("content-encoding", "")

        def parse_body() -> tuple[Rows, Serializer]:
            return _decompress_and_parse(body, encoding, size, parse, set_used_bytes)

        with service.admit():
            try:
                async with asyncio.timeout(limits.answer_seconds) as timeout:
                    with deadlines.track(timeout):
                        in_thread = is_compressed(encoding) or len(body) > thread_above
                        parsed = await service.pool.call(parse_body) if in_thread else parse_body()
                        return await _predict_and_respond(service, request, model, *parsed)
            except TimeoutError:
                if deadlines.shortened:
                    raise shutting_down() from None
                raise RequestError(
                    504,
                    f"The response must be ready within {limits.answer_seconds:g} s, and was not; "
                    "send fewer rows per request, or raise the limit with --answer-seconds.",
                ) from None


def _decompress_and_parse(
    body: bytes,
    encoding: str,
    size: SizeLimit,
    parse: Parser,
    set_used_bytes: Callable[[int], None],
) -> tuple[Rows, Serializer]:
    """Decompress and parse a body, and charge both copies and the rows to the memory budget."""
    whole = decompress(body, encoding, size, lambda so_far: set_used_bytes(len(body) + so_far))
    rows, serialize = parse(whole)
    set_used_bytes(len(body) + (0 if whole is body else len(whole)) + rows.nbytes)
    return rows, serialize


async def _predict_and_respond(
    service: Service, request: Request, model: ServedModel, rows: Rows, serialize: Serializer
) -> Response:
    record: RequestRecord = request.scope["record"]
    record.rows = len(rows)
    probabilities = await _probabilities(service, model, rows)

    def respond() -> Response:
        return _response(serialize(probabilities), request.headers)

    return await service.pool.call(respond) if len(rows) > _THREAD_ABOVE_ROWS else respond()


async def _probabilities(service: Service, model: ServedModel, rows: Rows) -> Array:
    try:
        return await service.batchers[model.name].predict(rows)
    except ValueError as error:  # a step of the model rejects these rows
        raise bad_request(" ".join(str(error).split())) from error


def _response(body: tuple[bytes, int | None], request_headers: Mapping[str, str]) -> Response:
    content, json_length = body
    headers = {"content-type": "application/json"}
    if json_length is not None:
        headers["content-type"] = "application/octet-stream"
        headers["inference-header-content-length"] = str(json_length)
    encoding = negotiate_encoding(request_headers.get("accept-encoding", ""))
    if encoding is not None and len(content) >= _MIN_COMPRESSED_BYTES:
        headers["content-encoding"] = encoding
        headers["vary"] = "accept-encoding"
        content = compress(content, encoding)
    return Response(content, headers=headers)
