"""CSV bodies, with or without a header of feature names."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.serve._models import ServedModel
from kmeans_kernel.serve.protocol._values import CodedRows, ignored_columns
from kmeans_kernel.serve.transport._errors import (
    RequestError,
    abbreviate,
    abbreviate_list,
    bad_request,
)

Rows = npt.NDArray[Any]

# Most cells that the first line may have beyond the features: columns to be ignored, and commas in
# quoted names, which are counted before the line is parsed.
_MOST_OTHER_CELLS = 10_000


def read_csv(body: bytes, model: ServedModel) -> CodedRows:
    """Return the rows of a CSV body.

    A header may name the features in any order, and other columns, which are ignored.
    """
    text = decode_csv(body)
    _check_width(next(_lines_of(text), "").count(","), model, _MOST_OTHER_CELLS)
    _, first = next(read_records(text), (0, []))
    names = model.feature_names
    known = frozenset(names or ())
    cells = [cell if cell in known else cell.strip() for cell in first]
    if names is not None and _names_features(cells, names):
        place_of = {name: j for j, name in enumerate(cells)}
        places = [place_of[name] for name in names]
        if len(cells) == len(names):
            return CodedRows(_parse_numbers(text, 1)[:, places], ())
        _check_width(len(cells), model, _MOST_OTHER_CELLS)
        return CodedRows(_parse_some(text, cells, places), ignored_columns(cells, names))
    n_headers = int(_is_header(cells, names))
    _check_width(len(cells), model)
    return CodedRows(_parse_numbers(text, n_headers), ())


def decode_csv(body: bytes) -> str:
    """Return the text of a CSV body, with its line breaks as they are."""
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise bad_request(
            "The CSV must be UTF-8, and is not; convert it, then send it again."
        ) from None


def _lines_of(text: str) -> Iterator[str]:
    r"""Yield the lines of a text, which end in \n, \r\n or \r, as they are."""
    yield from io.StringIO(text, newline="")


def read_records(text: str, what: str = "numbers") -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each record, from 1, and its cells; `what` the cells hold, for errors."""
    number = 0
    try:
        for number, cells in enumerate(csv.reader(_lines_of(text)), 1):
            yield number, cells
    except csv.Error:
        most = csv.field_size_limit()
        raise bad_request(
            f"Line {number + 1} of the CSV must contain {what}, got a cell of more than {most:,} "
            "characters or one that cannot be parsed; check its quotes."
        ) from None


def _names_features(cells: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the first line names all features, each once, and perhaps other columns."""
    if len(cells) == len(names):
        return sorted(cells) == sorted(names)  # also when the names look like numbers
    counts = Counter(cells)
    return all(counts[name] == 1 for name in names) and not all(map(_is_number, cells))


def _is_header(cells: Sequence[str], names: Sequence[str] | None) -> bool:
    """Whether the first line is a header of other names; raise if it mixes names and numbers."""
    strange = [cell for cell in cells if not _is_number(cell)]
    if not strange:
        return False
    if names is not None and (len(strange) == len(cells) or set(cells) & set(names)):
        raise bad_request(
            f"The columns of the CSV must be {abbreviate_list(names)}, got "
            f"{abbreviate_list(cells)}; name each of these features once in its first line."
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


def _parse_numbers(text: str, n_headers: int) -> Rows:
    # A generator runs Python code for each line, so that other threads can take the GIL.
    lines = _lines_of(text)
    for _ in range(n_headers):
        next(csv.reader(lines))  # a quoted name may have line breaks
    first = next(filter(str.strip, lines), None)
    if first is None:
        got = "only a header" if n_headers else "none"
        raise bad_request(f"The CSV must have at least one row of numbers, got {got}.")
    try:
        rows: Rows = np.loadtxt(
            chain([first], lines), delimiter=",", ndmin=2, comments=None, quotechar='"'
        )
    except ValueError as error:
        raise _first_error(text, n_headers) from error
    return rows


def _parse_some(text: str, header: Sequence[str], places: Sequence[int]) -> Rows:
    """Return the numbers of the columns at some places of the header; others may hold anything."""
    rows: list[list[float]] = []
    for number, cells in read_records(text, "values"):
        if number == 1 or not cells:
            continue
        if len(cells) != len(header):
            raise bad_request(
                f"Line {number} of the CSV must have {len(header)} cells, as the first line has, "
                f"got {len(cells)}."
            )
        strange = next((j for j in places if not _is_number(cells[j])), None)
        if strange is not None:
            raise bad_request(
                f"Line {number} of the CSV must contain numbers for the features, got "
                f"{abbreviate(cells[strange])} for {abbreviate(header[strange])}."
            )
        rows.append([float(cells[j]) for j in places])
    if not rows:
        raise bad_request("The CSV must have at least one row of numbers, got only a header.")
    return np.array(rows)


def _first_error(text: str, n_headers: int) -> RequestError:
    """Return the error for the first line that cannot be parsed."""
    width = None
    for number, cells in read_records(text):
        if not cells or number <= n_headers:
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
    return "_" not in cell
