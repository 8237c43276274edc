"""Evaluation and inspection of fitted classifiers, plots, and cost estimates of a fit."""

from typing import TYPE_CHECKING

from kmeans_kernel.utils.contents import lazy_names

if TYPE_CHECKING:
    from kmeans_kernel.report._evaluation import Evaluation, evaluate
    from kmeans_kernel.report._inspection import describe, representative_images
    from kmeans_kernel.report._planning import Plan, Problem, Rates, measure_rates, plan
    from kmeans_kernel.report._plots import (
        plot_attributions,
        plot_explanation,
        plot_validation_curve,
    )

__all__ = [
    "Evaluation",
    "Plan",
    "Problem",
    "Rates",
    "describe",
    "evaluate",
    "measure_rates",
    "plan",
    "plot_attributions",
    "plot_explanation",
    "plot_validation_curve",
    "representative_images",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "Evaluation": "_evaluation",
        "Plan": "_planning",
        "Problem": "_planning",
        "Rates": "_planning",
        "describe": "_inspection",
        "evaluate": "_evaluation",
        "measure_rates": "_planning",
        "plan": "_planning",
        "plot_attributions": "_plots",
        "plot_explanation": "_plots",
        "plot_validation_curve": "_plots",
        "representative_images": "_inspection",
    },
)
