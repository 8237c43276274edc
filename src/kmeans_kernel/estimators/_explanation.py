"""Why a row was classified as it was: the contribution of each representative to its score."""

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
    representative : its position among the representatives of the classifier
    label : the class it belongs to
    count : the weight of the training rows it stands for
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
    scores : (n,) these scores
    contributions : (n, m) the term of each representative; with the intercept they add up to the
        score
    intercepts : (n,) the constant of each score
    representatives : (m, d)
    representative_classes : (m,) the label of each
    representative_counts : (m,) the weight of the training rows that each stands for
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
        """Explain the scores of rows in the columns, (n,), of some classes."""
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
        row : the position of the row
        n : most contributions of each sign

        Returns
        -------
        the positive ones, the largest first, and the negative ones, the most negative first
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
    """Return the positions of labels among the classes: one for each of n rows, or for all."""
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
