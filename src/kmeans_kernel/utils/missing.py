"""Texts that stand for a missing value in any column of CSV: one list for files and the server."""

from __future__ import annotations

# As databases, statistics programs and spreadsheets write them. All that pandas.read_csv reads as
# missing by default is among them, so that a model of its frame reads the same file alike.
MISSING_VALUES = (
    "", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NaN", "nan", "NAN", "-NaN", "-nan",
    "NaT", "None", "null", "Null", "NULL", "(null)", "?", "\\N", "1.#IND", "-1.#IND", "1.#QNAN",
    "-1.#QNAN", "#NV", "#N/D",
)  # fmt: skip
