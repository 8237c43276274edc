"""Data of the page: model tree, arrays, display data, and the effect of rounding."""

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
from kmeans_kernel.export.web._arrays import Arrays, pack, restore_dtypes, round_arrays
from kmeans_kernel.export.web._content import (
    TestData,
    representative_pictures,
    smallest_dtype,
)
from kmeans_kernel.export.web._frame import Frame
from kmeans_kernel.export.web._html import render_page
from kmeans_kernel.export.web._table import (
    columns_of,
    form_fields,
    representative_cells,
    rows_before_steps,
    takes_missing,
    takes_plain_numbers,
)
from kmeans_kernel.report._inspection import (
    TRANSFORMS_IN_WORDS,
    classifier_of,
    describe,
    input_shape,
    sees_images,
)

# Numbers in the representatives of a small model, 0.5 MB in float64.
_SMALL = 2**16


@dataclass(frozen=True, eq=False)
class Page:
    """An exported page.

    Attributes
    ----------
    content : the HTML file, as bytes
    model_bytes : size of the model's arrays before compression
    n_rows : number of test rows in the page
    left_out : number of test rows that were passed in but are not in the page
    changed_labels : number of test rows whose label changes by the rounding of the model's arrays
    largest_change : largest change of a probability by the rounding
    """

    content: bytes
    model_bytes: int
    n_rows: int
    left_out: int
    changed_labels: int
    largest_change: float

    @property
    def size(self) -> int:
        """Size of the file in bytes."""
        return len(self.content)


def make_page(
    estimator: Any,
    *,
    X: Any,
    y: Any,
    title: str,
    float16: bool,
    image_shape: tuple[int, int] | None,
) -> Page:
    """Return the page of an estimator; see `to_web` for the parameters."""
    if (X is None) != (y is None):
        raise ValueError("X and y must be given together: test rows, and their labels.")
    check_is_fitted(estimator)
    shape = _shape_of(estimator, X, image_shape)
    tree, exact = _model_tree(estimator)
    arrays = round_arrays(exact, precise=_is_precise(estimator, shape), float16=float16)
    columns = columns_of(estimator) if shape is None else None
    test = None if X is None else TestData.classify(estimator, X, y, columns)
    shown, about = (
        _table_data(estimator, test) if shape is None else _image_data(estimator, test, shape)
    )
    test_arrays = {} if test is None else test.arrays()
    entries, text = pack({**arrays, **shown, **test_arrays})
    facts = {
        "tree": tree,
        "arrays": entries,
        "labels": [str(label) for label in estimator.classes_.tolist()],
        "test": None if test is None else _test_facts(test),
        "about": _about(estimator, arrays, text),
        "flat": _is_uncalibrated(estimator),
        **about,
    }
    changed, largest = (
        (0, 0.0) if test is None else _rounding_effect(tree, restore_dtypes(arrays, exact), test)
    )
    return Page(
        content=render_page(facts, text, title, _subtitle(estimator, test, about["noun"]), shape),
        model_bytes=sum(array.nbytes for array in arrays.values()),
        n_rows=0 if test is None else len(test.rows),
        left_out=0 if test is None else test.left_out,
        changed_labels=changed,
        largest_change=largest,
    )


def _is_precise(estimator: Any, shape: tuple[int, int] | None) -> bool:
    """Return whether to store float64: where the model needs it, and for a table's small model."""
    model = classifier_of(estimator).model_
    is_small = shape is None and model.directions.size <= _SMALL
    return bool(model.needs_float64 or is_small)


def _shape_of(
    estimator: Any, X: Any, image_shape: tuple[int, int] | None
) -> tuple[int, int] | None:
    """Return height and width of the images to classify; None for rows of a table."""
    n_features = int(estimator.n_features_in_)
    if image_shape is not None:
        return shape_of_rows(n_features, image_shape)
    if not sees_images(estimator):
        return None
    seen = X.shape[1:] if getattr(X, "ndim", 2) == 3 else None
    return shape_of_rows(n_features, seen or input_shape(estimator))


def _model_tree(estimator: Any) -> tuple[dict[str, Any], Arrays]:
    """Return the tree and arrays of the model file, with constants that the page cannot compute."""
    arrays: Arrays = {}
    tree = describe_tree(estimator, Place("", arrays))
    for described, step, prefix in _steps(tree, estimator, ""):
        if isinstance(step, EdgePatterns):
            described["edges"] = edge_settings()
            arrays[f"{prefix}mixing"] = step._mixing
    return tree, arrays


def _steps(tree: Any, estimator: Any, prefix: str) -> Iterator[tuple[Any, Any, str]]:
    """Yield (description, estimator, prefix of its arrays) for every estimator of a tree."""
    yield tree, estimator, prefix
    if isinstance(estimator, Pipeline):
        for k, (name, described) in enumerate(tree["steps"]):
            yield from _steps(described, estimator[name], f"{prefix}steps.{k}.")
    elif isinstance(estimator, PatchVotingClassifier):
        yield from _steps(tree["classifier"], estimator.classifier_, f"{prefix}classifier.")


def _table_data(estimator: Any, test: TestData | None) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and facts by which the page shows representatives and a form."""
    columns = columns_of(estimator)
    own, are_plain = representative_cells(estimator, columns), takes_plain_numbers(estimator)
    largest = classifier_of(estimator).model_.representative_counts.argmax()
    fields = form_fields(
        columns, own if test is None else test.rows, None if are_plain else own[largest]
    )
    may_miss = takes_missing(estimator)
    return {"points": smallest_dtype(own, exact=not are_plain)}, {
        "kind": "table",
        "noun": "row",
        "prompt": "A field is not complete." if may_miss else "Every field needs a number.",
        "pictures_note": "",
        "takes_missing": may_miss,
        "fields": fields,
    }


def _image_data(
    estimator: Any, test: TestData | None, shape: tuple[int, int]
) -> tuple[Arrays, dict[str, Any]]:
    """Return the arrays and facts by which the page shows representatives and drawings."""
    images = None if test is None else test.rows.reshape(-1, *shape)
    frame = _default_frame(estimator, shape) if images is None else Frame.from_images(images)
    seen, note = representative_pictures(estimator, images, shape, frame)
    return ({} if seen is None else {"pictures": seen}), {
        "kind": "images",
        "noun": "image",
        "prompt": "Draw something.",
        "pictures_note": note,
        "shape": list(shape),
        "picture_shape": None if seen is None else list(seen.shape[1:]),
        "frame": asdict(frame),
    }


def _default_frame(estimator: Any, shape: tuple[int, int]) -> Frame:
    """Return the frame for a page without test images.

    Pixels range from 0 to 255 for a model with an image step, else as the representatives do.
    """
    if sees_images(estimator):
        return Frame.default(shape)
    own = rows_before_steps(estimator)
    return Frame.default(shape, float(own.min()), float(own.max()))


def _test_facts(test: TestData) -> dict[str, Any]:
    note = f"{test.left_out} more test rows are not in this page." if test.left_out else ""
    return {"labels": [str(label) for label in test.labels.tolist()], "note": note}


def _rounding_effect(tree: dict[str, Any], arrays: Arrays, test: TestData) -> tuple[int, float]:
    """Return the number of labels that rounding changes, and the largest probability change."""
    rounded = build(tree, Place("", arrays)).predict_proba(test.X)
    changed = rounded.argmax(axis=1) != test.probabilities.argmax(axis=1)
    return int(changed.sum()), float(np.abs(rounded - test.probabilities).max())


def _about(estimator: Any, arrays: Arrays, text: str) -> list[tuple[str, str]]:
    found = describe(estimator)
    size = sum(array.nbytes for array in arrays.values())
    stored = {array.dtype.name for name, array in arrays.items() if name.endswith("directions")}
    entries = [
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
    if found["feature_transform"] is not None:
        told = TRANSFORMS_IN_WORDS[found["feature_transform"]]
        entries.insert(3, ("transform of features", f"{found['feature_transform']}: {told}"))
    return entries


def _is_uncalibrated(estimator: Any) -> bool:
    """Return whether probabilities are uncalibrated, the softmax of scores between about 0 and 1.

    They differ little, so the page stretches its bars from the lowest to the highest.
    """
    classifier = classifier_of(estimator)
    return bool(classifier.model_.temperature == 1 and classifier.fit_on == "representatives")


def _subtitle(estimator: Any, test: TestData | None, noun: str) -> str:
    model = classifier_of(estimator).model_
    text = f"{len(model.directions):,} representatives in {len(model.classes)} classes"
    if test is not None:
        text += f" · {test.error_percent:.2f} % error on {len(test.rows):,} test {noun}s"
    return text
