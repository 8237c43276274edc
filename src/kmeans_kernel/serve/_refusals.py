"""What a request is refused with: a status and one sentence."""

from __future__ import annotations


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


def count(n: int, what: str) -> str:
    """Return a number of things in words: one feature, two features."""
    return f"{n:,} {what}" if n == 1 else f"{n:,} {what}s"


def shown(value: object, longest: int = 60) -> str:
    """Return what came, short enough for a sentence."""
    text = repr(value)
    return text if len(text) <= longest else text[: longest - 1] + "…"
