"""Classifiers as ONNX graphs, which need neither Python nor this library to predict.

Importing this makes the estimators known to skl2onnx: its own `to_onnx` then converts them too,
alone or as steps of a pipeline, with its options.
"""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline

from kmeans_kernel import __version__
from kmeans_kernel.utils.files import check_writable, write_whole

try:
    import onnx
    import skl2onnx
except ImportError as error:
    raise ImportError(
        "kmeans_kernel.export.onnx needs onnx and skl2onnx: pip install 'kmeans-kernel[onnx]'."
    ) from error

from kmeans_kernel.export.onnx._converters import register
from kmeans_kernel.export.onnx._graph import OPSET, tensor_type
from kmeans_kernel.export.onnx._steps import check_steps

__all__ = ["to_onnx"]

# The operators of scikit-learn's converters, of the same age as the others.
_ML_OPSET = 3

# So much is told of what another library says.
_LONGEST = 600

register()


def to_onnx(
    estimator: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: npt.DTypeLike = np.float32,
) -> onnx.ModelProto:
    """Convert a fitted classifier to an ONNX graph.

    The graph takes "X", rows of pixels or features of shape (n, n_features) for any n, and gives
    "label" (n,) and "probabilities" (n, n_classes). It does what the classifier does, in the same
    precision. Its metadata hold the version of kmeans-kernel, the classes, and the shape of the
    images if there are any.

    Parameters
    ----------
    estimator : KMeansKernelClassifier, PatchVotingClassifier, or a Pipeline that ends in one
        Before the classifier a pipeline may hold any of our transformers, and whatever skl2onnx
        converts.
    path : path or None, default=None
        The file to write. It is written under a temporary name and renamed, so that there is
        always a whole one.
    dtype : float32 or float64, default=float32
        The type of "X" and of the probabilities.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> import numpy as np
    >>> import onnxruntime
    >>> from kmeans_kernel import KMeansKernelClassifier
    >>> from kmeans_kernel.export.onnx import to_onnx
    >>> X, y = [[0.0, 1.0], [0.1, 1.0], [1.0, 0.0], [1.0, 0.1]], ["a", "a", "b", "b"]
    >>> graph = to_onnx(KMeansKernelClassifier(2).fit(X, y))
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
    >>> label, probabilities = session.run(None, {"X": np.array([[0.0, 0.9]], dtype=np.float32)})
    >>> label.tolist()
    ['a']
    """
    target = None if path is None else check_writable(Path(path))
    rows = _row_type(dtype)
    steps = check_steps(estimator)
    graph = _convert(steps, rows)
    onnx.helper.set_model_props(graph, _properties(steps))
    _check(graph, steps, rows)
    if target is not None:
        write_whole(target, graph.SerializeToString())
    return graph


def _convert(steps: list[tuple[str, Any]], rows: np.dtype[Any]) -> onnx.ModelProto:
    classifier = steps[-1][1]
    try:
        graph: onnx.ModelProto = skl2onnx.to_onnx(
            Pipeline(steps) if len(steps) > 1 else classifier,
            initial_types=[("X", tensor_type(rows, [None, int(steps[0][1].n_features_in_)]))],
            name=type(classifier).__name__,
            target_opset={"": OPSET, "ai.onnx.ml": _ML_OPSET},
            options={id(classifier): {"zipmap": False}},
        )
    except RuntimeError as error:  # a part of a step, or a setting of it
        raise _refusal(error, steps, rows) from error
    return graph


def _check(graph: onnx.ModelProto, steps: list[tuple[str, Any]], rows: np.dtype[Any]) -> None:
    """See that the graph is sound, and that onnxruntime can run it if it is here."""
    try:
        onnx.checker.check_model(graph, full_check=True)
        if find_spec("onnxruntime") is not None:
            import onnxruntime

            onnxruntime.InferenceSession(
                graph.SerializeToString(), providers=["CPUExecutionProvider"]
            )
    except Exception as error:  # each library has kinds of its own
        raise _refusal(error, steps, rows) from error


def _refusal(error: Exception, steps: list[tuple[str, Any]], rows: np.dtype[Any]) -> TypeError:
    """Say what another library found wrong, and what may be done."""
    kinds = ", ".join(type(step).__name__ for _, step in steps)
    told = " ".join(str(error).split())[:_LONGEST]
    cures = ["Take the step out of the pipeline and apply it to the rows before the graph"]
    if "column name" in told:
        cures.append("name columns by their numbers")
    if rows == np.float64:
        cures.append("convert with dtype float32, which more operators have")
    return TypeError(
        f"to_onnx cannot convert this pipeline of {kinds}: {told} {', or '.join(cures)}."
    )


def _row_type(dtype: npt.DTypeLike) -> np.dtype[Any]:
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64) or found is None:
        raise ValueError(
            f"dtype must be float32 or float64, the type of the rows that the graph takes, got "
            f"{dtype if found is None else found}. Rows of another type are cast before they are "
            "passed to it."
        )
    return found


def _properties(steps: list[tuple[str, Any]]) -> dict[str, str]:
    """Return what is to be known of a graph beside what it computes."""
    found = {
        "kmeans-kernel": __version__,
        "classes": json.dumps(steps[-1][1].classes_.tolist(), ensure_ascii=False),
    }
    shapes = [getattr(step, "image_shape_", None) for _, step in steps]
    known = [shape for shape in shapes if shape is not None]
    if known:
        found["image_shape"] = json.dumps(list(map(int, known[0])))
    return found
