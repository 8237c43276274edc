"""How good a classifier is on labelled rows: errors, each class, the confusion matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array, IntArray

OnRows: TypeAlias = Callable[[int], None]

_ROWS_AT_A_TIME = 4096
_SMALLEST_PROBABILITY = 1e-15


@dataclass(frozen=True, eq=False)
class Evaluation:
    """What a classifier did on n labelled rows.

    Attributes
    ----------
    labels : (L,) all labels, the classifier's and the rows'
    confusion : (L, L) how many rows of each label (down) were given each label (across)
    log_loss : the mean of −ln p of the true label; infinite when the classifier does not know one
    """

    labels: npt.NDArray[Any]
    confusion: npt.NDArray[np.intp]
    log_loss: float

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.confusion.sum())

    @property
    def error_percent(self) -> float:
        """The share of rows with the wrong label, in per cent."""
        return 100 * (1 - float(np.trace(self.confusion)) / self.n_rows)

    @property
    def precision(self) -> Array:
        """For each label the share of the rows given it that have it; NaN if none was given it."""
        return _share(self.confusion.diagonal(), self.confusion.sum(axis=0))

    @property
    def recall(self) -> Array:
        """For each label the share of the rows with it that were given it; NaN if there is none."""
        return _share(self.confusion.diagonal(), self.confusion.sum(axis=1))

    def as_json(self) -> dict[str, Any]:
        """Return plain values; what is not a number is null."""
        shares = zip(self.labels.tolist(), self.precision, self.recall, strict=True)
        return {
            "rows": self.n_rows,
            "error_percent": round(self.error_percent, 4),
            "log_loss": _number(self.log_loss),
            "classes": [
                {"label": label, "precision": _number(precision), "recall": _number(recall)}
                for label, precision, recall in shares
            ],
            "confusion": self.confusion.tolist(),
        }


def evaluate(
    estimator: Any, X: Any, y: npt.NDArray[Any], on_rows: OnRows | None = None
) -> Evaluation:
    """Compare the predictions for X with the labels y."""
    labels, true, places = labels_together(y, estimator.classes_)
    _, probabilities = predict_all(estimator, X, on_rows)
    given = places[probabilities.argmax(axis=1)]
    confusion = np.zeros((len(labels), len(labels)), dtype=np.intp)
    np.add.at(confusion, (true, given), 1)
    log_loss = float("inf")
    if np.isin(true, places).all():
        own = probabilities[np.arange(len(y)), np.argsort(places)[true]]
        log_loss = float(-np.log(np.maximum(own, _SMALLEST_PROBABILITY)).mean())
    return Evaluation(labels, confusion, log_loss)


def predict_all(
    estimator: Any, X: Any, on_rows: OnRows | None = None
) -> tuple[npt.NDArray[Any], Array]:
    """Return the labels and the probabilities of all rows, telling how far it is."""
    probabilities = []
    for block in _blocks(X):
        probabilities.append(estimator.predict_proba(block))
        if on_rows is not None:
            on_rows(len(block))
    whole = np.concatenate(probabilities)
    return estimator.classes_[whole.argmax(axis=1)], whole


def labels_together(
    y: npt.NDArray[Any], classes: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], IntArray, IntArray]:
    """Return all labels, the rows' and the classifier's, and where these are among them."""
    y = match_labels(y, classes)
    if y.dtype.kind == "U" != classes.dtype.kind:  # some label is unknown
        classes = np.array([str(label) for label in classes.tolist()])
    labels = np.unique(np.concatenate([classes, y]))
    return labels, np.searchsorted(labels, y), np.searchsorted(labels, classes)


def match_labels(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels as the classifier knows them, however a file wrote them; else as text.

    Text is compared with text as it is. Where one side is of numbers or booleans, 1, "1" and "1.0"
    are one label, and so are true and "True".
    """
    known = {str(label): label for label in classes.tolist()}
    if not classes.dtype.kind == y.dtype.kind == "U":
        known |= {_plain(label): label for label in classes.tolist()}
    matched = [known.get(str(label), known.get(_plain(label))) for label in y.tolist()]
    unknown = [
        str(label) for label, match in zip(y.tolist(), matched, strict=True) if match is None
    ]
    if len(unknown) == len(matched):
        raise ValueError(
            f"none of the labels is one that the model knows: they are {_some(y)}, and it knows "
            f"{_some(classes)}."
        )
    if not unknown:
        return np.array(matched, dtype=classes.dtype)
    left = iter(unknown)
    return np.array([next(left) if match is None else str(match) for match in matched])


def _plain(label: Any) -> str:
    """Return a label as text, the same for all ways to write a number or a truth."""
    try:
        return str(label).lower() if isinstance(label, bool) else f"{float(label):.17g}"
    except (ValueError, TypeError):
        return str(label).strip().lower()


def _some(labels: npt.NDArray[Any]) -> str:
    shown = np.unique(labels)[:5].tolist()
    return ", ".join(repr(label) for label in shown) + (", …" if len(np.unique(labels)) > 5 else "")


def _blocks(X: Any) -> Iterator[Any]:
    for start in range(0, len(X), _ROWS_AT_A_TIME):
        yield X[start : start + _ROWS_AT_A_TIME]


def _share(part: npt.NDArray[np.intp], whole: npt.NDArray[np.intp]) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(part / whole, dtype=np.float64)


def _number(value: float) -> float | None:
    return round(float(value), 6) if np.isfinite(value) else None
