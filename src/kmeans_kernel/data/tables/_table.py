"""The table read from a file, the error of unreadable files, and checks that formats share."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# Squared distances sum squares of values: beyond about 1e154 a square overflows float64.
_LARGEST_NUMBER = 1e150


class DataFileError(ValueError):
    """Raised for a file without a usable table; the message is one sentence for the user."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to train on or to classify.

    Attributes
    ----------
    X : a polars frame of numbers, an array (n, d), or images (n, height, width)
    y : (n,) labels, or None
    rows : (n,) index of each row in the file, from 0; rows with missing values may be left out
    n_dropped : number of rows left out for missing values
    """

    X: Any
    y: npt.NDArray[Any] | None
    rows: npt.NDArray[np.intp]
    n_dropped: int = 0

    @property
    def are_images(self) -> bool:
        """Whether X holds images (n, height, width)."""
        return getattr(self.X, "ndim", 2) == 3


def complete_rows(
    numbers: npt.NDArray[Any],
    unlabelled: npt.NDArray[np.bool_],
    name: str,
    feature_place: Callable[[int], str],
    label_place: str,
    *,
    drop_missing: bool,
) -> npt.NDArray[np.intp]:
    """Return the indices of the rows without missing values.

    Raises `DataFileError` for missing values unless `drop_missing`, and always for values that are
    infinite or too large.

    Parameters
    ----------
    numbers : (n, d) features, NaN where a value is missing
    unlabelled : (n,) True where the label is missing
    feature_place : maps the index of a feature to its name in error messages
    label_place : name of the label in error messages
    """
    absent = np.isnan(numbers)
    missing = absent.any(axis=1) | unlabelled
    if missing.any() and not drop_missing:
        count, row = int(missing.sum()), int(missing.argmax())
        subject = "1 row has" if count == 1 else f"{count} rows have"
        place = feature_place(int(absent[row].argmax())) if absent[row].any() else label_place
        raise DataFileError(
            f"{subject} a missing value among the {len(missing)} of {name}, the first in data row "
            f"{row + 1}, {place}; fill them, or leave such rows out with --drop-missing."
        )
    if missing.all():
        raise DataFileError(f"every row of {name} has a missing value; fill them first.")
    too_large = np.argwhere((np.abs(numbers) > _LARGEST_NUMBER) & ~missing[:, None])
    if len(too_large):
        row, feature = too_large[0].tolist()
        value = float(numbers[row, feature])
        problem = "infinite" if np.isinf(value) else f"{value:g}, too large to be used"
        raise DataFileError(
            f"data row {row + 1} of {name} is {problem} in {feature_place(feature)}; replace it."
        )
    return np.flatnonzero(~missing)


def labels_from_array(y: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return float labels as int64 if all are integers, else as text; other types unchanged."""
    if y.dtype.kind != "f":
        return y
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataFileError(f"a label of {name} is {y[row]}; labels are numbers or text.")
    if (y == np.rint(y)).all() and (np.abs(y) < 2**53).all():  # integers that float64 holds exactly
        return y.astype(np.int64)
    return np.array([str(label) for label in y.tolist()])


def labels_from_text(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return text labels as int64 if all are integers in canonical form (7 or 7.0, not 007)."""
    # 18 digits always fit into int64.
    if all(re.fullmatch(r"(0|-?[1-9]\d{0,17})(\.0+)?", label) for label in np.unique(labels)):
        return np.array([int(label.partition(".")[0]) for label in labels.tolist()], dtype=np.int64)
    return labels


def quoted_list(names: Sequence[str]) -> str:
    """Return the first eight names, quoted, for an error message."""
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "none"


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, with a full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") + "." if lines else type(error).__name__ + "."
