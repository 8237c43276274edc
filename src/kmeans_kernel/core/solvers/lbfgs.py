"""L-BFGS for short, well-preconditioned problems.

A hyperparameter search solves hundreds of small problems, on which the overhead of SciPy's L-BFGS-B
outweighs the arithmetic of a step. Here the variables are preconditioned and the unit step is
nearly always accepted, so a step is one evaluation and few vector operations. J. Nocedal and S.
Wright, "Numerical Optimization", 2006, algorithms 7.4 and 7.5.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.matrices import Array

# Number of corrections kept, sufficient decrease, and the most halvings of a step.
_MEMORY, _DECREASE, _HALVINGS = 8, 1e-4, 20

# Corrections: step, change of the slope, and 1 / their inner product.
Pairs: TypeAlias = deque[tuple[Array, Array, float]]


def no_pairs() -> Pairs:
    """Return room for the corrections of a minimisation."""
    return deque(maxlen=_MEMORY)


def minimize(
    loss_and_slope: Callable[[Array], tuple[float, Array]],
    start: Array,
    tolerance: float,
    most_steps: int,
    out: Pairs | None = None,
) -> tuple[Array, float, Array]:
    """Return the minimiser (p,), the loss and the slope there; arguments are trusted.

    Stops when a step lowers the loss by less than `tolerance`, or not at all.

    Parameters
    ----------
    out : the curvature of a similar loss, from `no_pairs` and filled by another call; it is
        continued with that of this loss
    """
    x = start
    loss, slope = loss_and_slope(x)
    pairs = no_pairs() if out is None else out
    for _ in range(most_steps):
        direction = _direction(slope, pairs)
        along = float(slope @ direction)
        if not along < 0:
            if not pairs:
                break
            pairs.clear()
            continue
        size = 1.0
        for _ in range(_HALVINGS):
            moved = x + size * direction
            new_loss, new_slope = loss_and_slope(moved)
            if new_loss <= loss + _DECREASE * size * along:
                break
            size *= 0.5
        else:
            if not pairs:
                break
            pairs.clear()  # the estimate of the curvature misleads: start again downhill
            continue
        step, change = moved - x, new_slope - slope
        curvature = float(step @ change)
        if curvature > 0:
            pairs.append((step, change, 1.0 / curvature))
        gain = loss - new_loss
        x, loss, slope = moved, new_loss, new_slope
        if gain < tolerance:
            break
    return x, loss, slope


def _direction(slope: Array, pairs: Pairs) -> Array:
    """Return minus the inverse Hessian estimate times the slope: the two-loop recursion."""
    direction = -slope
    shares = []
    for step, change, inverse in reversed(pairs):
        share = inverse * float(step @ direction)
        direction = direction - share * change
        shares.append(share)
    if pairs:
        step, change, inverse = pairs[-1]
        direction = direction / (inverse * float(change @ change))
    for (step, change, inverse), share in zip(pairs, reversed(shares), strict=True):
        direction = direction + (share - inverse * float(change @ direction)) * step
    return np.asarray(direction)
