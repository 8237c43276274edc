"""What a request is refused with: a status and one sentence."""

from __future__ import annotations

from collections.abc import Iterable
from reprlib import Repr

# No number that a header may hold has more digits.
_MOST_DIGITS = 18


class Refusal(Exception):  # noqa: N818
    """A request that cannot be answered, and why.

    Parameters
    ----------
    status : the status of HTTP
    sentence : what was wrong, what was expected, what came, and what to do
    headers : more headers of the answer
    """

    def __init__(self, status: int, sentence: str, headers: dict[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers or {}


class ClientGone(Exception):  # noqa: N818
    """The client closed the connection before it had sent its request."""


def bad(sentence: str) -> Refusal:
    """Return the refusal of a request that is wrong in itself."""
    return Refusal(400, sentence)


def stopping() -> Refusal:
    """Return the refusal of a request that a stop does not wait for."""
    sentence = "The server is stopping; send this request again soon, or to another."
    return Refusal(503, sentence, {"retry-after": "1", "connection": "close"})


def count(n: int, what: str) -> str:
    """Return a number of things in words: one feature, two features."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def whole_number(text: str) -> int | None:
    """Return the whole number that a header holds, None if it is none or too long."""
    plain = text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
    return int(text) if plain else None


def shown(value: object, longest: int = 60) -> str:
    """Return what came, short enough for a sentence; only its beginning is looked at."""
    text = _SHORT.repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def some(names: Iterable[object]) -> str:
    """Return some names, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - 5:,} more" if len(listed) > 5 else ""
    return ", ".join(shown(name) for name in listed[:5]) + more


def _short() -> Repr:
    """Return a writer that looks at no more than is shown, however long or deep a value is."""
    short = Repr()
    short.fillvalue = "…"
    short.maxlevel = 8
    short.maxlist = short.maxdict = 20
    short.maxstring = short.maxlong = short.maxother = 200
    return short


_SHORT = _short()
