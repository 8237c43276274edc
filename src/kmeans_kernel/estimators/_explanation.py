"""Why a row was classified as it was: what each representative said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array, IntArray
from kmeans_kernel.core.arrays.sparse import Matrix
from kmeans_kernel.core.model.fitted_model import FittedModel


@dataclass(frozen=True)
class Voice:
    """What one representative said about one row.

    Attributes
    ----------
    representative : its position among the representatives of the classifier
    label : the class it belongs to
    rows : the weight of the training rows it stands for
    contribution : what it added to the score; below zero it spoke against
    """

    representative: int
    label: Any
    rows: float
    contribution: float


@dataclass(frozen=True, eq=False)
class Explanation:
    """What the representatives contributed to scores of n rows.

    Attributes
    ----------
    X : (n, d) the rows
    labels : (n,) the class whose score is explained, for each row
    scores : (n,) these scores
    contributions : (n, m) what each representative added; with the intercept they add up to the
        score
    intercepts : (n,) what the scores start from
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

    def loudest(self, row: int, n: int = 5) -> tuple[list[Voice], list[Voice]]:
        """Return the representatives that spoke loudest for and against, at most `n` each.

        Parameters
        ----------
        row : the position of the row
        n : how many

        Returns
        -------
        those for, the loudest first, and those against, the loudest first
        """
        contributions = self.contributions[row]
        order = np.argsort(contributions, kind="stable")
        against = [self._voice(row, q) for q in order[:n] if contributions[q] < 0]
        spoke_for = [self._voice(row, q) for q in order[::-1][:n] if contributions[q] > 0]
        return spoke_for, against

    def by_class(self, row: int) -> dict[Any, float]:
        """Return what the representatives of each class contributed to the score of a row."""
        own = self.contributions[row]
        return {
            label: float(own[self.representative_classes == label].sum())
            for label in np.unique(self.representative_classes).tolist()
        }

    def _voice(self, row: int, q: int) -> Voice:
        return Voice(
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
