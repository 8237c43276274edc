"""Markers of missing values: which texts stand for no value, in any column or among numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kmeans_kernel.utils.words import MISSING_VALUES

# Errors of spreadsheets, such as #DIV/0!, #NAME? or the German #WERT!, and columns too narrow.
SPREADSHEET_ERROR = r"^#(?:[¡¿]?[\p{L}/0-9]+[!?]|#+)$"

# Further markers in a column of numbers or dates. Punctuation can mean nothing else there; a word
# counts where nearly all other values are numbers. Compared in lower case.
PUNCTUATION_MARKERS = ("-", "--", "---", "–", "—", ".", "..", "...", "…", ":", "_")
ZERO_DATES = ("0000-00-00", "0000-00-00 00:00:00")
WORD_MARKERS = (
    "na", "n.a.", "n.a", "none", "nil", "no data", "not available", "not applicable", "missing",
    "unknown", "undefined", "not recorded", "blank", "(blank)", "(empty)", "(missing)",
    "(unknown)", "k.a.", "k. a.", "keine angabe",
)  # fmt: skip


# Text that a spreadsheet is kept from reading as a number.
_FORMULA = r'^="([^"]*)"$'

# White space, and characters without width, that are no part of a value at its ends.
_BLANKS = " \t\n\r\x0b\x0c\x85\u00a0\u2009\u202f\u3000\u200b\ufeff"


def without_markers(
    frame: Any, more: Sequence[str] = (), levels: Mapping[str, Collection[str]] | None = None
) -> Any:
    """Return a frame of text without spaces around values, and with nulls for missing ones.

    Parameters
    ----------
    frame : polars frame; columns of other types stay as they are
    more : further texts that stand for a missing value: in all columns, or as COLUMN=TEXT in one
    levels : values of columns that stay as they are, with their spaces, though they may be a marker
        of missing values, unless that is one of `more`
    """
    import polars as pl

    known = levels or {}
    text = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    named, text = [one for one in text if one in known], [one for one in text if one not in known]
    if not more:  # most columns are numbers without any marker, which is seen faster
        text = [
            name for name, plain in zip(text, _are_plain(frame, text), strict=True) if not plain
        ]
    given = {name: markers_in(name, more, frame.columns) for name in frame.columns}
    kept = [_known_or_bare(frame[name], given[name], known[name]) for name in named]
    stripped = frame.with_columns(_bare(pl.col(text)))
    found = [
        pl.when(~(_is_missing(pl.col(name)) | pl.col(name).is_in(given[name]))).then(pl.col(name))
        for name in text
    ]
    return stripped.with_columns(*found, *kept)


def markers_in(name: str, markers: Sequence[str], columns: Sequence[str]) -> list[str]:
    """Return the texts that stand for a missing value in a column of these columns.

    A marker is the text, for all columns, or COLUMN=TEXT for one.
    """
    own = [marker.removeprefix(f"{name}=") for marker in markers if marker.startswith(f"{name}=")]
    others = [f"{column}=" for column in columns]
    general = [marker for marker in markers if not marker.startswith(tuple(others))]
    return [marker.strip() for marker in (*own, *general)]


def _known_or_bare(column: Any, given: Sequence[str], levels: Collection[str]) -> Any:
    """Return a column with its levels as they are, and other values as in any column."""
    import polars as pl

    name, known = pl.col(column.name), list(levels)
    bare = _bare(name)
    value = pl.when(name.is_in(known)).then(name).otherwise(bare)
    is_missing = bare.is_in(given) | (_is_missing(bare) & ~value.is_in(known))
    return column.to_frame().select(pl.when(~is_missing).then(value)).to_series()


def _bare(cells: Any) -> Any:
    """Return the expression of cells without spaces around values."""
    return cells.str.strip_chars(_BLANKS).str.replace(_FORMULA, "${1}")


def _is_missing(cells: Any) -> Any:
    """Return the expression of which cells are a marker of missing values in any column."""
    is_error = cells.str.starts_with("#") & cells.str.contains(SPREADSHEET_ERROR)
    return cells.is_in(list(MISSING_VALUES)) | is_error


def _are_plain(frame: Any, names: Sequence[str]) -> tuple[bool, ...]:
    """Return whether the values of each column are numbers with a decimal point, or null."""
    import polars as pl

    numbers = pl.col(names).cast(pl.Float64, strict=False)
    plain = (numbers.null_count() == pl.col(names).null_count()) & ~numbers.is_nan().any()
    found: tuple[bool, ...] = frame.select(plain).row(0) if names else ()
    return found


def is_marker(column: Any, *, words: bool) -> Any:
    """Return which values of a column of numbers or dates stand for a missing one.

    Parameters
    ----------
    column : polars series of text
    words : whether words count, beside punctuation
    """
    lowered = column.str.to_lowercase()
    found = lowered.is_in([*PUNCTUATION_MARKERS, *ZERO_DATES, *(WORD_MARKERS if words else ())])
    return found.fill_null(value=False)
