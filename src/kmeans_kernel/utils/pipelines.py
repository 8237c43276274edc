"""Steps of pipelines, nested ones among them."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline


def steps_of(estimator: Any) -> list[tuple[str, Any]]:
    """Return the steps of a pipeline, nested pipelines flattened and passthrough steps removed."""
    if not isinstance(estimator, Pipeline):
        return [("", estimator)]
    steps = []
    for name, step in estimator.steps:
        if isinstance(step, Pipeline):
            steps += [(f"{name}.{inner}", part) for inner, part in steps_of(step)]
        elif step not in (None, "passthrough"):
            steps.append((name, step))
    return steps


def flatten(estimator: Any) -> Any:
    """Return a fitted pipeline without nested pipelines and passthrough steps."""
    return Pipeline(steps_of(estimator)) if isinstance(estimator, Pipeline) else estimator
