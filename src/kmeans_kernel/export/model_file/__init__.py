"""Saving and loading of fitted estimators as one safetensors file that cannot run code.

The arrays are the file's tensors. Its metadata hold the format version, a JSON tree of the
estimators with their parameters and columns, and a SHA-256 digest of the tree and the arrays.
Loading verifies the header, the version, the digest, and every name, type and shape before it
builds an estimator.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy.typing as npt

from kmeans_kernel.export.model_file._estimators import build, describe
from kmeans_kernel.export.model_file._file import ModelFileError, Place, damaged_error, read, write
from kmeans_kernel.export.model_file._notation import build_notation, describe_notation
from kmeans_kernel.utils.files import check_writable

__all__ = ["ModelFileError", "load_model", "save_model"]


def save_model(estimator: Any, path: str | os.PathLike[str]) -> None:
    """Write a fitted estimator to one file, to be read by `load_model`.

    Parameters
    ----------
    estimator : KMeansKernelClassifier, PatchVotingClassifier, or a Pipeline that ends in one
        Before the classifier a pipeline may hold PixelNormalizer, FourierFeatures and
        scikit-learn's StandardScaler. Of a table the file has the names of the columns, the levels
        of categories, and the least and the largest number of each column.
    path : path
        The file to write. It is written atomically: an interrupted save leaves the old file.

    Examples
    --------
    >>> import os, tempfile
    >>> from kmeans_kernel import KMeansKernelClassifier, load_model, save_model
    >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["a", "a", "b", "b"]
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save_model(KMeansKernelClassifier(2).fit(X, y), path)
    >>> load_model(path).predict([[0.0, 0.9]]).tolist()
    ['a']
    """
    save_with_notation(estimator, path, None)


def save_with_notation(
    estimator: Any, path: str | os.PathLike[str], notation: Mapping[str, Any] | None
) -> None:
    """Write a fitted estimator, and how the file was written that it was trained on.

    Parameters
    ----------
    notation : "decimal" and "dates" of columns by name, and the texts of "missing"; None if the
        rows were not read from text
    """
    path = check_writable(Path(path))
    if not hasattr(estimator, "predict_proba"):
        raise TypeError(f"save_model saves classifiers, got a {type(estimator).__name__}.")
    arrays: dict[str, npt.NDArray[Any]] = {}
    tree = describe(estimator, Place("", arrays))
    if notation is not None:
        tree["notation"] = describe_notation(notation)
    write(path, json.dumps(tree, allow_nan=False), arrays)


def load_model(path: str | os.PathLike[str]) -> Any:
    """Read an estimator that `save_model` wrote.

    Parameters
    ----------
    path : path
        The file. It may be untrusted: loading runs no code from it, and allocates no more memory
        than the size of the file.

    Returns
    -------
    the fitted estimator

    Raises
    ------
    ModelFileError
        if the file is not a model, is damaged, or has another format version; the message says
        which
    """
    return load_with_notation(path)[0]


def load_with_notation(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any] | None]:
    """Read an estimator and the notation of `save_with_notation`, None if the file has none."""
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory: name a file that save_model wrote.")
    text, arrays = read(path)
    try:
        tree = json.loads(text, parse_constant=_refuse_constant, parse_float=_parse_finite)
        place = Place("", arrays)
        estimator = build(tree, place)
        notation = build_notation(tree.get("notation"))
        if place.unused():
            raise ModelFileError(f"it holds arrays that no part of it names: {place.unused()}")
    except ModelFileError as error:
        raise damaged_error(path, str(error)) from None
    except (
        KeyError, TypeError, ValueError, AttributeError, RecursionError, OverflowError, MemoryError,
    ) as error:  # fmt: skip
        raise damaged_error(path, f"{type(error).__name__}: {error}") from error
    return estimator, notation


def _refuse_constant(name: str) -> float:
    raise ModelFileError(f"it holds the number {name}")


def _parse_finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse_constant(text)
