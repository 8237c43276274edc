"""Export of classifiers as ONNX graphs, which predict without Python and this library.

Importing this module registers the estimators with skl2onnx: its own `to_onnx` then converts them
too, alone or as steps of a pipeline, with its options.
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
from kmeans_kernel.export.onnx._inputs import is_of_table, rename_inputs, table_inputs
from kmeans_kernel.export.onnx._steps import check_steps

__all__ = ["to_onnx"]

# Version of the ai.onnx.ml operators, which scikit-learn's converters use; released with OPSET.
_ML_OPSET = 3

# Most characters of another library's error message that are quoted; some list whole graphs.
_MAX_QUOTED = 600

register()


def to_onnx(
    estimator: Any,
    path: str | os.PathLike[str] | None = None,
    *,
    dtype: npt.DTypeLike = np.float32,
) -> onnx.ModelProto:
    """Convert a fitted classifier to an ONNX graph.

    The graph has the input "X", rows of pixels or features of shape (n, n_features) for any n, and
    the outputs "label" (n,) and "probabilities" (n, n_classes). It computes in the same precision
    as the classifier. Its metadata hold the version of kmeans-kernel, the classes, and the image
    shape of an image classifier. If the classifier takes missing values, they are NaN in "X".

    A classifier that was trained on a table has one input of shape (n, 1) for each column, with the
    name of the column. Columns that it does not use, as ids and constants, are no inputs.

    - A number is float or double, NaN where it is missing.
    - A boolean is float or double: 1, 0, or NaN where it is missing.
    - A category is a string, "" where it is missing; or a number, if its levels are numbers.
    - A date is double: seconds since 1970-01-01 UTC, NaN where it is missing.

    The metadata "inputs" describe them as JSON: name, kind, type, levels, and what stands for a
    missing value. "column" is the name of the column where it cannot be that of the input, because
    an output or another input has it. If "" is a level, another text stands for a missing value.

    Parameters
    ----------
    estimator : KMeansKernelClassifier, PatchVotingClassifier, or a Pipeline that ends in one
        Before the classifier a pipeline may hold any transformer of this library, and any that
        skl2onnx converts. Only the first step can take the columns of a table.
    path : path or None, default=None
        The file to write, atomically; None writes no file.
    dtype : float32 or float64, default=float32
        The data type of the numbers in the inputs and of the probabilities. With float32, those
        columns are double whose numbers float32 would change too much, as 12345.67 among others
        that are 0.01 apart.

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
    rows = _check_dtype(dtype)
    steps = check_steps(estimator)
    graph = _convert(steps, rows)
    onnx.helper.set_model_props(graph, _metadata(steps, rows))
    _check(graph, steps, rows)
    if target is not None:
        write_whole(target, graph.SerializeToString())
    return graph


def _convert(steps: list[tuple[str, Any]], rows: np.dtype[Any]) -> onnx.ModelProto:
    first, classifier = steps[0][1], steps[-1][1]
    of_table = is_of_table(first)
    inputs = table_inputs(first, rows) if of_table else []
    types = [(one.name, one.type([None, 1])) for one in inputs]
    # The parser of skl2onnx takes the type of the probabilities from the first input.
    outputs = [("label", None), ("probabilities", tensor_type(rows, [None, None]))]
    try:
        graph: onnx.ModelProto = skl2onnx.to_onnx(
            Pipeline(steps) if len(steps) > 1 else classifier,
            initial_types=types or [("X", tensor_type(rows, [None, int(first.n_features_in_)]))],
            name=type(classifier).__name__,
            target_opset={"": OPSET, "ai.onnx.ml": _ML_OPSET},
            options={id(classifier): {"zipmap": False}},
            final_types=outputs if of_table else None,
        )
    except RuntimeError as error:  # skl2onnx: a nested estimator or a parameter it cannot convert
        raise _conversion_error(error, steps, rows) from error
    if of_table:
        rename_inputs(graph.graph, [one.name for one in inputs])
    return graph


def _check(graph: onnx.ModelProto, steps: list[tuple[str, Any]], rows: np.dtype[Any]) -> None:
    """Validate the graph, and load it in onnxruntime if that is installed."""
    try:
        onnx.checker.check_model(graph, full_check=True)
        if find_spec("onnxruntime") is not None:
            import onnxruntime

            onnxruntime.InferenceSession(
                graph.SerializeToString(), providers=["CPUExecutionProvider"]
            )
    except Exception as error:  # onnx and onnxruntime have exception types of their own
        raise _conversion_error(error, steps, rows) from error


def _conversion_error(
    error: Exception, steps: list[tuple[str, Any]], rows: np.dtype[Any]
) -> TypeError:
    """Return an error that quotes another library's error and adds remedies."""
    kinds = ", ".join(type(step).__name__ for _, step in steps)
    quoted = " ".join(str(error).split())[:_MAX_QUOTED]
    remedies = ["Take the step out of the pipeline and apply it to the rows before the graph"]
    if "column name" in quoted:
        remedies.append("name columns by their numbers")
    if rows == np.float64:
        remedies.append("convert with dtype float32, which more operators support")
    return TypeError(
        f"to_onnx cannot convert this pipeline of {kinds}: {quoted} {', or '.join(remedies)}."
    )


def _check_dtype(dtype: npt.DTypeLike) -> np.dtype[Any]:
    try:
        found = None if dtype is None else np.dtype(dtype)
    except TypeError:
        found = None
    if found not in (np.float32, np.float64) or found is None:
        raise ValueError(
            f"dtype must be float32 or float64, the type of the rows that the graph takes, got "
            f"{dtype if found is None else found}. Cast rows of another type before they are "
            "passed to the graph."
        )
    return found


def _metadata(steps: list[tuple[str, Any]], rows: np.dtype[Any]) -> dict[str, str]:
    """Return the metadata of the graph: version, classes, inputs of a table, and image shape."""
    found = {
        "kmeans-kernel": __version__,
        "classes": json.dumps(steps[-1][1].classes_.tolist(), ensure_ascii=False),
    }
    if is_of_table(steps[0][1]):
        inputs = [one.describe() for one in table_inputs(steps[0][1], rows)]
        found["inputs"] = json.dumps(inputs, ensure_ascii=False)
    shapes = [getattr(step, "image_shape_", None) for _, step in steps]
    known = [shape for shape in shapes if shape is not None]
    if known:
        found["image_shape"] = json.dumps(list(map(int, known[0])))
    return found
