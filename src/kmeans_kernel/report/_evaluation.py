"""Evaluation of a classifier on labelled rows: error, AUC, log-loss, calibration, confusions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:  # the command line imports this module before it needs SciPy
    from kmeans_kernel.core.arrays.matrices import Array, IntArray

# Progress callback: number of rows predicted since the last call.
OnRows: TypeAlias = Callable[[int], None]

_BLOCK_ROWS = 4096

# Probabilities are clipped here, so that one wrong row does not make the log-loss infinite.
_MIN_PROBABILITY = 1e-15

_CALIBRATION_BINS = 15


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Evaluation of a classifier on n labelled rows.

    Attributes
    ----------
    labels : (L,) the union of the classifier's labels and the rows' labels, sorted
    confusion : (L, L) number of rows by true label (first axis) and predicted label (second axis)
    log_loss : mean of −ln p of the true label; infinite if a true label is not a class of the
        classifier
    auc : area under the ROC curve; of more than two labels the mean over the classes of the
        classifier, each against the rest; NaN if the rows are all of one label
    calibration_error : expected calibration error, the mean over 15 bins of equal width of the
        difference between confidence and accuracy; the confidence of a row is the probability of
        its predicted label
    """

    labels: npt.NDArray[Any]
    confusion: npt.NDArray[np.intp]
    log_loss: float
    auc: float
    calibration_error: float

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self.confusion.sum())

    @property
    def error_percent(self) -> float:
        """Percentage of rows with the wrong label."""
        return 100 * (1 - float(np.trace(self.confusion)) / self.n_rows)

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the recall of the labels that rows have."""
        return float(np.nanmean(self.recall))

    @property
    def precision(self) -> Array:
        """Precision of each label; NaN for a label that was never predicted."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=0))

    @property
    def recall(self) -> Array:
        """Recall of each label; NaN for a label that no row has."""
        return _ratio(self.confusion.diagonal(), self.confusion.sum(axis=1))

    def as_json(self) -> dict[str, Any]:
        """Return values that JSON can hold; NaN and infinity become None."""
        scores = zip(self.labels.tolist(), self.precision, self.recall, strict=True)
        return {
            "rows": self.n_rows,
            "error_percent": round(self.error_percent, 4),
            "balanced_accuracy": _json_number(self.balanced_accuracy),
            "auc": _json_number(self.auc),
            "log_loss": _json_number(self.log_loss),
            "calibration_error": _json_number(self.calibration_error),
            "classes": [
                {
                    "label": label,
                    "precision": _json_number(precision),
                    "recall": _json_number(recall),
                }
                for label, precision, recall in scores
            ],
            "confusion": self.confusion.tolist(),
        }


def evaluate(
    estimator: Any, X: Any, y: npt.NDArray[Any], on_rows: OnRows | None = None
) -> Evaluation:
    """Compare the predictions of a classifier with the true labels.

    Parameters
    ----------
    estimator : fitted classifier with `predict_proba`
    X : rows or images
    y : (n,) true labels
    on_rows : progress callback, called with the number of rows of each predicted block

    Returns
    -------
    Evaluation
    """
    _, probabilities = predict_all(estimator, X, on_rows)
    return evaluate_probabilities(probabilities, y, estimator.classes_)


def evaluate_probabilities(
    probabilities: Array, y: npt.NDArray[Any], classes: npt.NDArray[Any]
) -> Evaluation:
    """Compare predicted probabilities with the true labels.

    Parameters
    ----------
    probabilities : (n, K)
    y : (n,) true labels
    classes : (K,) the label of each column

    Returns
    -------
    Evaluation
    """
    labels, true, places = merge_labels(y, classes)
    given = places[probabilities.argmax(axis=1)]
    confusion = np.zeros((len(labels), len(labels)), dtype=np.intp)
    np.add.at(confusion, (true, given), 1)
    log_loss = float("inf")
    if np.isin(true, places).all():
        own = probabilities[np.arange(len(y)), np.argsort(places)[true]]
        log_loss = abs(float(np.log(np.maximum(own, _MIN_PROBABILITY)).mean()))
    calibration_error = _calibration_error(probabilities.max(axis=1), given == true)
    auc = _area_under_curve(probabilities, true[:, None] == places)
    return Evaluation(labels, confusion, log_loss, auc, calibration_error)


def _area_under_curve(probabilities: Array, is_class: npt.NDArray[np.bool_]) -> float:
    """Return the mean area under the ROC curve of the classes that some rows have and some not.

    Parameters
    ----------
    probabilities : (n, K)
    is_class : (n, K) whether the true label is the class
    """
    from sklearn.metrics import roc_auc_score

    found = [
        roc_auc_score(is_class[:, k], probabilities[:, k])
        for k in range(is_class.shape[1])
        if 0 < is_class[:, k].sum() < len(is_class)
    ]
    return float(np.mean(found)) if found else float("nan")


def _calibration_error(confidence: Array, is_right: npt.NDArray[np.bool_]) -> float:
    """Return the expected calibration error (Guo et al. 2017)."""
    bins = np.minimum((confidence * _CALIBRATION_BINS).astype(np.intp), _CALIBRATION_BINS - 1)
    gaps = np.bincount(bins, confidence - is_right, _CALIBRATION_BINS)
    return float(np.abs(gaps).sum() / len(confidence))


def predict_all(
    estimator: Any, X: Any, on_rows: OnRows | None = None
) -> tuple[npt.NDArray[Any], Array]:
    """Return the labels and the probabilities of all rows, predicted in blocks."""
    probabilities = []
    for block in _blocks(X):
        probabilities.append(estimator.predict_proba(block))
        if on_rows is not None:
            on_rows(len(block))
    whole = np.concatenate(probabilities)
    return estimator.classes_[whole.argmax(axis=1)], whole


def merge_labels(
    y: npt.NDArray[Any], classes: npt.NDArray[Any]
) -> tuple[npt.NDArray[Any], IntArray, IntArray]:
    """Return the union of both label sets, and the positions of `y` and of `classes` in it."""
    y = match_labels(y, classes)
    if y.dtype.kind == "U" != classes.dtype.kind:  # a label is not a class: all became text
        classes = np.array([str(label) for label in classes.tolist()])
    labels = np.unique(np.concatenate([classes, y]))
    return labels, np.searchsorted(labels, y), np.searchsorted(labels, classes)


def match_labels(y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return labels in the type of `classes`, or all as text if one of them is not a class.

    Text is compared with text exactly, but for "true" and "false", which programs write in capitals
    or not. If either side is numeric or boolean, 1, "1" and "1.0" are the same label, and so are
    True and "true".
    """
    known = {str(label): label for label in classes.tolist()}
    are_text = classes.dtype.kind == y.dtype.kind == "U"
    if not are_text or {str(label).lower() for label in classes.tolist()} <= {"true", "false"}:
        known |= {_canonical(label): label for label in classes.tolist()}
        matched = [known.get(str(label), known.get(_canonical(label))) for label in y.tolist()]
    else:
        matched = [known.get(str(label)) for label in y.tolist()]
    unknown = [
        str(label) for label, match in zip(y.tolist(), matched, strict=True) if match is None
    ]
    if len(unknown) == len(matched):
        raise ValueError(
            f"none of the labels is one that the model knows: the labels are {_preview(y)}, the "
            f"classes of the model {_preview(classes)}."
        )
    if not unknown:
        return np.array(matched, dtype=classes.dtype)
    left = iter(unknown)
    return np.array([next(left) if match is None else str(match) for match in matched])


def _canonical(label: Any) -> str:
    """Return a label as text in canonical form, the same for 1, "1" and "1.0"."""
    try:
        return str(label).lower() if isinstance(label, bool) else f"{float(label):.17g}"
    except (ValueError, TypeError):
        return str(label).strip().lower()


def _preview(labels: npt.NDArray[Any]) -> str:
    shown = np.unique(labels)[:5].tolist()
    return ", ".join(repr(label) for label in shown) + (", …" if len(np.unique(labels)) > 5 else "")


def _blocks(X: Any) -> Iterator[Any]:
    for start in range(0, len(X), _BLOCK_ROWS):
        yield X[start : start + _BLOCK_ROWS]


def _ratio(part: npt.NDArray[np.intp], whole: npt.NDArray[np.intp]) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(part / whole, dtype=np.float64)


def _json_number(value: float) -> float | None:
    return round(float(value), 6) if np.isfinite(value) else None
