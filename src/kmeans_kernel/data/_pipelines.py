"""Out-of-core fit of scikit-learn pipelines that end in KMeansKernelClassifier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from sklearn.base import clone
from sklearn.pipeline import Pipeline

from kmeans_kernel.data._blocks import TransformedBlocks, refuse_one_shot
from kmeans_kernel.data._sources import is_dask


def fit_pipeline(
    pipeline: Pipeline, rows: Any, target: str | None = None, **options: Any
) -> Pipeline:
    """Fit a pipeline that ends in KMeansKernelClassifier out of core.

    Parameters
    ----------
    pipeline : Pipeline
        The steps before the classifier must have `partial_fit`, as StandardScaler does. For a Dask
        frame there must be exactly one, a StandardScaler with default parameters.
    rows : re-iterable of blocks, or Dask frame
        Blocks are (X, y) or (X, y, sample_weight); every iteration must start from the first.
    target : str, default=None
        The name of the label column of a Dask frame.
    **options
        Keyword arguments of the classifier's `fit`.

    Returns
    -------
    pipeline, fitted

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kmeans_kernel import KMeansKernelClassifier
    >>> from kmeans_kernel.data import ArrayBlocks, fit_pipeline
    >>> X, y = np.arange(40.0).reshape(20, 2), np.arange(20) // 10
    >>> model = make_pipeline(StandardScaler(), KMeansKernelClassifier(2, random_state=0))
    >>> fit_pipeline(model, ArrayBlocks(X, y, rows=8)).score(X, y)
    1.0
    """
    if is_dask(rows):
        from kmeans_kernel.data._dask import fit_scaled_pipeline

        if target is None:
            raise ValueError("fit_pipeline needs target, the column of the labels of a Dask frame.")
        return fit_scaled_pipeline(pipeline, rows, target, **options)
    refuse_one_shot("fit_pipeline", rows)
    return _fit_steps(pipeline, rows, options)


def _fit_steps(pipeline: Pipeline, blocks: Iterable[Any], options: dict[str, Any]) -> Pipeline:
    """Fit each step to all blocks, transformed by the steps before it."""
    for name, step in pipeline.steps[:-1]:
        if step is None or step == "passthrough":
            continue
        if not hasattr(step, "partial_fit"):
            raise ValueError(
                f"step {name!r} of the pipeline, {type(step).__name__}, cannot be fitted block by "
                "block: it has no partial_fit."
            )
        fresh = clone(step)
        for X, y, *_ in blocks:
            if len(y):
                fresh.partial_fit(X)
        step.__dict__.update(vars(fresh))
        blocks = TransformedBlocks(blocks, step.transform)
    pipeline.steps[-1][1].fit(blocks, **options)
    return pipeline
