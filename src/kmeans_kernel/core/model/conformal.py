"""Conformal prediction sets: thresholds of probabilities from held-out samples.

A label is in the set of a row if its probability is at least 1 − q, where q is the quantile of the
nonconformity 1 − p(own class) of held-out samples, one more sample of the largest nonconformity
among them. If rows to come are drawn like the held-out ones, the set contains the right label with
at least the coverage asked for, whatever the model is. Of all sets with that coverage on average,
those of the highest probabilities are the smallest.

M. Sadinle, J. Lei and L. Wasserman, "Least ambiguous set-valued classifiers with bounded error
levels", JASA 2019; V. Vovk, "Cross-conformal predictors", Annals of Mathematics and Artificial
Intelligence, 2015.
"""

from __future__ import annotations

import numpy as np

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.model.temperature import HeldOutProbabilities


def thresholds(
    held_out: HeldOutProbabilities, n_classes: int, coverage: float, by_class: bool
) -> Array:
    """Return the (K,) least probability with which each class is in a prediction set.

    Zero where too few samples were held out for the coverage: the class is then in every set.

    Parameters
    ----------
    coverage : probability that the set contains the right label, above 0 and below 1
    by_class : whether that is to hold for the rows of each class on their own
    """
    if not by_class:
        return np.full(n_classes, _threshold(held_out.probabilities, held_out.weights, coverage))
    found = np.zeros(n_classes)
    for k in range(n_classes):
        mine = held_out.codes == k
        found[k] = _threshold(held_out.probabilities[mine], held_out.weights[mine], coverage)
    return found


def _threshold(probabilities: Array, weights: Array, coverage: float) -> float:
    """Return the largest threshold that keeps the coverage, with one more sample below it."""
    if not len(probabilities):
        return 0.0
    order = np.argsort(-probabilities, kind="stable")
    covered = np.cumsum(weights[order])
    # Rounding of the sums does not decide.
    wanted = coverage * (covered[-1] + weights.mean()) * (1.0 - 1e-12)
    place = int(np.searchsorted(covered, wanted))
    return float(probabilities[order[place]]) if place < len(order) else 0.0
