"""Requests for predictions, from body to answer: limits, threads and compression around them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TypeAlias

from starlette.requests import Request
from starlette.responses import Response

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.serve._gate import Note
from kmeans_kernel.serve._limits import MEBIBYTE, Size, read_body
from kmeans_kernel.serve._models import ServedModel
from kmeans_kernel.serve._packed import accepted_encoding, is_packed, pack, unpack
from kmeans_kernel.serve._refusals import Refusal, bad, stopping
from kmeans_kernel.serve._requests import (
    Rows,
    read_inference,
    read_rows,
    write_inference,
    write_rows,
)
from kmeans_kernel.serve._service import Service

# How an answer is written once its probabilities are known: its body, and the length of its JSON
# if there is more behind it.
Write: TypeAlias = Callable[[Array], tuple[bytes, int | None]]
Read: TypeAlias = Callable[[bytes], tuple[Rows, Write]]

# Larger bodies are read in a thread, so that others need not wait for it. To copy numbers takes
# less time than to make them of text.
_MUCH_TEXT, _MUCH_BINARY = MEBIBYTE // 4, 4 * MEBIBYTE

# Probabilities of so many rows are written in a thread.
_MANY_ROWS = 2000

# Less is not worth packing.
_SMALL_ANSWER = 1024


async def infer(service: Service, request: Request, model: ServedModel) -> Response:
    """Answer a request of the protocol."""
    length = request.headers.get("inference-header-content-length")
    limits = service.limits

    def read(body: bytes) -> tuple[Rows, Write]:
        asked = read_inference(body, length, model, limits)
        return asked.rows, lambda probabilities: write_inference(asked, model, probabilities)

    if length is None:
        return await _answer(service, request, model, read, limits.text, _MUCH_TEXT)
    return await _answer(service, request, model, read, limits.body, _MUCH_BINARY)


async def predict(service: Service, request: Request, model: ServedModel) -> Response:
    """Answer a plain request."""
    content_type = request.headers.get("content-type", "")
    limits = service.limits

    def read(body: bytes) -> tuple[Rows, Write]:
        rows = read_rows(body, content_type, model, limits)
        return rows, lambda probabilities: (write_rows(model, probabilities), None)

    return await _answer(service, request, model, read, limits.text, _MUCH_TEXT)


async def _answer(
    service: Service, request: Request, model: ServedModel, read: Read, size: Size, much: int
) -> Response:
    headers, limits, waits = request.headers, service.limits, service.answers
    service.check_room()
    with service.held.one() as grown_to:
        body = await read_body(
            request.receive, headers, size, limits.body_seconds, service.bodies, grown_to
        )
        encoding = headers.get("content-encoding", "")

        def work() -> tuple[Rows, Write]:
            return _unpack_and_read(body, encoding, size, read, grown_to)

        with service.room():
            try:
                async with asyncio.timeout(limits.answer_seconds) as timeout:
                    with waits.one(timeout):
                        aside = is_packed(encoding) or len(body) > much
                        found = await service.pool.call(work) if aside else work()
                        return await _predicted(service, request, model, *found)
            except TimeoutError:
                if waits.shortened:
                    raise stopping() from None
                raise Refusal(
                    504,
                    f"An answer must be found within {limits.answer_seconds:g} s, and was not; "
                    "send fewer rows at once, or raise the limit with --answer-seconds.",
                ) from None


def _unpack_and_read(
    body: bytes, encoding: str, size: Size, read: Read, grown_to: Callable[[int], None]
) -> tuple[Rows, Write]:
    """Return what a body asks for, and count what it takes on the way."""
    whole = unpack(body, encoding, size, lambda so_far: grown_to(len(body) + so_far))
    rows, write = read(whole)
    grown_to(len(body) + (0 if whole is body else len(whole)) + rows.nbytes)
    return rows, write


async def _predicted(
    service: Service, request: Request, model: ServedModel, rows: Rows, write: Write
) -> Response:
    note: Note = request.scope["note"]
    note.rows = len(rows)
    probabilities = await _probabilities(service, model, rows)

    def respond() -> Response:
        return _response(write(probabilities), request.headers)

    return await service.pool.call(respond) if len(rows) > _MANY_ROWS else respond()


async def _probabilities(service: Service, model: ServedModel, rows: Rows) -> Array:
    try:
        return await service.batches[model.name].predict(rows)
    except ValueError as error:  # what the model itself finds wrong with rows
        raise bad(" ".join(str(error).split())) from error


def _response(written: tuple[bytes, int | None], asked: Mapping[str, str]) -> Response:
    content, json_length = written
    headers = {"content-type": "application/json"}
    if json_length is not None:
        headers["content-type"] = "application/octet-stream"
        headers["inference-header-content-length"] = str(json_length)
    encoding = accepted_encoding(asked.get("accept-encoding", ""))
    if encoding is not None and len(content) >= _SMALL_ANSWER:
        headers["content-encoding"] = encoding
        headers["vary"] = "accept-encoding"
        content = pack(content, encoding)
    return Response(content, headers=headers)
