"""Requests for predictions, from body to answer: limits, threads and compression around them."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from kmeans_kernel._blocks import Array
from kmeans_kernel.serve._gate import Note
from kmeans_kernel.serve._limits import MEBIBYTE, read_body, unpack
from kmeans_kernel.serve._models import ServedModel
from kmeans_kernel.serve._refusals import Refusal, bad
from kmeans_kernel.serve._requests import (
    Rows,
    read_inference,
    read_rows,
    write_inference,
    write_rows,
)
from kmeans_kernel.serve._service import Service

T = TypeVar("T")

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

_PACKED_LEVEL = 1


async def infer(service: Service, request: Request, model: ServedModel) -> Response:
    """Answer a request of the protocol."""
    length = request.headers.get("inference-header-content-length")

    def read(body: bytes) -> tuple[Rows, Write]:
        asked = read_inference(body, length, model, service.limits.rows)
        return asked.rows, lambda probabilities: write_inference(asked, model, probabilities)

    return await _answer(
        service, request, model, read, _MUCH_TEXT if length is None else _MUCH_BINARY
    )


async def predict(service: Service, request: Request, model: ServedModel) -> Response:
    """Answer a plain request."""
    content_type = request.headers.get("content-type", "")

    def read(body: bytes) -> tuple[Rows, Write]:
        rows = read_rows(body, content_type, model, service.limits.rows)
        return rows, lambda probabilities: (write_rows(model, probabilities), None)

    return await _answer(service, request, model, read, _MUCH_TEXT)


async def _answer(
    service: Service, request: Request, model: ServedModel, read: Read, much: int
) -> Response:
    note: Note = request.scope["note"]
    headers, limits = request.headers, service.limits
    service.check_room()
    with service.held.one() as grown_to:
        body = await read_body(request.receive, headers, limits, grown_to)
        packed = headers.get("content-encoding", "")

        def unpack_and_read() -> tuple[Rows, Write]:
            return read(unpack(body, packed, limits))

        with service.room():
            try:
                async with asyncio.timeout(limits.answer_seconds):
                    large = len(body) > (_MUCH_TEXT if packed else much)
                    rows, write = await _aside(unpack_and_read, wanted=large)
                    note.rows = len(rows)
                    probabilities = await _probabilities(service, model, rows)
                    return await _aside(
                        lambda: _response(write(probabilities), headers),
                        wanted=len(rows) > _MANY_ROWS,
                    )
            except TimeoutError:
                raise Refusal(
                    504,
                    f"An answer must be found within {limits.answer_seconds:g} s, and was not; "
                    "send fewer rows at once, or raise the limit with --answer-seconds.",
                ) from None


async def _probabilities(service: Service, model: ServedModel, rows: Rows) -> Array:
    try:
        return await service.batches[model.name].predict(rows)
    except ValueError as error:  # what the model itself finds wrong with rows
        raise bad(" ".join(str(error).split())) from error


async def _aside(function: Callable[[], T], *, wanted: bool) -> T:
    """Call a function, in a thread where that is wanted."""
    return await asyncio.to_thread(function) if wanted else function()


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


def accepted_encoding(asked: str) -> str | None:
    """Return gzip or deflate if a client takes it, the first that it names; None for neither."""
    for one in asked.lower().split(","):
        name, _, quality = (part.strip() for part in one.partition(";"))
        refused = quality.replace(" ", "").rstrip("0") in ("q=", "q=0.")
        if name in ("gzip", "deflate") and not refused:
            return name
    return None


def pack(content: bytes, encoding: str) -> bytes:
    """Return a body compressed."""
    if encoding == "gzip":
        return gzip.compress(content, _PACKED_LEVEL, mtime=0)
    return zlib.compress(content, _PACKED_LEVEL)
