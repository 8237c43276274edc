"""The door: what every estimator checks once, so that the core can trust its input."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import validate_data

from kmeans_kernel._blocks import row_blocks

# Either is kept; anything else becomes the first.
_FLOATS = [np.float32, np.float64]


def check_count(owner: object, name: str, minimum: int = 1) -> int:
    """Return the whole number in `owner.name`, at least `minimum`."""
    value = getattr(owner, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < minimum:
        raise _bad_parameter(owner, name, f"a whole number of at least {minimum}")
    return int(value)


def check_number(owner: object, name: str, *, minimum: float = 0.0, above: bool = False) -> float:
    """Return the finite number in `owner.name`, at least `minimum`, or above it."""
    value = getattr(owner, name)
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    if not (np.isfinite(number) and (number > minimum if above else number >= minimum)):
        bound = f"above {minimum:g}" if above else f"of at least {minimum:g}"
        raise _bad_parameter(owner, name, f"a finite number {bound}")
    return number


def check_option(owner: object, name: str, *options: str) -> str:
    """Return the string in `owner.name`, one of the options."""
    value = getattr(owner, name)
    if not isinstance(value, str) or value not in options:
        raise _bad_parameter(owner, name, "one of " + ", ".join(map(repr, options)))
    return value


def check_rows(estimator: Any, X: Any, *, reset: bool) -> npt.NDArray[Any]:
    """Return X as finite float rows (float64 kept, all else float32), or say what is wrong.

    `reset` is True in `fit`, where the features are counted and named, and False after it.
    """
    rows: npt.NDArray[Any] = _check(estimator, X, reset=reset, dtype=_FLOATS)
    return rows


def check_pixels(estimator: Any, X: Any, *, reset: bool) -> npt.NDArray[Any]:
    """Return images or rows of pixels as finite rows, in the type they came in (bytes stay bytes).

    Images (n, height, width) are flattened; what is not an image must be rows.
    """
    if getattr(X, "ndim", 2) == 3:
        X = np.asarray(X).reshape(len(X), -1)
    rows: npt.NDArray[Any] = _check(estimator, X, reset=reset, dtype="numeric")
    return rows


def check_rows_and_labels(estimator: Any, X: Any, y: Any) -> tuple[npt.NDArray[Any], Any]:
    """Return X as `check_rows` does and y as a one-dimensional array of labels."""
    checked: tuple[npt.NDArray[Any], Any] = _check(estimator, X, y=y, reset=True, dtype=_FLOATS)
    return checked


def _check(estimator: Any, X: Any, **options: Any) -> Any:
    try:
        checked = validate_data(estimator, X, ensure_all_finite=False, **options)
    except ValueError as error:
        if "could not convert string" not in str(error):
            raise
        raise ValueError(
            f"X must hold numbers, got text ({error}). Encode text columns first, for example "
            "with sklearn.preprocessing.OneHotEncoder."
        ) from error
    _check_finite(estimator, checked[0] if isinstance(checked, tuple) else checked)
    return checked


def _check_finite(estimator: Any, X: npt.NDArray[Any]) -> None:
    if X.dtype.kind != "f":
        return
    for rows in row_blocks(*X.shape):
        block = X[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum(dtype=np.float64)
        if np.isfinite(total) or np.isfinite(block).all():
            continue
        row, column = np.argwhere(~np.isfinite(block))[0]
        names = getattr(estimator, "feature_names_in_", None)
        where = f"column {column}" if names is None else f"column {names[column]!r}"
        if np.isnan(block[row, column]):
            what, remedy = "NaN", "Fill missing values first, for example with SimpleImputer"
        else:
            what, remedy = "infinity", "Replace or drop such rows first"
        raise ValueError(
            f"Input X contains {what} (row {rows.start + row}, {where}), but "
            f"{type(estimator).__name__} needs finite numbers. {remedy}."
        )


def _bad_parameter(owner: object, name: str, expected: str) -> ValueError:
    return ValueError(
        f"The {name!r} parameter of {type(owner).__name__} must be {expected}, "
        f"got {getattr(owner, name)!r}."
    )
