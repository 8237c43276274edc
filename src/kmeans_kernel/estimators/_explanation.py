"""Explanation of a score by the contribution of each representative."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array, IntArray, Matrix
from kmeans_kernel.core.model.fitted_model import FittedModel


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


@dataclass(frozen=True, eq=False)
class Explanation:
    """The contributions of the representatives to the scores of n rows.

    Attributes
    ----------
    X : (n, d) the rows
    labels : (n,) the class whose score is explained, for each row
    scores : (n,) the explained scores
    contributions : (n, m) the term of each representative; the terms of a row and the intercept add
        up to the score
    intercepts : (n,) the intercept of each score
    representatives : (m, d) the representatives
    representative_classes : (m,) the label of each representative
    representative_counts : (m,) total weight of the training rows of each representative
    """

    X: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    scores: Array
    contributions: Array
    intercepts: Array
    representatives: Array
    representative_classes: npt.NDArray[Any]
    representative_counts: npt.NDArray[Any]

    @classmethod
    def of(cls, model: FittedModel, X: Matrix, columns: IntArray) -> Explanation:
        """Explain the score of one class for each row; `columns` (n,) are class positions."""
        contributions = model.contributions(X, columns)
        intercepts = model.intercept[columns]
        return cls(
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
