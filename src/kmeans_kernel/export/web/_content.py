"""Content of a page beside the model: pictures of representatives, and test data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.estimators.columns._columns import Column
from kmeans_kernel.export.web._frame import Frame
from kmeans_kernel.export.web._table import cells_of, rows_before_steps
from kmeans_kernel.report._evaluation import merge_labels, predict_all
from kmeans_kernel.report._inspection import all_representative_images, classifier_of, sees_images

# Most test rows of a page, to bound the size of the file.
MAX_ROWS = 10_000

# Share of the range of a feature that the page shows: a coarser value would look different.
_VISIBLE = 1e-4


@dataclass(frozen=True, eq=False)
class TestData:
    """Test rows with their true and predicted labels.

    Attributes
    ----------
    X : the rows as passed in, at most `MAX_ROWS`
    probabilities : (n, K) predicted probabilities
    rows : (n, d) the rows as the page stores them
    labels : (L,) the union of the model's labels and the rows' labels, sorted
    truth, given : (n,) true and predicted labels, as positions in `labels`
    left_out : number of rows beyond `MAX_ROWS`
    """

    X: Any
    probabilities: Array
    rows: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    truth: npt.NDArray[np.int32]
    given: npt.NDArray[np.int32]
    left_out: int

    __test__ = False  # keeps pytest from collecting the class because of its name

    @classmethod
    def classify(cls, estimator: Any, X: Any, y: Any, columns: Sequence[Column] | None) -> TestData:
        """Classify the first `MAX_ROWS` rows, of a table with these columns or, if None, images."""
        y = np.asarray(y)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if y.shape != (n,):
            raise ValueError(
                f"y must have one label for each of the {n} rows of X, got an array of shape "
                f"{y.shape}."
            )
        if not n:
            raise ValueError("X must have at least one row, got none. Leave out X and y instead.")
        X, y = X[:MAX_ROWS], y[:MAX_ROWS]
        X = X.toarray() if issparse(X) else X
        _, probabilities = predict_all(estimator, X)
        rows = np.asarray(X).reshape(len(y), -1) if columns is None else cells_of(columns, X)
        labels, truth, places = merge_labels(y, estimator.classes_)
        return cls(
            X=X,
            probabilities=probabilities,
            rows=smallest_dtype(rows, exact=not sees_images(estimator)),
            labels=labels,
            truth=truth.astype(np.int32),
            given=places[probabilities.argmax(axis=1)].astype(np.int32),
            left_out=n - len(y),
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays that the page stores."""
        return {
            "test.rows": self.rows,
            "test.true": self.truth,
            "test.given": self.given,
            "test.sure": self.probabilities.max(axis=1).astype(np.float32),
        }

    @property
    def error_percent(self) -> float:
        """Percentage of rows with the wrong label."""
        return 100 * float(np.mean(self.truth != self.given))


def smallest_dtype(rows: npt.NDArray[Any], *, exact: bool) -> npt.NDArray[Any]:
    """Return rows in the smallest data type that the page reads.

    With `exact` the type must hold every value; otherwise float32 may round values by up to
    `_VISIBLE` of the range of their feature.
    """
    if rows.min() >= 0 and rows.max() <= 255 and (rows == np.rint(rows)).all():
        return rows.astype(np.uint8)
    with np.errstate(over="ignore"):
        narrow = rows.astype(np.float32)
        off = np.abs(np.where(np.isnan(rows), 0.0, rows - narrow))
        kept = (off <= (0.0 if exact else _VISIBLE * np.ptp(rows, axis=0))).all()
    return narrow if kept else rows.astype(np.float64)


def representative_pictures(
    estimator: Any, images: npt.NDArray[Any] | None, shape: tuple[int, int], frame: Frame
) -> tuple[Array | None, str]:
    """Return (m, height, width) pictures of the representatives, ink 0 to 255, and a note on them.

    If the classifier's features are not pixels, a representative is shown by the nearest of
    `images`; without images there are no pictures.
    """
    found = all_representative_images(estimator)
    if found is None and not sees_images(estimator):  # rows of pixels, by the user's image_shape
        found = rows_before_steps(estimator).reshape(-1, *shape)
    if found is not None:
        lowest = found.min(axis=(1, 2), keepdims=True)
        range_ = found.max(axis=(1, 2), keepdims=True) - lowest
        return _ink((found - lowest) / np.where(range_ > 0, range_, 1), frame), ""
    if images is None:
        return None, "They have no pictures; export with test images to see the most similar one."
    nearest = images[_nearest(estimator, images)].astype(np.float64)
    shown = _ink((nearest - frame.low) / max(frame.high - frame.low, 1e-300), frame)
    return shown, "Each is shown by the test image that is most similar."


def _ink(light: Array, frame: Frame) -> Array:
    """Return the ink, 0 to 255, of images with values between 0 and 1."""
    return np.rint(255 * (1 - light if frame.inverted else light)).astype(np.uint8)


def _nearest(estimator: Any, images: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return the index of the image with the highest cosine to each representative."""
    model = classifier_of(estimator).model_
    features = estimator[:-1].transform(images)
    rows = model.sphere_map.apply(features, np.float32)
    return np.asarray((model.directions.astype(np.float32) @ rows.T).argmax(axis=1))
