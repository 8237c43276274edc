"""Readers of files of arrays: NPZ, svmlight and IDX."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.data.tables._table import (
    DataFileError,
    Table,
    complete_rows,
    labels_from_array,
    note_unlabelled,
    quoted_list,
    refuse_large,
)

# Most bytes that the dense array of an svmlight file may take.
_MAX_DENSE_BYTES = 4 << 30


def read_npz(
    content: bytes, name: str, target: str | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Return the rows, array "X" or the only array beside the labels, and the labels if any."""
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        found = {key: file[key] for key in file.files}
    arrays = {key: array for key, array in found.items() if isinstance(array, np.ndarray)}
    label_name = target or "y"
    if target is not None and target not in arrays:
        raise DataFileError(f"{name} has no array {target!r}; it has {quoted_list(list(arrays))}.")
    y = arrays.pop(label_name, None)
    X = arrays.get("X") if "X" in arrays else None
    if X is None:
        if len(arrays) != 1:
            raise DataFileError(
                f"{name} should hold an array 'X' of rows and an array {label_name!r} of labels; "
                f"it has {quoted_list([*arrays, *([label_name] if y is not None else [])])}."
            )
        X = next(iter(arrays.values()))
    if X.ndim not in (2, 3) or X.size == 0 or X.dtype.kind not in "biuf":
        raise DataFileError(
            f"the array of rows in {name} should be numbers of shape (rows, features) or (images, "
            f"height, width), got {X.dtype} of shape {X.shape}."
        )
    if y is not None and y.shape != (len(X),):
        raise DataFileError(f"{name} has {len(X)} rows, and labels of shape {y.shape}.")
    if y is not None and y.dtype.kind not in "biufU":
        raise DataFileError(f"the labels in {name} are {y.dtype}; they should be numbers or text.")
    return X, y


def read_svmlight(
    content: bytes, name: str, n_features: int | None, zero_based: bool
) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
    """Return the rows as a dense array, and the labels."""
    from sklearn.datasets import load_svmlight_file

    # With zero_based=True scikit-learn keeps the indices as written, and a feature 0 can be seen.
    X, y = load_svmlight_file(io.BytesIO(content), zero_based=True)
    if not zero_based:
        if X[:, 0].nnz:
            raise DataFileError(
                f"{name} has a feature 0; say --zero-based if its features are numbered from 0."
            )
        X = X[:, 1:]
    if n_features is not None and X.shape[1] > n_features:
        raise DataFileError(f"{name} has {X.shape[1]} features, and the model knows {n_features}.")
    width = X.shape[1] if n_features is None else n_features
    if 8 * X.shape[0] * width > _MAX_DENSE_BYTES:
        raise DataFileError(
            f"{name} has {X.shape[0]} rows of {width} features, too many to be held dense (at "
            f"most {_MAX_DENSE_BYTES >> 30} GB); split the file."
        )
    dense = np.zeros((X.shape[0], width))
    dense[:, : X.shape[1]] = X.toarray()
    return dense, y


def read_idx_images(
    content: bytes, source: str | Path, name: str, target: str | None, labels: bool | None
) -> tuple[npt.NDArray[Any], npt.NDArray[Any] | None]:
    """Return IDX images, and the labels of `target` or of the label file beside the images."""
    from kmeans_kernel.data.datasets._idx import decode_idx, read_idx

    images = decode_idx(content, name)
    if images.ndim != 3:
        raise DataFileError(f"{name} holds no images, but an array of shape {images.shape}.")
    path = Path(source)
    beside = path.with_name(path.name.replace("images", "labels").replace("idx3", "idx1"))
    if labels is False or (target is None and (beside == path or not beside.exists())):
        return images, None
    where = beside if target is None else Path(target)
    y = read_idx(where)
    if y.shape != images.shape[:1]:
        raise DataFileError(f"{name} has {len(images)} images, and {where} labels of {y.shape}.")
    return images, y


def table_from_arrays(
    X: npt.NDArray[Any], y: npt.NDArray[Any] | None, name: str, *, drop_missing: bool
) -> Table:
    """Return the table of an array, whose features have no names.

    Rows of a table without a label are left out, and missing features stay NaN unless such rows
    are to be dropped; in images missing pixels are an error.
    """
    unlabelled = np.zeros(len(X), dtype=bool)
    if y is not None and y.dtype.kind == "f":
        unlabelled = np.isnan(y)
    notes = note_unlabelled(unlabelled, name, "a label")
    if X.ndim > 2 or drop_missing:
        flat = X.reshape(len(X), -1)
        rows = complete_rows(flat, unlabelled, name, _place, drop_missing=drop_missing)
    else:
        refuse_large(X, ~unlabelled, name, _place)
        rows = np.flatnonzero(~unlabelled)
    numbers = None if y is None or y.dtype.kind not in "iuf" else y[rows].astype(np.float64)
    labels = None if y is None else labels_from_array(y[rows], name)
    return Table(X[rows], labels, rows, int((~unlabelled).sum()) - len(rows), numbers, notes=notes)


def _place(feature: int) -> str:
    return f"feature {feature + 1}"
