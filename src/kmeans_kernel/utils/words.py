"""Words that files and the server read alike: missing values, true and false."""

from __future__ import annotations

# As databases, statistics programs and spreadsheets write them. All that pandas.read_csv reads as
# missing by default is among them, so that a model of its frame reads the same file alike.
MISSING_VALUES = (
    "", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NaN", "nan", "NAN", "-NaN", "-nan",
    "NaT", "None", "null", "Null", "NULL", "(null)", "?", "\\N", "1.#IND", "-1.#IND", "1.#QNAN",
    "-1.#QNAN", "#NV", "#N/D",
)  # fmt: skip

# True and false in a column that a model knows as such, in lower case.
TRUE_WORDS = (
    "true", "t", "yes", "y", "1", "1.0", "on", "wahr", "ja", "j", "vrai", "oui", "o", "sí", "si",
    "sì",
)  # fmt: skip
FALSE_WORDS = (
    "false", "f", "no", "n", "0", "0.0", "off", "falsch", "nein", "faux", "non",
)  # fmt: skip
