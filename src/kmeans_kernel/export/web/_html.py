"""One HTML file: the facts and arrays of a model, and the scripts and styles of `page`, in one."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from typing import Any

_SCRIPTS = (
    "arrays", "model", "steps", "estimators", "pictures", "framing", "representatives", "verdict",
    "pad", "fields", "tests", "main",
)  # fmt: skip

_FLAT = (
    "These probabilities are the plain softmax of the scores, as in the paper, and not calibrated; "
    "the bars run from the lowest to the highest."
)

_OF_IMAGES = (
    "Below each number: the class of the representative, and how many training images it stands "
    "for."
)
_OF_ROWS = "Each line is a representative: a typical row of its class."


def html_of(
    facts: dict[str, Any],
    text: str,
    title: str,
    subtitle: str,
    shape: tuple[int, int] | None,
) -> bytes:
    """Return the page as bytes: facts as JSON, arrays as text, and the files of `page`."""
    height, width = shape or (0, 0)
    without_test = "hidden" if facts["test"] is None else ""
    about_input = {"without_test": without_test, "height": str(height), "width": str(width)}
    captions = _OF_ROWS if shape is None else _OF_IMAGES
    content = filled(
        _part("page.html"),
        {
            "input": filled(_part("fields.html" if shape is None else "pad.html"), about_input),
            "style": _part("page.css"),
            "script": "\n".join(_part(f"{name}.js") for name in _SCRIPTS),
            "without_test": without_test,
            "kind": facts["kind"],
            "bars_note": _FLAT if facts["flat"] else "",
            "captions": f"{captions} {facts['pictures_note']}",
            "bytes": text,
            "subtitle": html.escape(subtitle),
            "title": html.escape(title),
            "facts": json.dumps(facts, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
        },
    )
    return content.encode()


def _part(name: str) -> str:
    return (files("kmeans_kernel.export.web") / "page" / name).read_text(encoding="utf-8")


def filled(template: str, values: dict[str, str]) -> str:
    """Put values in the places that a template names; what they hold is left as it is."""
    return re.sub(r"{{(\w+)}}", lambda place: values[place[1]], template)
