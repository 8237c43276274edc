"""Markers of missing values: which texts stand for no value, in any column or among numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

# Markers in any column, as databases, statistics programs and spreadsheets write them.
MISSING_VALUES = (
    "", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NaN", "nan", "NAN", "-nan", "NaT",
    "null", "Null", "NULL", "(null)", "?", "\\N", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN",
    "#NV", "#N/D",
)  # fmt: skip

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


def without_markers(frame: Any, more: Sequence[str] = ()) -> Any:
    """Return a frame of text without spaces around values, and with nulls for missing ones.

    Parameters
    ----------
    frame : polars frame; columns of other types stay as they are
    more : further texts that stand for a missing value
    """
    import polars as pl

    text = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    if not more:  # most columns are numbers without any marker, which is seen faster
        text = [
            name for name, plain in zip(text, _are_plain(frame, text), strict=True) if not plain
        ]
    markers = [*MISSING_VALUES, *(marker.strip() for marker in more)]
    stripped = frame.with_columns(
        pl.col(text).str.strip_chars(_BLANKS).str.replace(_FORMULA, "${1}")
    )
    is_missing = pl.col(text).is_in(markers) | (
        pl.col(text).str.starts_with("#") & pl.col(text).str.contains(SPREADSHEET_ERROR)
    )
    return stripped.with_columns(pl.when(~is_missing).then(pl.col(text)).name.keep())


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
