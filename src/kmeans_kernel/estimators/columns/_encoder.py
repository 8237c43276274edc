"""The encoding of a table as a transformer of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted

from kmeans_kernel.core.arrays.encoding import ColumnEncoding, learn_encoding
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators.columns._columns import Column, n_levels_of
from kmeans_kernel.estimators.columns._table import (
    as_table,
    code_table,
    learn_table,
    plain_columns,
    refuse_repeated_names,
    rows_as_values,
)
from kmeans_kernel.utils.validation import check_option, check_rows


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode a table as it comes as numbers for a kernel or a linear model.

    It takes pandas, polars and Arrow tables and arrays, with numbers, booleans, categories, text,
    dates, durations (in seconds) and missing values. `KMeansKernelClassifier` does the same by
    itself; this transformer is for other estimators, and for `partial_fit` on tables.

    A number is standardised, coded by its position among the quantiles of the training rows
    (piecewise-linear encoding), or both. A category becomes one column for each level; rare
    levels, with fewer than 5 rows, and those that training has not seen share one. A date becomes
    days since 1970, month, weekday and hour. Where training rows had missing values there is an
    indicator. Constant columns, columns without any value and ids (text with nearly as many levels
    as rows) are left out.

    Parameters
    ----------
    numbers : {"standard", "asinh", "piecewise", "both"}, default="both"
        The encoding of numbers: standardised; the inverse hyperbolic sine, for long tails;
        piecewise-linear; or standardised and piecewise-linear.
    column_types : dict or None, default=None
        What some columns are, by name, or by position in an array: "number", "category", "date" or
        "drop". Others are found by their type and values.

    Attributes
    ----------
    columns_ : tuple of Column
        What each column was taken for: name, kind, levels and more.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, when X had string column names.

    Examples
    --------
    >>> from kmeans_kernel import TableEncoder
    >>> X = [[41, "Rome"], [38, "Oslo"], [None, "Rome"], [29, "Rome"]]
    >>> encoder = TableEncoder(numbers="standard").fit(X)
    >>> encoder.get_feature_names_out().tolist()
    ['x0', 'x1 = Rome', 'x1 = Oslo', 'x0 missing']
    >>> encoder.transform([[41, "Paris"]]).round(2).tolist()
    [[0.98, 0.0, 0.0, -0.25]]
    """

    _columns: tuple[Column, ...] | None
    _encoding: ColumnEncoding

    def __init__(
        self,
        numbers: Literal["standard", "asinh", "piecewise", "both"] = "both",
        *,
        column_types: dict[Any, str] | None = None,
    ) -> None:
        self.numbers = numbers
        self.column_types = column_types

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn columns, quantiles and levels.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)
        y : ignored
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        del y
        kind = check_option(self, "numbers", "standard", "asinh", "piecewise", "both")
        refuse_repeated_names(self, X)
        table = as_table(X, self.column_types)
        if table is None:
            self._columns = None
            coded = check_rows(self, X, reset=True, allow_nan=True, sparse=False)
            n_levels: Sequence[int] = (0,) * coded.shape[1]
        else:
            self._columns, coded = learn_table(self, table, self.column_types, sample_weight)
            n_levels = n_levels_of(self._columns)
        weights = _check_sample_weight(
            sample_weight, coded, dtype=np.float64, ensure_non_negative=True
        )
        used = weights > 0
        if not used.any():
            raise ValueError("sample_weight is zero for every row; give some rows a weight.")
        coded, weights = coded[used], weights[used]
        self._encoding = learn_encoding(coded, weights, n_levels, kind)  # type: ignore[arg-type]
        return self

    def transform(self, X: Any) -> Array:
        """Return the features of rows.

        Parameters
        ----------
        X : frame or array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features_out)
        """
        check_is_fitted(self)
        return self._encoding.apply(self._coded(X))

    def _coded(self, X: Any) -> Array:
        if self._columns is not None:
            return code_table(self, self._columns, X)
        return np.asarray(check_rows(self, X, reset=False, allow_nan=True, sparse=False))

    def inverse_transform(self, X: Any) -> npt.NDArray[Any]:
        """Return the rows that come nearest to features, as values of the table."""
        check_is_fitted(self)
        features = np.asarray(X, dtype=np.float64)
        if features.ndim != 2 or features.shape[1] != self._encoding.n_features:
            raise ValueError(
                f"X must have the {self._encoding.n_features} features that transform gives, one "
                f"row each, got an array of shape {features.shape}. Give rows of transform."
            )
        coded = self._encoding.invert(features)
        return coded if self._columns is None else rows_as_values(self._columns, coded)

    def get_feature_names_out(self, input_features: Any = None) -> npt.NDArray[np.object_]:
        """Return the names of the features, such as "age", "age > 30", "city = Rome"."""
        check_is_fitted(self)
        del input_features  # the names of `fit`
        return np.array(feature_names(self.columns_, self._encoding), dtype=object)

    @property
    def columns_(self) -> tuple[Column, ...]:
        """What each column of X was taken for."""
        check_is_fitted(self)
        return plain_columns(self, self._encoding) if self._columns is None else self._columns

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_encoding")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags


def feature_names(columns: Sequence[Column], encoding: ColumnEncoding) -> list[str]:
    """Return the names of the features of an encoding, which differ from each other."""
    names = [name for column in columns for name in column.code_names]
    owners = [column for column in columns for _ in column.n_levels]
    found = [names[j] for j in encoding.value_columns]
    steps = zip(encoding.step_columns, encoding.step_starts, strict=True)
    found += [f"{names[j]} > {start:.15g}" for j, start in steps]
    levels = zip(encoding.level_columns, encoding.level_codes, strict=True)
    for j, code in levels:
        known = owners[j].levels
        found.append(f"{names[j]} = {known[int(code)] if code < len(known) else '(other)'}")
    return _distinct([*found, *(f"{names[j]} missing" for j in encoding.missing_columns)])


def _distinct(names: Sequence[str]) -> list[str]:
    """Return names with a number behind those that came before."""
    found: dict[str, None] = {}
    for name in names:
        new, times = name, 1
        while new in found:
            times += 1
            new = f"{name} ({times})"
        found[new] = None
    return list(found)
