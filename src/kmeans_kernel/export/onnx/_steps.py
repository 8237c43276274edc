"""Steps of an estimator, and the check that each can be converted."""

from __future__ import annotations

from typing import Any

from skl2onnx._supported_operators import sklearn_operator_name_map
from sklearn.utils.validation import check_is_fitted

from kmeans_kernel.estimators._classifier import KMeansKernelClassifier
from kmeans_kernel.estimators._patch_voting import PatchVotingClassifier
from kmeans_kernel.export.onnx._inputs import is_of_table
from kmeans_kernel.utils.pipelines import steps_of

_OURS = (KMeansKernelClassifier, PatchVotingClassifier)


def check_steps(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps of a fitted classifier; raise TypeError if one cannot be converted."""
    steps = steps_of(estimator)
    for k, (name, step) in enumerate(steps, start=1):
        where = f"step {k}, {name!r}, a {type(step).__name__}" if name else type(step).__name__
        if k == len(steps) and type(step) not in _OURS:
            raise TypeError(
                f"to_onnx takes a KMeansKernelClassifier, a PatchVotingClassifier, or a Pipeline "
                f"that ends in one, got one that ends in a {type(step).__name__}. Pass "
                "best_estimator_ of a search; for other estimators there is skl2onnx.to_onnx."
            )
        if type(step) not in sklearn_operator_name_map:
            raise TypeError(
                f"to_onnx cannot convert {where}: neither kmeans-kernel nor skl2onnx knows how. "
                "Take the step out of the pipeline and apply it to the rows before the graph, or "
                "register a converter by skl2onnx.update_registered_converter."
            )
        check_is_fitted(step)
        if k > 1 and is_of_table(step):
            raise TypeError(
                f"to_onnx cannot convert {where}, which was trained on the columns of a table: the "
                "steps before it give one tensor of one type in a graph. Leave them out, or let "
                "them give rows of numbers."
            )
        if k == 1 and not hasattr(step, "n_features_in_"):
            raise TypeError(
                f"to_onnx makes graphs that take dense rows of numbers, and {where} takes text or "
                "the like and gives sparse rows. Take it out of the pipeline and apply it to the "
                "rows before the graph."
            )
    if isinstance(steps[-1][1], PatchVotingClassifier):
        check_steps(steps[-1][1].classifier_)
    return steps
