"""CSV bodies, with or without a header of feature names."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.serve._models import ServedModel
from kmeans_kernel.serve.transport._errors import (
    RequestError,
    abbreviate,
    abbreviate_list,
    bad_request,
)

Rows = npt.NDArray[Any]

# Commas that quoted feature names in the header may contain, before the line is parsed.
_MAX_COMMAS_IN_NAMES = 10_000


def read_csv(body: bytes, model: ServedModel) -> Rows:
    """Return the rows of a CSV body; a header may name the features in any order."""
    text = decode_csv(body)
    _check_width(text.partition("\n")[0].count(","), model, _MAX_COMMAS_IN_NAMES)
    _, first = next(read_records(text), (0, []))
    cells = [cell.strip() for cell in first]
    is_header = _is_header(cells, model)
    _check_width(len(cells), model)
    rows = _parse_numbers(text, int(is_header))
    names = model.feature_names
    if not is_header or names is None:
        return rows
    return rows[:, [cells.index(name) for name in names]]


def decode_csv(body: bytes) -> str:
    """Return the text of a CSV body, with a newline at the end of each line."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise bad_request(
            "The CSV must be UTF-8, and is not; convert it, then send it again."
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_records(text: str, what: str = "numbers") -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each record, from 1, and its cells; `what` the cells hold, for errors."""
    number = 0
    try:
        for number, cells in enumerate(csv.reader(io.StringIO(text)), 1):
            yield number, cells
    except csv.Error:
        most = csv.field_size_limit()
        raise bad_request(
            f"Line {number + 1} of the CSV must contain {what}, got a cell of more than {most:,} "
            "characters or one that cannot be parsed; check its quotes."
        ) from None


def _is_header(cells: Sequence[str], model: ServedModel) -> bool:
    """Whether the first line is a header; raise if it mixes names and numbers."""
    names = model.feature_names
    if names is not None and sorted(cells) == sorted(names):
        return True  # also when the names look like numbers
    strange = [cell for cell in cells if not _is_number(cell)]
    if not strange:
        return False
    if names is not None and (len(strange) == len(cells) or set(cells) & set(names)):
        raise bad_request(
            f"The columns of the CSV must be {abbreviate_list(names)}, got "
            f"{abbreviate_list(cells)}; name exactly these features in its first line."
        )
    if len(strange) < len(cells):
        raise bad_request(
            "Line 1 of the CSV must contain only numbers or only names, got "
            f"{abbreviate(strange[0])} among numbers."
        )
    return True


def _check_width(width: int, model: ServedModel, tolerance: int = 0) -> None:
    """Raise if a line has more cells than features, plus a tolerance."""
    if width > model.n_features + tolerance:
        raise bad_request(
            f"Line 1 of the CSV must have {model.n_features:,} cells, for rows of shape "
            f"[n, {model.n_features}], got {width:,}; send one cell for each feature."
        )


def _parse_numbers(text: str, n_header_lines: int) -> Rows:
    n_lines = len(text.strip().splitlines())
    if n_lines <= n_header_lines:
        got = "only a header" if n_lines else "none"
        raise bad_request(f"The CSV must have at least one row of numbers, got {got}.")
    # A generator runs Python code for each line, so that other threads can take the GIL.
    lines = (line for line in io.StringIO(text))
    try:
        rows: Rows = np.loadtxt(
            lines, delimiter=",", skiprows=n_header_lines, ndmin=2, comments=None, quotechar='"'
        )
    except ValueError as error:
        raise _first_error(text, n_header_lines) from error
    return rows


def _first_error(text: str, n_header_lines: int) -> RequestError:
    """Return the error for the first line that cannot be parsed."""
    width = None
    for number, cells in read_records(text):
        if not cells or number <= n_header_lines:
            continue
        width = width or len(cells)
        if len(cells) != width:
            return bad_request(
                f"Line {number} of the CSV must have {width} cells, as the first row has, got "
                f"{len(cells)}."
            )
        for cell in cells:
            if not _is_number(cell):
                return bad_request(
                    f"Line {number} of the CSV must contain numbers, got {abbreviate(cell)}."
                )
    return bad_request(
        "The CSV cannot be parsed; write one row per line, with commas between numbers."
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
