"""Errors that become HTTP responses, and the formatting of values in their messages."""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import Repr

# Every number of 18 digits fits into 64 bits; longer headers are refused before int() parses them.
_MAX_DIGITS = 18


class RequestError(Exception):
    """An HTTP error response.

    Parameters
    ----------
    status : HTTP status code
    message : the error message: name, expected value, received value, and how to fix the request
    headers : additional response headers
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = headers or {}


class ClientDisconnected(Exception):  # noqa: N818
    """The client disconnected before the whole request had arrived."""


def bad_request(message: str) -> RequestError:
    """Return the error for an invalid request (400)."""
    return RequestError(400, message)


def shutting_down() -> RequestError:
    """Return the error for a request that comes too late in a graceful shutdown (503)."""
    message = "The server is stopping; retry in a second, or send the request to another server."
    return RequestError(503, message, {"retry-after": "1", "connection": "close"})


def pluralize(n: int, noun: str) -> str:
    """Return a count with its noun, in the plural if needed: "1 feature", "2 features"."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def parse_integer(text: str) -> int | None:
    """Return the non-negative integer in a header, or None if the header is not one."""
    plain = text.isascii() and text.isdigit() and len(text) <= _MAX_DIGITS
    return int(text) if plain else None


def abbreviate(value: object, longest: int = 60) -> str:
    """Return the repr of a value, shortened for an error message.

    The cost does not depend on the size of the value, which comes from an untrusted request.
    """
    text = _REPR.repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def abbreviate_list(names: Iterable[object]) -> str:
    """Return the first five names, and the number of the others."""
    listed = list(names)
    more = f" and {len(listed) - 5:,} more" if len(listed) > 5 else ""
    return ", ".join(abbreviate(name) for name in listed[:5]) + more


def _bounded_repr() -> Repr:
    """Return a Repr with bounds on the depth and length that it visits."""
    bounded = Repr()
    bounded.fillvalue = "…"
    bounded.maxlevel = 8
    bounded.maxlist = bounded.maxdict = 20
    bounded.maxstring = bounded.maxlong = bounded.maxother = 200
    return bounded


_REPR = _bounded_repr()
