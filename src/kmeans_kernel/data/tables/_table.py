"""What a file becomes: a table; and what is said of a file that cannot become one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

# What is larger cannot be squared and summed.
_LARGEST_NUMBER = 1e150


class DataFileError(ValueError):
    """A file that holds no table that can be used; the message is one sentence for the user."""


@dataclass(frozen=True, eq=False)
class Table:
    """Rows to train on or to classify.

    Attributes
    ----------
    X : a polars frame of numbers, an array (n, d), or images (n, height, width)
    y : (n,) labels, or None
    rows : (n,) the number of each row in the file, from 0: rows may have been dropped
    n_dropped : how many were, for missing values
    """

    X: Any
    y: npt.NDArray[Any] | None
    rows: npt.NDArray[np.intp]
    n_dropped: int = 0

    @property
    def are_images(self) -> bool:
        """Whether the rows are images."""
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
    """Return the numbers of the rows that can be used.

    A missing value is an error unless such rows are dropped; a number too large to use always is.

    Parameters
    ----------
    numbers : (n, d) NaN where a value is missing
    unlabelled : (n,) whether the label of a row is missing
    feature_place, label_place : what to call the place of a feature and of the label
    """
    absent = np.isnan(numbers)
    missing = absent.any(axis=1) | unlabelled
    if missing.any() and not drop_missing:
        count, row = int(missing.sum()), int(missing.argmax())
        told = "1 row has" if count == 1 else f"{count} rows have"
        place = feature_place(int(absent[row].argmax())) if absent[row].any() else label_place
        raise DataFileError(
            f"{told} a missing value among the {len(missing)} of {name}, the first in data row "
            f"{row + 1}, {place}; fill them, or leave such rows out with --drop-missing."
        )
    if missing.all():
        raise DataFileError(f"every row of {name} has a missing value; fill them first.")
    too_large = np.argwhere((np.abs(numbers) > _LARGEST_NUMBER) & ~missing[:, None])
    if len(too_large):
        row, feature = too_large[0].tolist()
        value = float(numbers[row, feature])
        what = "infinite" if np.isinf(value) else f"{value:g}, too large to be used"
        raise DataFileError(
            f"data row {row + 1} of {name} is {what} in {feature_place(feature)}; replace it."
        )
    return np.flatnonzero(~missing)


def plain_labels(y: npt.NDArray[Any], name: str) -> npt.NDArray[Any]:
    """Return labels of an array: numbers that are not whole become text."""
    if y.dtype.kind != "f":
        return y
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise DataFileError(f"a label of {name} is {y[row]}; labels are numbers or text.")
    if (y == np.rint(y)).all() and (np.abs(y) < 2**53).all():
        return y.astype(np.int64)
    return np.array([str(label) for label in y.tolist()])


def parse_labels(labels: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return text as whole numbers if every label is one, as numbers are written: 7, not 007."""
    if all(re.fullmatch(r"(0|-?[1-9]\d{0,17})(\.0+)?", label) for label in np.unique(labels)):
        return np.array([int(label.partition(".")[0]) for label in labels.tolist()], dtype=np.int64)
    return labels


def listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return f"{shown} and {len(names) - 8} more" if len(names) > 8 else shown or "none"


def first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") + "." if lines else type(error).__name__ + "."
