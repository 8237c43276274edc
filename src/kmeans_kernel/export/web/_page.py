"""The page: what it is made of, and what is worth knowing of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

import kmeans_kernel
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.estimators.transformers._base import shape_of_rows
from kmeans_kernel.estimators.transformers._edge_patterns import EdgePatterns, edge_settings
from kmeans_kernel.export.model_file._estimators import build
from kmeans_kernel.export.model_file._estimators import describe as describe_tree
from kmeans_kernel.export.model_file._file import Place
from kmeans_kernel.export.web._arrays import Arrays, as_they_were, packed, rounded
from kmeans_kernel.export.web._content import TestData, features, pictures, points, small
from kmeans_kernel.export.web._frame import Frame
from kmeans_kernel.export.web._html import html_of
from kmeans_kernel.report._inspection import classifier_of, describe, input_shape, sees_images


@dataclass(frozen=True, eq=False)
class Page:
    """A page, and what is worth knowing of it.

    Attributes
    ----------
    content : the HTML, as bytes
    model_bytes : what the arrays of the model take, before they are compressed
    n_rows : rows of test data that it holds
    left_out : rows that were given and are not in it
    changed_labels : rows that get another label in the numbers of the page than in Python's
    largest_change : the largest difference of a probability for the same reason
    """

    content: bytes
    model_bytes: int
    n_rows: int
    left_out: int
    changed_labels: int
    largest_change: float

    @property
    def size(self) -> int:
        """The size of the file in bytes."""
        return len(self.content)


def page_of(
    estimator: Any,
    *,
    X: Any,
    y: Any,
    title: str,
    float16: bool,
    image_shape: tuple[int, int] | None,
) -> Page:
    """Make the page; see `to_web`."""
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: test rows, and their labels.")
    check_is_fitted(estimator)
    shape = _shape_of(estimator, X, image_shape)
    tree, exact = _described(estimator)
    arrays = rounded(exact, precise=classifier_of(estimator).model_.needs_float64, float16=float16)
    test = None if X is None else TestData.of(estimator, X, y)
    shown, about = _shown(estimator, test, shape)
    test_arrays = {} if test is None else test.arrays()
    entries, text = packed({**arrays, **shown, **test_arrays})
    facts = {
        "tree": tree,
        "arrays": entries,
        "labels": [str(label) for label in estimator.classes_.tolist()],
        "test": None if test is None else _test_facts(test),
        "about": _about(estimator, arrays, text),
        "flat": _is_flat(estimator),
        **about,
    }
    changed, largest = (
        (0, 0.0) if test is None else _changes(tree, as_they_were(arrays, exact), test)
    )
    return Page(
        content=html_of(facts, text, title, _subtitle(estimator, test, about["noun"]), shape),
        model_bytes=sum(array.nbytes for array in arrays.values()),
        n_rows=0 if test is None else len(test.rows),
        left_out=0 if test is None else test.left_out,
        changed_labels=changed,
        largest_change=largest,
    )


def _shape_of(
    estimator: Any, X: Any, image_shape: tuple[int, int] | None
) -> tuple[int, int] | None:
    """Return height and width of what is classified; None for the rows of a table."""
    n_features = int(estimator.n_features_in_)
    if image_shape is not None:
        return shape_of_rows(n_features, image_shape)
    if not sees_images(estimator):
        return None
    seen = X.shape[1:] if getattr(X, "ndim", 2) == 3 else None
    return shape_of_rows(n_features, seen or input_shape(estimator))


def _described(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the tree that a model file has, and its arrays, with what a page cannot compute."""
    arrays: Arrays = {}
    tree = describe_tree(estimator, Place("", arrays))
    for described, step, prefix in _steps(tree, estimator, ""):
        if isinstance(step, EdgePatterns):
            described["edges"] = edge_settings()
            arrays[f"{prefix}mixing"] = step._mixing
    return tree, arrays


def _steps(tree: Any, estimator: Any, prefix: str) -> Iterator[tuple[Any, Any, str]]:
    """Give every estimator of a tree, its description, and the place of its arrays."""
    yield tree, estimator, prefix
    if isinstance(estimator, Pipeline):
        for k, (name, described) in enumerate(tree["steps"]):
            yield from _steps(described, estimator[name], f"{prefix}steps.{k}.")
    elif isinstance(estimator, PatchVotingClassifier):
        yield from _steps(tree["classifier"], estimator.classifier_, f"{prefix}classifier.")


def _shown(
    estimator: Any, test: TestData | None, shape: tuple[int, int] | None
) -> tuple[Arrays, dict[str, Any]]:
    """Return how representatives and input look: arrays and facts."""
    if shape is None:
        own = points(estimator)
        names = getattr(estimator, "feature_names_in_", None)
        return {"points": small(own, exact=False)}, {
            "kind": "table",
            "noun": "row",
            "prompt": "Every field needs a number.",
            "pictures_note": "",
            "features": features(
                None if names is None else [str(name) for name in names],
                own if test is None else test.rows,
            ),
        }
    images = None if test is None else test.rows.reshape(-1, *shape)
    frame = _usual_frame(estimator, shape) if images is None else Frame.of(images)
    seen, note = pictures(estimator, images, shape, frame)
    return ({} if seen is None else {"pictures": seen}), {
        "kind": "images",
        "noun": "image",
        "prompt": "Draw something.",
        "pictures_note": note,
        "shape": list(shape),
        "picture_shape": None if seen is None else list(seen.shape[1:]),
        "frame": asdict(frame),
    }


def _usual_frame(estimator: Any, shape: tuple[int, int]) -> Frame:
    """Return the frame of a model without images; of rows, with the values that they have."""
    if sees_images(estimator):
        return Frame.usual(shape)
    own = points(estimator)
    return Frame.usual(shape, float(own.min()), float(own.max()))


def _test_facts(test: TestData) -> dict[str, Any]:
    note = f"{test.left_out} more were given, and are not in this page." if test.left_out else ""
    return {"labels": [str(label) for label in test.labels.tolist()], "note": note}


def _changes(tree: dict[str, Any], arrays: Arrays, test: TestData) -> tuple[int, float]:
    """Return how many labels, and how much of a probability, the page's rounding changes."""
    shares = build(tree, Place("", arrays)).predict_proba(test.X)
    changed = shares.argmax(axis=1) != test.shares.argmax(axis=1)
    return int(changed.sum()), float(np.abs(shares - test.shares).max())


def _about(estimator: Any, arrays: Arrays, text: str) -> list[tuple[str, str]]:
    found = describe(estimator)
    size = sum(array.nbytes for array in arrays.values())
    stored = {array.dtype.name for name, array in arrays.items() if name.endswith("directions")}
    told = [
        ("steps", " → ".join(found["steps"])),
        ("features", f"{found['features']:,}"),
        ("kernel", found["kernel"]),
        ("regularization", f"{found['regularization']:g}"),
        ("lift", f"{found['lift']:g}"),
        ("representatives", f"{found['representatives']:,} in {len(found['classes'])} classes"),
        ("stored as", f"{', '.join(stored)}, {size / 1e6:.2g} MB"),
        ("data of this page, compressed", f"{len(text) / 1e6:.2g} MB"),
        ("made by", f"kmeans-kernel {kmeans_kernel.__version__}"),
    ]
    if found["squashed"]:
        told.insert(3, ("long tails", "squashed: few large values do not set the distances"))
    return told


def _is_flat(estimator: Any) -> bool:
    """Say whether probabilities are the plain softmax of scores that are near zero and one."""
    classifier = classifier_of(estimator)
    return bool(classifier.model_.temperature == 1 and classifier.fit_on == "representatives")


def _subtitle(estimator: Any, test: TestData | None, noun: str) -> str:
    model = classifier_of(estimator).model_
    told = f"{len(model.directions):,} representatives in {len(model.classes)} classes"
    if test is not None:
        told += f" · {test.error_percent:.2f} % error on {len(test.rows):,} test {noun}s"
    return told
