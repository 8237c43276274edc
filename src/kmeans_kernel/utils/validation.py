"""Validation of parameters and rows, once per call of an estimator; the core trusts its input."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array, issparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import (
    _check_sample_weight,
    check_consistent_length,
    column_or_1d,
    validate_data,
)

from kmeans_kernel.core.arrays.lazy import LazyRows
from kmeans_kernel.core.arrays.matrices import Matrix, row_blocks

# Seed or generator, as in scikit-learn's random_state.
RandomState: TypeAlias = int | np.random.RandomState | None


def check_count(owner: object, name: str, maximum: int | None = None) -> int:
    """Return the whole number in `owner.name`, at least 1 and at most `maximum`."""
    value = getattr(owner, name)
    if not is_count(value) or (maximum is not None and value > maximum):
        bound = "" if maximum is None else f" and at most {maximum}"
        raise _bad_parameter(owner, name, f"a whole number of at least 1{bound}")
    return int(value)


def is_count(value: object) -> bool:
    """Return whether a value is a whole number of at least 1."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def check_jobs(owner: object) -> None:
    """Raise ValueError unless `n_jobs` is None or a whole number other than 0."""
    value = getattr(owner, "n_jobs", None)
    whole = isinstance(value, Integral) and not isinstance(value, bool)
    if value is not None and not (whole and value != 0):
        raise _bad_parameter(owner, "n_jobs", "a whole number other than 0, or None")


def check_shape(owner: object, name: str) -> tuple[int, int]:
    """Return the height and width in `owner.name`."""
    value = getattr(owner, name)
    if isinstance(value, tuple | list) and len(value) == 2 and all(map(is_count, value)):
        return int(value[0]), int(value[1])
    raise _bad_parameter(owner, name, "two whole numbers of at least 1, (height, width)")


def check_number(
    owner: object, name: str, *, minimum: float = 0.0, above: bool = False, maximum: float = 1e30
) -> float:
    """Return the number in `owner.name`, in [minimum, maximum] or (minimum, maximum] if `above`."""
    value = getattr(owner, name)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    fits = is_number and (value > minimum if above else value >= minimum) and value <= maximum
    if not fits:
        bound = f"above {minimum:g}" if above else f"of at least {minimum:g}"
        raise _bad_parameter(owner, name, f"a number {bound} and at most {maximum:g}")
    return float(value)


def check_auto(owner: object, name: str, **bounds: Any) -> float | None:
    """Return the number in `owner.name` as `check_number` does, or None for "auto"."""
    if isinstance(getattr(owner, name), str) and getattr(owner, name) == "auto":
        return None
    return check_number(owner, name, **bounds)


def check_option(owner: object, name: str, *options: str) -> str:
    """Return the string in `owner.name`, one of the options."""
    value = getattr(owner, name)
    if not isinstance(value, str) or value not in options:
        raise _bad_parameter(owner, name, "one of " + ", ".join(map(repr, options)))
    return value


def check_rows(
    estimator: Any, X: Any, *, reset: bool, allow_nan: bool = False, sparse: bool = True
) -> Matrix:
    """Return X as rows of finite floats (see `as_floats`); ValueError if X is invalid.

    `reset` is True in `fit`, which records the number and names of features, and False after it.
    With `allow_nan` dense rows may hold NaN for missing values; without `sparse` rows are dense.
    Sparse rows are returned as CSR, without stored zeros and with sorted indices.
    """
    kind = "csr" if sparse else False
    return as_floats(_check(estimator, X, allow_nan=allow_nan, reset=reset, accept_sparse=kind))


def check_pixels(estimator: Any, X: Any, *, reset: bool) -> npt.NDArray[Any]:
    """Return images (n, height, width) or rows of pixels as finite rows of pixels.

    The type is kept: bytes stay bytes.
    """
    if isinstance(X, list | tuple):
        X = np.asarray(X)
    if getattr(X, "ndim", 2) == 3:
        X = np.asarray(X).reshape(len(X), int(np.prod(X.shape[1:])))
    rows: npt.NDArray[Any] = _check(estimator, X, reset=reset)
    return rows


def check_collected(X: Any) -> None:
    """Raise TypeError for a LazyFrame, whose rows are not there yet."""
    if type(X).__name__ == "LazyFrame" and type(X).__module__.startswith("polars"):
        raise TypeError(
            "X must be a table whose rows are in memory, got a LazyFrame of polars. Call "
            "X.collect() first."
        )


def check_lazy_rows(estimator: Any, X: LazyRows, *, reset: bool) -> None:
    """Record the number of features of lazy rows, or compare it with `fit` if not `reset`."""
    validate_data(estimator, X, reset=reset, skip_check_array=True)


def check_rows_and_labels(
    estimator: Any, X: Any, y: Any, *, reset: bool = True, allow_nan: bool = False
) -> tuple[Matrix, Any]:
    """Return X as `check_rows` does and y as a one-dimensional array of labels."""
    y = check_known_labels(y)
    if isinstance(X, LazyRows):
        check_lazy_rows(estimator, X, reset=reset)
        check_consistent_length(X, y)
        return X, column_or_1d(y)
    rows, labels = _check(estimator, X, y=y, allow_nan=allow_nan, reset=reset, accept_sparse="csr")
    return as_floats(rows), labels


def check_labels(owner: str, X: Any, y: Any) -> Any:
    """Return y as a one-dimensional array of as many labels as X has rows."""
    if y is None:
        raise ValueError(f"{owner} requires y to be passed, but the target y is None.")
    labels = column_or_1d(check_known_labels(y), warn=True)
    check_consistent_length(X, labels)
    assert_all_finite(labels, input_name="y")
    return labels


def check_known_labels(y: Any) -> Any:
    """Return labels without the nullable types of pandas; ValueError for missing ones."""
    dtype: Any = getattr(y, "dtype", None)
    nullable = hasattr(y, "isna") and hasattr(dtype, "na_value")
    absent = np.asarray(y.isna()) if nullable else _are_unknown(y)
    if absent.any():
        raise ValueError(
            f"y must have a label for every row, got a missing one in row {int(absent.argmax())}. "
            "Drop the rows without a label."
        )
    known = nullable and getattr(dtype, "kind", "O") in "biuf"
    return y.to_numpy(dtype=dtype.numpy_dtype) if known else y


def _are_unknown(y: Any) -> npt.NDArray[np.bool_]:
    """Return which labels are missing: None, NaN, NaT, pandas.NA, null or masked."""
    if isinstance(y, np.ma.MaskedArray):
        return np.ma.getmaskarray(y)
    if hasattr(y, "is_null") and not hasattr(y, "isna"):
        return np.asarray(y.is_null())
    dtype = getattr(y, "dtype", None)
    kind = getattr(dtype, "kind", "")
    if isinstance(y, list | tuple) or (kind and kind in "OmM") or hasattr(y, "cat"):
        some = y if len(np.shape(y)) == 1 else ()
        return np.array([is_missing(label) for label in some], dtype=bool)
    return np.zeros(1, dtype=bool)


def is_missing(value: Any) -> bool:
    """Return whether one value is None, NaN, NaT or pandas.NA."""
    if value is None:
        return True
    try:
        return bool(value != value)  # NaN and NaT differ from themselves
    except TypeError:  # pandas.NA is neither equal nor different
        return True
    except (ValueError, ArithmeticError):  # an array, or a signaling NaN of decimal
        return False


def has_missing(X: Any) -> bool:
    """Return whether dense rows in memory hold NaN."""
    if not isinstance(X, np.ndarray) or X.dtype.kind != "f":
        return False
    return any(bool(np.isnan(X[rows]).any()) for rows in row_blocks(*X.shape))


def check_weights(
    estimator: Any,
    sample_weight: Any,
    X: Any,
    classes: npt.NDArray[Any],
    codes: npt.NDArray[np.intp],
) -> npt.NDArray[np.float64] | None:
    """Return the (n,) sample weights times class weights; None for ones."""
    class_weight = estimator.class_weight
    if sample_weight is None and class_weight is None:
        return None
    weights: npt.NDArray[np.float64] = _check_sample_weight(
        sample_weight, X, dtype=np.float64, ensure_non_negative=True
    )
    totals = np.bincount(codes, weights, len(classes))
    factors = class_factors(type(estimator).__name__, class_weight, classes, totals)
    return weights if factors is None else np.asarray(weights * factors[codes])


def class_factors(
    owner: str, class_weight: Any, classes: npt.NDArray[Any], totals: npt.NDArray[Any]
) -> npt.NDArray[np.float64] | None:
    """Return the (K,) class weights, factors of the sample weights; None for ones.

    `totals` (K,) are the sums of the sample weights of each class.
    """
    if class_weight is None:
        return None
    if isinstance(class_weight, str) and class_weight == "balanced":
        factors = totals.sum() / (len(classes) * np.where(totals > 0, totals, 1.0))
    elif isinstance(class_weight, dict):
        unknown = sorted(set(class_weight) - set(classes.tolist()), key=str)
        if unknown:
            raise ValueError(
                f"class_weight has a weight for {unknown[0]!r}, which is no class of y; its "
                f"classes are {classes.tolist()[:10]}."
            )
        factors = np.array([class_weight.get(label, 1.0) for label in classes.tolist()])
        if not (np.isfinite(factors).all() and (factors >= 0).all() and factors.any()):
            raise ValueError(
                f"class_weight must hold finite numbers of at least 0, not all 0, got "
                f"{class_weight!r}."
            )
    else:
        raise ValueError(
            f"The 'class_weight' parameter of {owner} must be a dict from labels to weights, "
            f"'balanced' or None, got {class_weight!r}."
        )
    return np.asarray(factors, dtype=np.float64)


def as_floats(X: Matrix) -> Matrix:
    """Return float32 rows for float32 and types of up to two bytes, float64 rows for others."""
    narrow = X.dtype == np.float32 or X.dtype.itemsize <= 2
    dtype = np.float32 if narrow else np.float64
    if not issparse(X):
        return X.astype(dtype, copy=False)
    rows = csr_array(X.astype(dtype, copy=False))
    if not rows.has_canonical_format or not rows.data.all():
        rows = rows.copy()  # the caller's arrays are not changed
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows


def codes_of(y: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Return the sorted distinct labels of y, and the position of each entry among them."""
    try:
        classes, codes = np.unique(y, return_inverse=True)
    except TypeError as error:
        kinds = sorted({type(label).__name__ for label in y})
        raise ValueError(
            f"y must hold labels of one type that can be sorted, got {', '.join(kinds)}. Convert "
            "them first, for example with astype(str), and drop rows without a label."
        ) from error
    return classes, codes


def _check(estimator: Any, X: Any, *, allow_nan: bool = False, **options: Any) -> Any:
    check_collected(X)
    if isinstance(X, np.ma.MaskedArray):
        X = np.ma.filled(X.astype(np.float64), np.nan)
    try:
        checked = _validated(estimator, X, **options)
    except OverflowError as error:
        raise ValueError(
            f"X must hold numbers of float64, got a larger one ({error}). Replace such numbers, or "
            "make them missing."
        ) from error
    except (TypeError, ValueError) as error:
        if not any(words in str(error) for words in _NO_NUMBERS):
            raise
        kind = TypeError if type(error) is TypeError else ValueError
        raise kind(
            f"X must hold numbers, got text or dates ({error}). Encode such columns first, with "
            "kmeans_kernel.TableEncoder; KMeansKernelClassifier.fit does it unless "
            "feature_transform is None."
        ) from error
    names = getattr(estimator, "feature_names_in_", None)
    X = checked[0] if isinstance(checked, tuple) else checked
    check_finite(type(estimator).__name__, X, names, allow_nan=allow_nan)
    return checked


# Words in the errors of NumPy and scikit-learn for values that are no numbers.
_NO_NUMBERS = ("string", "float()", "datetime64", "timedelta64", "could not be promoted")


def _validated(estimator: Any, X: Any, **options: Any) -> Any:
    """Return what `validate_data` does; ValueError or TypeError if X holds anything but numbers."""
    if hasattr(X, "columns") and getattr(X, "shape", ())[1:] == (0,):
        raise ValueError(
            f"Found array with 0 feature(s) (shape={X.shape}) while a minimum of 1 is required by "
            f"{type(estimator).__name__}."
        )
    try:
        return _numeric(estimator, X, **options)
    except TypeError as error:  # float() takes neither pandas.NA nor NaT
        if "float()" not in str(error):
            raise
        return _numeric(estimator, _with_nan(X), **options)


def _numeric(estimator: Any, X: Any, **options: Any) -> Any:
    checked = validate_data(estimator, X, ensure_all_finite=False, dtype="numeric", **options)
    rows = checked[0] if isinstance(checked, tuple) else checked
    if rows.dtype.kind == "O":  # of a frame with categories, which scikit-learn lets through
        rows.astype(np.float64)
    if rows.dtype.kind in "mM":
        raise ValueError(f"all columns are {rows.dtype}")
    return checked


def _with_nan(X: Any) -> Any:
    """Return a frame, or an array of numbers, with NaN for each missing value."""
    if hasattr(X, "iloc"):
        return X.astype(object).map(_known_or_nan)
    rows = [[_known_or_nan(value) for value in row] for row in X]
    return np.array(rows, dtype=object).astype(np.float64)


def _known_or_nan(value: Any) -> Any:
    return np.nan if is_missing(value) else value


def check_finite(
    owner: str, X: Any, names: Any = None, where: str = "", *, allow_nan: bool = False
) -> None:
    """Raise ValueError for NaN or infinity, with its row and column; `where` names the block.

    With `allow_nan` dense rows may hold NaN.
    """
    if X.dtype.kind != "f":
        return
    if issparse(X):
        if not np.isfinite(X.data).all():
            raise ValueError(
                f"Input X contains NaN or infinity among its stored entries, but "
                f"{owner} needs finite numbers. Fill or drop them first."
            )
        return
    for rows in row_blocks(*X.shape):
        block = X[rows]
        with np.errstate(over="ignore", invalid="ignore"):
            total = block.sum(dtype=np.float64)
        if np.isfinite(total):
            continue
        strange = np.isinf(block) if allow_nan else ~np.isfinite(block)
        if not strange.any():
            continue
        row, column = np.argwhere(strange)[0]
        column_name = f"column {column}" if names is None else f"column {names[column]!r}"
        if np.isnan(block[row, column]):
            what, remedy = "NaN", "Fill missing values first, for example with SimpleImputer"
        else:
            what, remedy = "infinity", "Replace or drop such rows first"
        raise ValueError(
            f"Input X contains {what} ({where}row {rows.start + row}, {column_name}), but "
            f"{owner} needs finite numbers. {remedy}."
        )


def _bad_parameter(owner: object, name: str, expected: str) -> ValueError:
    return ValueError(
        f"The {name!r} parameter of {type(owner).__name__} must be {expected}, "
        f"got {getattr(owner, name)!r}."
    )
