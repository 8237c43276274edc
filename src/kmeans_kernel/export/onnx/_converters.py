"""Registration with skl2onnx: a shape calculator and a converter for each estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from skl2onnx import update_registered_converter
from skl2onnx._parse import _parse_sklearn_simple_model
from skl2onnx.common.data_types import (
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
    TensorType,
)
from skl2onnx.common.utils_classifier import get_label_classes

from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.estimators.columns._encoder import TableEncoder
from kmeans_kernel.estimators.transformers._agop_projection import AGOPProjection
from kmeans_kernel.estimators.transformers._base import PixelTransformer
from kmeans_kernel.estimators.transformers._deskewer import Deskewer
from kmeans_kernel.estimators.transformers._edge_patterns import EdgePatterns
from kmeans_kernel.estimators.transformers._fourier import FourierFeatures
from kmeans_kernel.estimators.transformers._hog import OrientedGradients
from kmeans_kernel.estimators.transformers._pixels import PixelNormalizer
from kmeans_kernel.export.onnx._encoding import mapped_features
from kmeans_kernel.export.onnx._graph import FLOAT32, FLOAT64, Graph, Name, float_type, tensor_type
from kmeans_kernel.export.onnx._inputs import is_of_table, table_rows
from kmeans_kernel.export.onnx._score import labels_of, probabilities_of, scores_of
from kmeans_kernel.export.onnx._transformers import (
    deskewed_features,
    fourier_features,
    gradient_features,
    metric_features,
    pattern_features,
    pixel_features,
)
from kmeans_kernel.export.onnx._voting import vote_probabilities

# Adds a transformer to a graph: (graph, transformer, input, type of the output) -> output.
FeatureBuilder: TypeAlias = Callable[[Graph, Any, Name, np.dtype[Any]], Name]


def _encoder_features(
    graph: Graph, encoder: TableEncoder, rows: Name, dtype: np.dtype[Any]
) -> Name:
    return mapped_features(graph, encoder._encoding, rows, dtype)


_TRANSFORMERS: dict[type, FeatureBuilder] = {
    PixelNormalizer: pixel_features,
    FourierFeatures: fourier_features,
    Deskewer: deskewed_features,
    OrientedGradients: gradient_features,
    EdgePatterns: pattern_features,
    AGOPProjection: metric_features,
    TableEncoder: _encoder_features,
}

# The options of skl2onnx's own classifiers.
_OPTIONS = {
    "zipmap": [True, False, "columns"],
    "nocl": [True, False],
    "output_class_labels": [False, True],
}

# As in skl2onnx's own classifiers, numeric and boolean labels are int64.
_LABEL_TYPES: dict[str, tuple[type[TensorType], Any]] = {
    "b": (Int64TensorType, np.int64),
    "i": (Int64TensorType, np.int64),
    "u": (Int64TensorType, np.int64),
    "f": (Int64TensorType, np.int64),
    "U": (StringTensorType, np.object_),
    "O": (StringTensorType, np.object_),
}


def register() -> None:
    """Register the converters of all estimators with skl2onnx."""
    for kind, features in _TRANSFORMERS.items():
        update_registered_converter(
            kind,
            f"KMeansKernel{kind.__name__}",
            _set_transformer_types,
            _transformer_converter(features),
            parser=_parse_encoder if kind is TableEncoder else None,
        )
    update_registered_converter(
        KMeansKernelClassifier,
        "KMeansKernelClassifier",
        _set_classifier_types,
        _convert_classifier,
        options={**_OPTIONS, "raw_scores": [True, False]},
    )
    update_registered_converter(
        PatchVotingClassifier,
        "KMeansKernelPatchVotingClassifier",
        _set_classifier_types,
        _convert_voting,
        options=_OPTIONS,
    )


def _parse_encoder(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    """Declare the features of an encoder; of a table they are float64, whatever comes first."""
    outputs = _parse_sklearn_simple_model(scope, model, inputs, custom_parsers)
    if is_of_table(model):
        outputs[0].set_type(DoubleTensorType([None, None]))
    return outputs


def _set_transformer_types(operator: Any) -> None:
    transformer = operator.raw_operator
    is_encoder = isinstance(transformer, TableEncoder)
    width = transformer._encoding.n_features if is_encoder else transformer._n_features_out
    operator.outputs[0].set_type(tensor_type(_feature_type(operator), [None, width]))


def _feature_type(operator: Any) -> np.dtype[Any]:
    """Return the output type of a transformer, as in Python: integer pixels give float32."""
    found = _row_type(operator)
    of_pixels = isinstance(operator.raw_operator, PixelTransformer)
    is_double = isinstance(operator.inputs[0].type, DoubleTensorType)
    return FLOAT32 if of_pixels and not is_double else found


def _row_type(operator: Any) -> np.dtype[Any]:
    """Return the float type of the rows that a step takes, as in Python."""
    if is_of_table(operator.raw_operator):
        return FLOAT64
    (X,) = operator.inputs
    return float_type(X, type(operator.raw_operator).__name__)


def _rows(graph: Graph, operator: Any) -> Name:
    """Return the rows of numbers that a step takes, in the type that they have."""
    if is_of_table(operator.raw_operator):
        return table_rows(graph, operator.raw_operator, operator.inputs)
    (X,) = operator.inputs
    name: Name = X.full_name
    return name


def _transformer_converter(features: FeatureBuilder) -> Callable[[Any, Any, Any], None]:
    def convert(scope: Any, operator: Any, container: Any) -> None:
        graph = Graph(scope, container)
        rows = _rows(graph, operator)
        found = features(graph, operator.raw_operator, rows, _feature_type(operator))
        graph.assign(found, operator.outputs[0])

    return convert


def _set_classifier_types(operator: Any) -> None:
    classifier = operator.raw_operator
    _row_type(operator)  # raises for a type that cannot be converted
    classes = get_label_classes(operator.scope_inst, classifier)
    kind, _ = _label_type(classes)
    operator.outputs[0].set_type(kind([None]))
    numbers = operator.outputs[1]
    if is_of_table(classifier) and _is_plain(operator):
        # The parser of skl2onnx has looked at the first input alone.
        narrow = any(isinstance(one.type, FloatTensorType) for one in operator.inputs)
        numbers.set_type(FloatTensorType() if narrow else DoubleTensorType())
    numbers.type.shape = [None, len(classes)]


def _is_plain(operator: Any) -> bool:
    """Return whether the numbers are an output of the graph, not the input of a ZipMap."""
    options = operator.scope_inst.get_options(operator.raw_operator, {"zipmap": True})
    return options["zipmap"] is False


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    graph, classifier = Graph(scope, container), operator.raw_operator
    dtype = _row_type(operator)
    rows = graph.cast(_rows(graph, operator), dtype)
    scores = scores_of(graph, classifier.model_, rows, dtype)
    raw = container.get_options(classifier, {"raw_scores": False})["raw_scores"]
    if raw:
        found = _raw_scores(graph, scores, len(classifier.classes_))
    else:
        found = probabilities_of(graph, scores, classifier.model_.temperature)
    _set_outputs(graph, operator, scores, found)


def _raw_scores(graph: Graph, scores: Name, n_classes: int) -> Name:
    """Return raw scores in skl2onnx's form: for two classes −d and d of `decision_function`."""
    if n_classes != 2:
        return scores
    signs = np.array([[1.0, -1.0], [-1.0, 1.0]])
    return graph.op("MatMul", graph.cast(scores, FLOAT64), signs)


def _convert_voting(scope: Any, operator: Any, container: Any) -> None:
    graph, voting = Graph(scope, container), operator.raw_operator
    dtype = _row_type(operator)
    rows = graph.cast(_rows(graph, operator), dtype)
    shares = vote_probabilities(graph, scope, voting, rows, dtype)
    _set_outputs(graph, operator, shares, shares)


def _set_outputs(graph: Graph, operator: Any, scores: Name, found: Name) -> None:
    """Set the outputs of a classifier: labels of the highest scores, and `found` as numbers."""
    classes = get_label_classes(operator.scope_inst, operator.raw_operator)
    _, dtype = _label_type(classes)
    label, numbers = operator.outputs[:2]
    graph.assign(labels_of(graph, scores, classes.astype(dtype)), label)
    is_double = isinstance(numbers.type, DoubleTensorType)
    graph.assign(graph.cast(found, FLOAT64 if is_double else FLOAT32), numbers)


def _label_type(classes: npt.NDArray[Any]) -> tuple[type[TensorType], Any]:
    """Return the type of the labels in the graph, for skl2onnx and for NumPy."""
    kind, dtype = _LABEL_TYPES.get(classes.dtype.kind, (None, None))
    texts = classes.dtype.kind != "O" or all(isinstance(label, str) for label in classes)
    if kind is None or not texts or not _survives_cast(classes, dtype):
        raise TypeError(
            f"The labels of a graph must be text, or whole numbers that int64 holds, got "
            f"{classes[-1]!r}, {classes.dtype}. Train on such labels, for example y.astype(str)."
        )
    return kind, dtype


def _survives_cast(classes: npt.NDArray[Any], dtype: Any) -> bool:
    """Return whether a cast to `dtype` keeps all labels."""
    with np.errstate(invalid="ignore"):
        return bool(classes.astype(dtype).tolist() == classes.tolist())
