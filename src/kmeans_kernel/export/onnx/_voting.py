"""Patch voting as ONNX operators."""

from __future__ import annotations

from typing import Any

import numpy as np
from skl2onnx._parse import _parse_sklearn

from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier, extract_patches
from kmeans_kernel.export.onnx._graph import FLOAT64, Graph, Name, float_type, tensor_type
from kmeans_kernel.export.onnx._score import probabilities_of, scores_of
from kmeans_kernel.utils.pipelines import steps_of


def vote_probabilities(
    graph: Graph, scope: Any, voting: PatchVotingClassifier, X: Name, dtype: np.dtype[Any]
) -> Name:
    """Return the (n, K) probabilities of images, given as rows of pixels of type `dtype`."""
    places = _patch_indices(voting)
    rows = graph.reshape(graph.op("Gather", X, places, axis=1), -1, places.shape[1])
    scores = _patch_scores(graph, scope, voting, rows, dtype)
    n_classes = len(voting.classes_)
    if n_classes == 2:  # ± half the difference, as `PatchVotingClassifier` splits binary scores
        halves = np.array([[0.5, -0.5], [-0.5, 0.5]])
        scores = graph.op("MatMul", scores, halves)
    scores = graph.reshape(scores, -1, len(places), n_classes)
    share = probabilities_of(graph, graph.reduce("Mean", scores, keep=False))
    if voting.vote == "sum":
        return share
    winners = graph.op("ArgMax", scores, axis=2, keepdims=1)
    votes = graph.cast(graph.op("Equal", winners, np.arange(n_classes)), FLOAT64)
    votes = graph.op("Add", graph.reduce("Sum", votes, keep=False), share)
    return graph.op("Div", votes, np.float64(len(places) + 1))


def _patch_scores(
    graph: Graph, scope: Any, voting: PatchVotingClassifier, rows: Name, dtype: np.dtype[Any]
) -> Name:
    """Return the (n_patches, K) float64 scores of patches.

    In float32, rounding would change the votes of patches whose two best scores nearly tie; the
    estimator computes these in float64 too. The steps before the classifier are registered as
    operators of their own, which skl2onnx converts later and connects by their variables.
    """
    *before, (_, classifier) = steps_of(voting.classifier_)
    if not isinstance(classifier, KMeansKernelClassifier):
        raise TypeError(
            f"The classifier of a {type(voting).__name__} must be a KMeansKernelClassifier, or a "
            f"Pipeline that ends in one, to be converted to ONNX, got a "
            f"{type(classifier).__name__}."
        )
    n_pixels = voting.patch_shape_[0] * voting.patch_shape_[1]
    variables = [scope.declare_local_variable("patches", tensor_type(dtype, [None, n_pixels]))]
    graph.assign(rows, variables[0])
    for _, step in before:
        variables = _parse_sklearn(scope, step, variables)
    (features,) = variables
    found = float_type(features, type(classifier).__name__)
    return scores_of(graph, classifier.model_, features.full_name, found, precise=True)


def _patch_indices(voting: PatchVotingClassifier) -> Any:
    """Return the (patches, pixels) indices of each patch's pixels in a row of pixels."""
    pixels = np.arange(voting.n_features_in_, dtype=np.int64)
    return extract_patches(pixels.reshape(1, *voting.image_shape_), voting.patch_shape_)
