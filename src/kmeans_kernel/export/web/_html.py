"""Assembly of the HTML file from the model's data and the templates in `page`."""

from __future__ import annotations

import html
import json
import re
from importlib.resources import files
from typing import Any

_SCRIPTS = (
    "arrays", "kernels", "transforms", "model", "columns", "steps", "estimators", "pictures",
    "framing", "representatives", "verdict", "pad", "fields", "tests", "main",
)  # fmt: skip

_UNCALIBRATED = (
    "These probabilities are the plain softmax of the scores, as in the paper, and not calibrated; "
    "the bars run from the lowest to the highest."
)

_IMAGE_CAPTION = (
    "Below each number: the class of the representative, and how many training images it stands "
    "for."
)
_ROW_CAPTION = (
    "Each line is a representative: a typical row of its class. Values equal or near to those of "
    "this row are marked."
)


def render_page(
    facts: dict[str, Any],
    text: str,
    title: str,
    subtitle: str,
    shape: tuple[int, int] | None,
) -> bytes:
    """Return the page.

    Parameters
    ----------
    facts : data of the page, embedded as JSON
    text : arrays, as `pack` encodes them
    title, subtitle : heading of the page
    shape : height and width of the images; None for a table
    """
    height, width = shape or (0, 0)
    without_test = "hidden" if facts["test"] is None else ""
    about_input = {"without_test": without_test, "height": str(height), "width": str(width)}
    captions = _ROW_CAPTION if shape is None else _IMAGE_CAPTION
    content = fill_template(
        _read_part("page.html"),
        {
            "input": fill_template(
                _read_part("fields.html" if shape is None else "pad.html"), about_input
            ),
            "style": _read_part("page.css"),
            "script": "\n".join(_read_part(f"{name}.js") for name in _SCRIPTS),
            "without_test": without_test,
            "without_rows": "" if shape is None else "hidden",
            "kind": facts["kind"],
            "bars_note": _UNCALIBRATED if facts["flat"] else "",
            "captions": f"{captions} {facts['pictures_note']}",
            "bytes": text,
            "subtitle": html.escape(subtitle),
            "title": html.escape(title),
            # An escaped "<" keeps a label such as "</script>" from ending the script element.
            "facts": json.dumps(facts, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
        },
    )
    return content.encode()


def _read_part(name: str) -> str:
    folder = "scripts" if name.endswith(".js") else "page"
    return (files("kmeans_kernel.export.web") / folder / name).read_text(encoding="utf-8")


def fill_template(template: str, values: dict[str, str]) -> str:
    """Replace each {{name}} of a template by its value; values are not expanded again."""
    return re.sub(r"{{(\w+)}}", lambda place: values[place[1]], template)
