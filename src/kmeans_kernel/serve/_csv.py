"""Rows of CSV, with or without the names of the features in the first line."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.serve._models import ServedModel
from kmeans_kernel.serve._refusals import Refusal, bad, shown, some

Rows = npt.NDArray[Any]

# So many commas may be within names of the first line.
_MANY = 10_000


def read_csv(body: bytes, model: ServedModel) -> Rows:
    """Return the rows of a CSV; its first line may name the features, in any order."""
    try:
        text = body.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise bad("The CSV must be UTF-8, and is not.") from None
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    _check_width(text.partition("\n")[0].count(","), model, _MANY)
    _, first = next(_lines(text), (0, []))
    cells = [cell.strip() for cell in first]
    is_header = _is_header(cells, model)
    _check_width(len(cells), model)
    rows = _numbers(text, int(is_header))
    names = model.feature_names
    if not is_header or names is None:
        return rows
    return rows[:, [cells.index(name) for name in names]]


def _lines(text: str) -> Iterator[tuple[int, list[str]]]:
    """Return the cells of each line, with its number from 1."""
    number = 0
    try:
        for number, cells in enumerate(csv.reader(io.StringIO(text)), 1):
            yield number, cells
    except csv.Error:
        most = csv.field_size_limit()
        raise bad(
            f"Line {number + 1} of the CSV must hold numbers, got a cell of more than {most:,} "
            "characters or one that cannot be read; see to its quotes."
        ) from None


def _is_header(cells: Sequence[str], model: ServedModel) -> bool:
    """Say whether the first line names the features, or refuse it if it does so in part."""
    names = model.feature_names
    if names is not None and sorted(cells) == sorted(names):
        return True  # even if the names are numbers
    strange = [cell for cell in cells if not _is_number(cell)]
    if not strange:
        return False
    if names is not None and (len(strange) == len(cells) or set(cells) & set(names)):
        raise bad(
            f"The columns of the CSV must be {some(names)}, got {some(cells)}; name all of them in "
            "its first line, and no others."
        )
    if len(strange) < len(cells):
        raise bad(
            f"Line 1 of the CSV must hold numbers, or else names only, got {shown(strange[0])} "
            "among numbers."
        )
    return True


def _check_width(width: int, model: ServedModel, beyond: int = 0) -> None:
    """Refuse lines that are too wide, by so many cells, before they are read."""
    if width > model.n_features + beyond:
        raise bad(
            f"Line 1 of the CSV must have {model.n_features:,} cells, for rows of shape "
            f"[n, {model.n_features}], got {width:,}."
        )


def _numbers(text: str, n_heads: int) -> Rows:
    n_lines = len(text.strip().splitlines())
    if n_lines <= n_heads:
        got = "a line of names only" if n_lines else "none"
        raise bad(f"The CSV must have at least one row of numbers, got {got}.")
    # A generator gives other threads their turn between lines.
    lines = (line for line in io.StringIO(text))
    try:
        rows: Rows = np.loadtxt(
            lines, delimiter=",", skiprows=n_heads, ndmin=2, comments=None, quotechar='"'
        )
    except ValueError as error:
        raise _trouble(text, n_heads) from error
    return rows


def _trouble(text: str, n_heads: int) -> Refusal:
    """Find the first line that cannot be read."""
    width = None
    for number, cells in _lines(text):
        if not cells or number <= n_heads:
            continue
        width = width or len(cells)
        if len(cells) != width:
            return bad(f"Line {number} of the CSV must have {width} cells, got {len(cells)}.")
        for cell in cells:
            if not _is_number(cell):
                return bad(f"Line {number} of the CSV must hold numbers, got {shown(cell)}.")
    return bad("The CSV cannot be read; write numbers with commas between them, a row a line.")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
