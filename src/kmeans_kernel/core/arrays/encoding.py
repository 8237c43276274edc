"""Encoding of the columns of a table as features that a kernel can use.

Columns are numbers or categories, with NaN where a value is missing. A category column holds the
positions of its levels, −1 for a level that training has not seen. The encoding maps each column to
a group of features:

- values: the number, standardised or under asinh;
- steps: its position among quantiles of the training rows, as a thermometer code with linear steps
  (piecewise-linear encoding; Gorishniy, Rubachev and Babenko, "On embeddings for numerical features
  in tabular deep learning", NeurIPS 2022). The squared distance of two codes grows with the number
  of quantiles between the numbers, so a kernel can follow abrupt, axis-aligned changes as trees do;
- levels: one-hot code of a category;
- missing: an indicator, for columns in which training rows had missing values.

A missing number and an unknown level are encoded as the mean of the training rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Literal, TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.feature_transform import (
    FeatureTransform,
    learn_asinh,
    learn_standard,
)
from kmeans_kernel.core.arrays.matrices import Array, IntArray

EncodingKind: TypeAlias = Literal["standard", "asinh", "piecewise", "both"]

# Steps of the thermometer code of a column: at most this many, and over all columns at most
# `_MOST_STEPS_IN_ALL`, but no fewer than `_LEAST_STEPS` for each.
_MOST_STEPS, _MOST_STEPS_IN_ALL, _LEAST_STEPS = 64, 512, 4

# Factor of the squared gradients of steps beside those of values. 1 would follow every abrupt
# change and lose smooth functions of a radius; 0 would leave the values alone.
_SHARE_OF_STEPS = 0.3

# Position of the steps among the kinds of features.
_STEPS = 1

# The position of a level that training has not seen.
UNKNOWN_LEVEL = -1


@dataclass(frozen=True, eq=False)
class FeatureGroups:
    """Groups of features that share a scale.

    Attributes
    ----------
    index : (D,) the group of each feature
    shares : (D,) the square of a group's scale is the sum of the squared gradients of its features
        times their shares
    """

    index: IntArray
    shares: Array


@dataclass(frozen=True, eq=False)
class ColumnEncoding:
    """Encoding of d columns as D features: values, steps, levels, missing, in this order.

    Attributes
    ----------
    kind : how numbers are encoded: "standard" or "asinh" values alone, "piecewise" steps alone,
        "both" values and steps
    n_columns : d
    values : the transform of the V columns that have a value feature; None if V is 0
    value_columns : (V,) their positions
    step_columns, step_starts, step_widths, step_means, step_gains : (S,) column, least number and
        length of each step, mean and gain of its feature
    level_columns, level_codes, level_shares : (L,) column, position and frequency of each level
    missing_columns, missing_shares : (M,) column, and frequency of missing values
    """

    kind: EncodingKind
    n_columns: int
    values: FeatureTransform | None
    value_columns: IntArray
    step_columns: IntArray
    step_starts: Array
    step_widths: Array
    step_means: Array
    step_gains: Array
    level_columns: IntArray
    level_codes: Array
    level_shares: Array
    missing_columns: IntArray
    missing_shares: Array

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    @property
    def n_features(self) -> int:
        """D, the number of features."""
        return sum(self._lengths)

    def for_columns(self, order: IntArray) -> ColumnEncoding:
        """Return the encoding of rows X that equals this one of X[:, order]."""
        places = {
            name: order[getattr(self, name)]
            for name in ("value_columns", "step_columns", "level_columns", "missing_columns")
        }
        return replace(self, **places)

    @property
    def columns(self) -> IntArray:
        """The (D,) column of each feature."""
        return np.concatenate(
            [self.value_columns, self.step_columns, self.level_columns, self.missing_columns]
        )

    @property
    def groups(self) -> FeatureGroups:
        """The groups of features that share a scale: those of one kind of one column.

        A number moves through the steps of its column one after the other, so their effects add up,
        with a factor that was chosen on development tables; of the levels of a category a row has
        one, and the effect is their mean.
        """
        kinds = np.repeat(np.arange(4), self._lengths)
        index = np.unique(self.columns * 4 + kinds, return_inverse=True)[1].astype(np.intp)
        shares = np.where(kinds == _STEPS, _SHARE_OF_STEPS, 1.0 / np.bincount(index)[index])
        return FeatureGroups(index, shares)

    @property
    def _lengths(self) -> list[int]:
        parts = (self.value_columns, self.step_columns, self.level_columns, self.missing_columns)
        return [len(part) for part in parts]

    def apply(self, X: Array) -> Array:
        """Return the (n, D) features of rows, in the type of X if that is a floating-point type."""
        dtype = X.dtype if X.dtype.kind == "f" else np.float64
        X = X.astype(np.float64, copy=False)
        out = np.empty((len(X), self.n_features))
        values, steps, levels, missing = np.split(out, np.cumsum(self._lengths)[:3], axis=1)
        if self.values is not None:
            values[:] = self.values.apply(X[:, self.value_columns])
        self._write_steps(X, steps)
        codes = X[:, self.level_columns]
        np.equal(codes, self.level_codes, out=levels)
        levels -= self.level_shares * (codes >= 0)
        np.isnan(X[:, self.missing_columns], out=missing)
        missing -= self.missing_shares
        return out.astype(dtype, copy=False)

    def _write_steps(self, X: Array, out: Array) -> None:
        with np.errstate(over="ignore"):
            np.subtract(X[:, self.step_columns], self.step_starts, out=out)
            out /= self.step_widths
        np.clip(out, 0.0, 1.0, out=out)
        out -= self.step_means
        out *= self.step_gains
        out[np.isnan(out)] = 0.0

    def invert(self, features: Array) -> Array:
        """Return (n, d) rows that come nearest to features: means, most frequent levels, NaN."""
        features = features.astype(np.float64)
        values, steps, levels, missing = np.split(features, np.cumsum(self._lengths)[:3], axis=1)
        X = np.full((len(features), self.n_columns), np.nan)
        positions = np.clip(steps / self.step_gains + self.step_means, 0.0, 1.0)
        for column in np.unique(self.step_columns):
            mine = self.step_columns == column
            start = self.step_starts[mine].min()
            X[:, column] = start + positions[:, mine] @ self.step_widths[mine]
        if self.values is not None:
            X[:, self.value_columns] = self.values.invert(values)
        for column in np.unique(self.level_columns):
            mine = self.level_columns == column
            likeliest = (levels[:, mine] + self.level_shares[mine]).argmax(axis=1)
            X[:, column] = self.level_codes[mine][likeliest]
        absent = missing + self.missing_shares > 0.5
        rows, places = np.nonzero(absent)
        X[rows, self.missing_columns[places]] = np.nan
        return X


# What a SphereMap starts with: a transform of each number, or an encoding of columns.
FeatureMap: TypeAlias = FeatureTransform | ColumnEncoding


def learn_encoding(
    X: Array, weights: Array, n_levels: Sequence[int], kind: EncodingKind
) -> ColumnEncoding:
    """Learn the encoding of columns from rows and their weights; a weight of 2 counts as two rows.

    Parameters
    ----------
    X : (n, d) numbers, positions of levels, NaN for missing values
    n_levels : d numbers of levels; 0 for a column of numbers
    kind : how numbers are encoded
    """
    X, levels = X.astype(np.float64), np.asarray(n_levels)
    numbers = np.flatnonzero(levels == 0)
    knots = {int(j): _knots(X[:, j], weights, _steps_of_each(len(numbers))) for j in numbers}
    # A column of two numbers has one step, which is its value.
    stepped = [j for j, found in knots.items() if len(found) > 2 and kind in ("piecewise", "both")]
    valued = np.array([j for j in knots if kind != "piecewise" or j not in stepped], dtype=np.intp)
    columns, starts, widths, means, gains = _learn_steps(X, weights, {j: knots[j] for j in stepped})
    level_columns, codes, shares = _learn_levels(X, weights, levels)
    missing_columns, missing_shares = _learn_missing(X, weights)
    return ColumnEncoding(
        kind=kind,
        n_columns=X.shape[1],
        values=_learn_values(X[:, valued], weights, kind) if len(valued) else None,
        value_columns=valued,
        step_columns=columns,
        step_starts=starts,
        step_widths=widths,
        step_means=means,
        step_gains=gains,
        level_columns=level_columns,
        level_codes=codes,
        level_shares=shares,
        missing_columns=missing_columns,
        missing_shares=missing_shares,
    )


def _steps_of_each(n_numbers: int) -> int:
    return max(_LEAST_STEPS, min(_MOST_STEPS, _MOST_STEPS_IN_ALL // max(1, n_numbers)))


def _knots(x: Array, weights: Array, steps: int) -> Array:
    """Return the ends of the steps of a column: its distinct numbers if few, else quantiles."""
    known = np.flatnonzero(~np.isnan(x))
    order = known[np.argsort(x[known], kind="stable")]
    ordered = x[order]
    distinct = ordered[np.append(True, ordered[1:] != ordered[:-1])] if len(ordered) else ordered
    if len(distinct) <= steps + 1:
        return distinct
    # The middle of the lower and the upper quantile: a column with the other sign has the same.
    lower = _lower_quantiles(ordered, weights[order], np.arange(steps + 1) / steps)
    upper = -_lower_quantiles(
        -ordered[::-1], weights[order][::-1], np.arange(steps, -1, -1) / steps
    )
    return np.unique(lower + (upper - lower) / 2)


def _lower_quantiles(ordered: Array, weights: Array, shares: Array) -> Array:
    """Return for each share the least value with that share of the weight at or below it."""
    below = np.cumsum(weights)
    # A little is taken off, so that rounding of the sums does not decide.
    places = np.searchsorted(below, (shares - 1e-9) * below[-1])
    return np.asarray(ordered[np.minimum(places, len(ordered) - 1)])


def _learn_values(X: Array, weights: Array, kind: EncodingKind) -> FeatureTransform:
    """Learn the transform of numbers, each column from those that are known."""
    found = [_learn_value(column, weights, kind) for column in X.T]
    return FeatureTransform(
        found[0].kind,
        np.concatenate([one.centers for one in found]),
        np.concatenate([one.widths for one in found]),
        np.concatenate([one.gains for one in found]),
    )


def _learn_value(x: Array, weights: Array, kind: EncodingKind) -> FeatureTransform:
    known = ~np.isnan(x)
    if not known.any():
        x, weights, known = np.zeros(1), np.ones(1), np.array([True])
    column, weights = x[known, None], weights[known]
    learn = learn_asinh if kind == "asinh" else learn_standard
    return learn(column, weights)


def _learn_steps(
    X: Array, weights: Array, knots: dict[int, Array]
) -> tuple[IntArray, Array, Array, Array, Array]:
    """Return columns, starts, widths, means and gains of the steps between knots."""
    if not knots:
        none = np.empty(0)
        return np.empty(0, dtype=np.intp), none, none.copy(), none.copy(), none.copy()
    columns = np.repeat(list(knots), [len(found) - 1 for found in knots.values()]).astype(np.intp)
    starts = np.concatenate([found[:-1] for found in knots.values()])
    widths = np.concatenate([np.diff(found) for found in knots.values()])
    codes = np.clip((X[:, columns] - starts) / widths, 0.0, 1.0)
    absent = np.isnan(codes)
    shares = np.where(absent, 0.0, weights[:, None])
    shares /= shares.sum(axis=0)
    codes[absent] = 0.0
    means = (shares * codes).sum(axis=0)
    variances = (shares * (codes - means) ** 2).sum(axis=0)
    gains = 1.0 / np.sqrt(np.bincount(columns, variances, X.shape[1])[columns])
    return columns, starts, widths, means, gains


def _learn_levels(X: Array, weights: Array, n_levels: IntArray) -> tuple[IntArray, Array, Array]:
    """Return columns, positions and frequencies of the levels."""
    columns = np.repeat(np.arange(len(n_levels)), n_levels)
    codes = np.concatenate([np.arange(count, dtype=np.float64) for count in n_levels])
    known = (weights[:, None] * (X >= 0)).sum(axis=0)
    counts = weights @ (X[:, columns] == codes)
    return columns, codes, np.asarray(counts / np.where(known > 0, known, 1.0)[columns])


def _learn_missing(X: Array, weights: Array) -> tuple[IntArray, Array]:
    """Return the columns with missing and with known values, and the frequencies of missing."""
    shares = weights @ np.isnan(X) / weights.sum()
    columns = np.flatnonzero((shares > 0) & (shares < 1))
    return columns, np.asarray(shares[columns])
