"""What a page shows beside the model: its representatives, its features, and test data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel.core.arrays.blocking import Array
from kmeans_kernel.estimators.transformers._agop_projection import LearnedMetric
from kmeans_kernel.export.web._frame import Frame
from kmeans_kernel.report._evaluation import labels_together, predict_all
from kmeans_kernel.report._inspection import all_representative_images, classifier_of, sees_images

# Rows that a page holds at most.
MOST_ROWS = 10_000

# A slider has about so many places.
_PLACES = 200


@dataclass(frozen=True, eq=False)
class TestData:
    """Labelled rows, and what the model says of them.

    Attributes
    ----------
    X : the rows as they came, at most `MOST_ROWS`
    shares : (n, K) their probabilities
    rows : (n, d) the rows as the page holds them
    labels : (L,) all labels, the model's and the rows'
    truth, given : (n,) positions in `labels`
    left_out : how many rows more there were
    """

    X: Any
    shares: Array
    rows: npt.NDArray[Any]
    labels: npt.NDArray[Any]
    truth: npt.NDArray[np.int32]
    given: npt.NDArray[np.int32]
    left_out: int

    __test__ = False  # pytest takes the name for a test

    @classmethod
    def of(cls, estimator: Any, X: Any, y: Any) -> TestData:
        """Classify rows; those beyond the most that a page holds are left out."""
        y = np.asarray(y)
        n = X.shape[0] if hasattr(X, "shape") else len(X)
        if y.shape != (n,):
            raise ValueError(
                f"y must have one label for each of the {n} rows of X, got an array of shape "
                f"{y.shape}."
            )
        if not n:
            raise ValueError("X must have at least one row, got none. Leave out X and y instead.")
        X, y = X[:MOST_ROWS], y[:MOST_ROWS]
        X = X.toarray() if issparse(X) else X
        _, shares = predict_all(estimator, X)
        labels, truth, places = labels_together(y, estimator.classes_)
        return cls(
            X=X,
            shares=shares,
            rows=small(np.asarray(X).reshape(len(y), -1), exact=not sees_images(estimator)),
            labels=labels,
            truth=truth.astype(np.int32),
            given=places[shares.argmax(axis=1)].astype(np.int32),
            left_out=n - len(y),
        )

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return what the page holds of it."""
        return {
            "test.rows": self.rows,
            "test.true": self.truth,
            "test.given": self.given,
            "test.sure": self.shares.max(axis=1).astype(np.float32),
        }

    @property
    def error_percent(self) -> float:
        """The share of rows with the wrong label, in per cent."""
        return 100 * float(np.mean(self.truth != self.given))


def small(rows: npt.NDArray[Any], *, exact: bool) -> npt.NDArray[Any]:
    """Return rows in the smallest type that a page reads and that holds them.

    Pixels may be rounded to float32; what must be exact is rounded to nothing.
    """
    if rows.min() >= 0 and rows.max() <= 255 and (rows == np.rint(rows)).all():
        return rows.astype(np.uint8)
    with np.errstate(over="ignore"):
        narrow = rows.astype(np.float32)
    kept = (narrow == rows).all() if exact else np.isfinite(narrow).all()
    return narrow if kept else rows.astype(np.float64)


def pictures(
    estimator: Any, images: npt.NDArray[Any] | None, shape: tuple[int, int], frame: Frame
) -> tuple[Array | None, str]:
    """Return the ink of the (m, height, width) representatives, 0 to 255, and what they are.

    Where the classifier did not see pixels, a picture is that of the image that is most alike; with
    no images there is none.
    """
    found = all_representative_images(estimator)
    if found is None and not sees_images(estimator):  # rows that are images, as we were told
        found = points(estimator).reshape(-1, *shape)
    if found is not None:
        lowest = found.min(axis=(1, 2), keepdims=True)
        range_ = found.max(axis=(1, 2), keepdims=True) - lowest
        return _ink((found - lowest) / np.where(range_ > 0, range_, 1), frame), ""
    if images is None:
        return None, "They are no pictures; export with images to see the most alike of these."
    nearest = images[_nearest(estimator, images)].astype(np.float64)
    shown = _ink((nearest - frame.low) / max(frame.high - frame.low, 1e-300), frame)
    return shown, "Each is shown by the test image that is most alike."


def _ink(light: Array, frame: Frame) -> Array:
    """Return what is drawn of images between 0 and 1."""
    return np.rint(255 * (1 - light if frame.inverted else light)).astype(np.uint8)


def _nearest(estimator: Any, images: npt.NDArray[Any]) -> npt.NDArray[np.intp]:
    """Return for each representative the image whose features are most alike."""
    model = classifier_of(estimator).model_
    features = estimator[:-1].transform(images)
    rows = model.on_sphere(features, np.float32)
    return np.asarray((model.directions.astype(np.float32) @ rows.T).argmax(axis=1))


def points(estimator: Any) -> Array:
    """Return the (m, d) representatives of a table in the units of its columns."""
    found: Array = classifier_of(estimator).model_.representatives
    steps = [step for _, step in estimator.steps[:-1]] if isinstance(estimator, Pipeline) else []
    for step in reversed(steps):
        if isinstance(step, StandardScaler):
            found = step.inverse_transform(found)
        elif isinstance(step, LearnedMetric):
            found = found @ np.linalg.pinv(step.components_)
    return found


def features(names: list[str] | None, rows: npt.NDArray[Any]) -> list[dict[str, Any]]:
    """Return the fields of a table: each feature's name, range, usual value and step."""
    names = names or [f"feature {j + 1}" for j in range(rows.shape[1])]
    return [
        {"name": name, **_range(column.astype(np.float64))}
        for name, column in zip(names, rows.T, strict=True)
    ]


def _range(column: Array) -> dict[str, Any]:
    low, high = float(column.min()), float(column.max())
    whole = bool((column == np.rint(column)).all())
    if low == high:
        low, high = low - 1, high + 1
    step = 1.0 if whole else float(10 ** np.floor(np.log10((high - low) / _PLACES)))
    largest = max(abs(low), abs(high))
    return {
        "low": _rounded(np.floor(low / step) * step),
        "high": _rounded(np.ceil(high / step) * step),
        "step": step,
        "typical": _rounded(round(float(np.median(column)) / step) * step),
        # So many significant digits tell values of this column apart.
        "digits": int(np.clip(np.ceil(np.log10(largest / (high - low))) + 4, 4, 15)),
    }


def _rounded(value: float) -> float:
    """Return a number without the last digits, which are those of the step."""
    return float(f"{value:.15g}")
