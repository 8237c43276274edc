"""Explanation of scores: the effect of each column, the contribution of each representative."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.encoding import ColumnEncoding
from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix
from kmeans_kernel.core.model.attributions import (
    MOST_SHAPLEY_COLUMNS,
    integrated_gradients,
    shapley_values,
)
from kmeans_kernel.core.model.fitted_model import FittedModel
from kmeans_kernel.estimators.columns._columns import Column, date_parts
from kmeans_kernel.estimators.columns._table import rows_as_values

# The most representatives over which the importance of columns is averaged.
_MOST_IMPORTANT = 500

# The least component of the lift of a representative over which the importance is averaged.
_LEAST_HEIGHT = 1e-6

_SECONDS_OF_DAY = 86_400.0


@dataclass(frozen=True)
class Contribution:
    """The contribution of one representative to the score of one row.

    Attributes
    ----------
    representative : position of the representative in `representatives_` of the classifier
    label : class of the representative
    count : total weight of the training rows in its cluster
    value : its term of the score; negative if it lowers the score
    """

    representative: int
    label: Any
    count: float
    value: float


@dataclass(frozen=True)
class ColumnEffect:
    """What a column adds to the difference between the score of a row and that of the baseline.

    Attributes
    ----------
    column : name of the column
    value, baseline : its value in the row and in the baseline; None if it is missing
    effect : its attribution; negative if it lowers the score
    """

    column: str
    value: Any
    baseline: Any
    effect: float


@dataclass(frozen=True, eq=False)
class ColumnsOfModel:
    """The columns of the table that a model scores.

    Attributes
    ----------
    columns : the columns
    are_values : whether rows are values of a table, of any type, rather than numbers
    """

    columns: tuple[Column, ...]
    are_values: bool

    @cached_property
    def owners(self) -> IntArray:
        """The column of each number that a row is turned into."""
        widths = [len(column.n_levels) for column in self.columns]
        return np.repeat(np.arange(len(self.columns)), widths)

    def of_features(self, model: FittedModel) -> IntArray:
        """Return the (D,) column of each feature of a model."""
        transform = model.sphere_map.feature_transform
        if isinstance(transform, ColumnEncoding):
            return np.asarray(self.owners[transform.columns])
        return self.owners

    def nearest_row(self, row: Array) -> Array:
        """Return the row of values that the table may have next to some numbers."""
        row = row.copy()
        for place, column in enumerate(self.columns):
            mine = self.owners == place
            if column.kind == "date":
                days = np.rint(row[:, mine][:, 0])
                row[:, mine] = date_parts(days * _SECONDS_OF_DAY, column.parts)
            elif column.kind == "number" and column.decimals is not None:
                row[:, mine] = np.round(row[:, mine], column.decimals)
        return row

    def values(self, rows: Matrix) -> Any:
        """Return numbers as values of the table."""
        return rows_as_values(self.columns, np.asarray(rows)) if self.are_values else rows


@dataclass(frozen=True, eq=False)
class Explanation:
    """Why the scores of n rows are what they are: effects of columns, terms of representatives.

    Attributes
    ----------
    X : (n, d) the rows, as numbers
    labels : (n,) the class whose score is explained, for each row
    scores : (n,) the explained scores
    contributions : (n, m) the term of each representative; the terms of a row and the intercept add
        up to the score
    intercepts : (n,) the intercept of each score
    representatives : (m, d) the representatives
    representative_classes : (m,) the label of each representative
    representative_counts : (m,) total weight of the training rows of each representative
    model, class_positions, table, baseline_row : what attributions are computed from
    """

    X: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    scores: Array
    contributions: Array
    intercepts: Array
    representatives: Array
    representative_classes: npt.NDArray[Any]
    representative_counts: npt.NDArray[Any]
    model: FittedModel
    class_positions: IntArray
    table: ColumnsOfModel
    baseline_row: Array

    @classmethod
    def of(
        cls,
        model: FittedModel,
        X: Matrix,
        columns: IntArray,
        table: ColumnsOfModel,
        baseline: Array | None = None,
    ) -> Explanation:
        """Explain the score of one class for each row; `columns` (n,) are class positions.

        `baseline` (1, d) is the row that they are compared with; None for a typical one.
        """
        contributions = model.contributions(X, columns)
        intercepts = model.intercept[columns]
        return cls(
            model=model,
            class_positions=columns,
            table=table,
            baseline_row=table.nearest_row(typical_row(model)) if baseline is None else baseline,
            X=X,
            labels=model.classes[columns],
            scores=contributions.sum(axis=1) + intercepts,
            contributions=contributions,
            intercepts=intercepts,
            representatives=model.representatives,
            representative_classes=model.classes[model.representative_classes],
            representative_counts=model.representative_counts,
        )

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def attributions(self) -> Array:
        """The (n, n_columns) effect of each column: they add up to `scores − baseline_scores`.

        Exact Shapley values for up to ten columns, else integrated gradients; see docs/method.md.
        """
        features = self.table.of_features(self.model)
        used, groups = np.unique(features, return_inverse=True)
        exact = len(used) <= MOST_SHAPLEY_COLUMNS
        attribute = shapley_values if exact else integrated_gradients
        out = np.zeros((len(self), len(self.table.columns)))
        out[:, used] = attribute(
            self.model, self.X, self.baseline_row, self.class_positions, groups.astype(np.intp)
        )
        return out

    @cached_property
    def baseline_scores(self) -> Array:
        """The (n,) scores of the baseline for the labels."""
        positions = np.arange(len(self.model.classes))
        rows = np.repeat(np.asarray(self.baseline_row), len(positions), axis=0)
        scores = self.model.contributions(rows, positions).sum(axis=1) + self.model.intercept
        return np.asarray(scores[self.class_positions])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(column.name for column in self.table.columns)

    @cached_property
    def baseline(self) -> Any:
        """The (n_columns,) values of the row that the rows are compared with."""
        return self.table.values(self.baseline_row)[0]

    def largest_effects(self, row: int, n: int | None = None) -> list[ColumnEffect]:
        """Return the effects of the columns on the score of a row, the largest in size first.

        Parameters
        ----------
        row : position of the row in X
        n : most columns; None for all that have an effect
        """
        row = range(len(self))[row]
        effects = self.attributions[row]
        values = self.table.values(self.X[row : row + 1])[0]
        order = np.argsort(-np.abs(effects), kind="stable")
        return [
            ColumnEffect(
                self.columns[j], _plain(values[j]), _plain(self.baseline[j]), float(effects[j])
            )
            for j in order[:n].tolist()
            if effects[j] != 0
        ]

    def largest(self, row: int, n: int = 5) -> tuple[list[Contribution], list[Contribution]]:
        """Return the largest positive and negative contributions, at most `n` each.

        Parameters
        ----------
        row : position of the row in X
        n : most contributions of each sign

        Returns
        -------
        positive contributions, the largest first, and negative contributions, the most negative
        first
        """
        values = self.contributions[row]
        order = np.argsort(values, kind="stable")
        negative = [self._contribution(row, q) for q in order[:n] if values[q] < 0]
        positive = [self._contribution(row, q) for q in order[::-1][:n] if values[q] > 0]
        return positive, negative

    def _contribution(self, row: int, q: int) -> Contribution:
        return Contribution(
            int(q),
            self.representative_classes[[q]].tolist()[0],
            float(self.representative_counts[q]),
            float(self.contributions[row, q]),
        )


def _plain(value: Any) -> Any:
    """Return a value as a type of Python, None if it is missing."""
    plain = value.item() if isinstance(value, np.generic) else value
    return None if plain is None or plain != plain else plain


def as_row(row: Any) -> Any:
    """Return one row, which may be a series or a list of values, as a table of one row."""
    if hasattr(row, "to_frame") and getattr(row, "ndim", 2) == 1:
        return row.to_frame().T
    if isinstance(row, list | tuple) and not any(isinstance(one, list | tuple) for one in row):
        return [row]
    return row[None] if isinstance(row, np.ndarray) and row.ndim == 1 else row


def typical_row(model: FittedModel) -> Array:
    """Return the (1, d) row that rows are compared with by default.

    It has the mean of each number and the most frequent level of each category. Without a feature
    transform it is the mean of the representatives, weighted by their counts.
    """
    transform = model.sphere_map.feature_transform
    if transform is not None:
        return np.asarray(transform.invert(np.zeros((1, transform.n_features))))
    counts = np.asarray(model.representative_counts, dtype=np.float64)
    return np.asarray(counts @ model.representatives / counts.sum())[None]


def importances(model: FittedModel, table: ColumnsOfModel) -> Array:
    """Return the (n_columns,) mean size of the effect of each column, as shares of their sum.

    The mean is over the representatives, weighted by their counts, and the score is that of the
    class of each.
    """
    features = table.of_features(model)
    used, groups = np.unique(features, return_inverse=True)
    near = np.arange(len(model.directions))
    if model.sphere_map.lift > 0:  # others stand for points that are all but infinitely far
        near = np.flatnonzero(model.directions[:, -1] > _LEAST_HEIGHT)
    some = near[:: max(1, -(-len(near) // _MOST_IMPORTANT))]
    if not len(some):
        return np.zeros(len(table.columns))
    effects = integrated_gradients(
        model,
        np.asarray(model.representatives)[some],
        typical_row(model),
        model.representative_classes[some],
        groups.astype(np.intp),
    )
    out = np.zeros(len(table.columns))
    out[used] = model.representative_counts[some] @ np.abs(effects)
    return out / out.sum() if out.any() else out


def columns_of(labels: Any, classes: npt.NDArray[Any], n: int) -> IntArray:
    """Return the (n,) class positions of labels: an array of n labels, or one label for all."""
    asked = np.asarray(labels, dtype=classes.dtype if classes.dtype.kind != "U" else None)
    if asked.ndim > 1 or (asked.ndim == 1 and len(asked) != n):
        raise ValueError(f"labels must be one label, or one for each of the {n} rows of X.")
    wrong = asked[~np.isin(asked, classes)].tolist()
    if wrong:
        raise ValueError(
            f"labels holds {wrong[0]!r}, which is no class of this classifier; they are "
            f"{classes.tolist()[:10]}."
        )
    return np.broadcast_to(np.searchsorted(classes, asked), n)
