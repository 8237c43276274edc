"""The search for kernel and regularization, by the loss of held-out predictions.

The loss has one valley over the width of a kernel and one over the regularization, so that walks
downhill find the best.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.events import CandidateTried, OnEvent
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.training.cross_validation import HeldOut

# Where the walks start, and how far they go: 2γ = 2ᵏ and λ = 10^(k/2).
_FIRST_WIDTH, _WIDTHS = 2, (-3, 10)
_FIRST_POWER, _POWERS = -8, (-16, 2)

# The (n,) losses of samples: of (n, K) scores, (n,) positions of the classes, (n,) weights.
Losses: TypeAlias = Callable[[Array, IntArray, Array], Array]


def squared_losses(scores: Array, codes: IntArray, weights: Array) -> Array:  # noqa: ARG001
    """Return the (n,) squared errors of scores whose targets are one for the class, else zero."""
    off = scores.copy()
    off[np.arange(len(codes)), codes] -= 1.0
    return np.asarray((off**2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel and a regularization, with its held-out predictions.

    Attributes
    ----------
    kernel, regularization : of the model
    losses : (n,) of each held-out sample
    scores : (n, K) of each
    codes : (n,) the positions of their classes
    weights : (n,)
    """

    kernel: Kernel
    regularization: float
    losses: Array
    scores: Array
    codes: IntArray
    weights: Array

    @property
    def mean_loss(self) -> float:
        """The weighted mean of the losses."""
        return float(np.average(self.losses, weights=self.weights))

    @property
    def error(self) -> float:
        """The weighted share of the held-out samples that are misclassified."""
        wrong = self.scores.argmax(axis=1) != self.codes
        return float(np.average(wrong, weights=self.weights))


def search(
    held_out: HeldOut,
    kernel: Kernel | tuple[Kernel, ...],
    regularization: float | None,
    near: Candidate | None = None,
    on_event: OnEvent | None = None,
    stride: int = 1,
    losses: Losses = squared_losses,
) -> Candidate:
    """Return the candidate with the least loss of the held-out samples.

    Parameters
    ----------
    kernel : the kernel; or several, each of which is tried at 2γ = 2ᵏ
    regularization : None to try powers of ten, `stride` half powers apart
    near : the best candidate of a similar problem, where the walks start; they stay in its family
    """

    def at_kernel(kernel: Kernel, near: Candidate | None) -> Candidate:
        best = _search_regularization(held_out, kernel, regularization, near, stride, losses)
        if on_event is not None:
            on_event(CandidateTried(kernel, best.mean_loss))
        return best

    if not isinstance(kernel, tuple):
        return at_kernel(kernel, near)
    start, families = _FIRST_WIDTH, kernel
    if near is not None and hasattr(near.kernel, "gamma"):
        start, families = round(np.log2(2.0 * near.kernel.gamma)), (near.kernel,)
    best: Candidate | None = None
    for family in families:
        found = _search_width(family, start, near, at_kernel)
        if best is None or found.mean_loss < best.mean_loss:
            best = found
    assert best is not None  # noqa: S101  there is at least one kernel
    return best


def _search_width(
    family: Any,
    start: int,
    near: Candidate | None,
    at_kernel: Callable[[Kernel, Candidate | None], Candidate],
) -> Candidate:
    """Walk over the widths of a kernel; each trial starts from the λ of the one before."""
    last = near

    def attempt(k: int) -> Candidate:
        nonlocal last
        last = at_kernel(replace(family, gamma=2.0 ** (k - 1)), last)
        return last

    return _walk(attempt, start, *_WIDTHS)


def _search_regularization(
    held_out: HeldOut,
    kernel: Kernel,
    regularization: float | None,
    near: Candidate | None,
    stride: int,
    losses: Losses,
) -> Candidate:
    """Walk over the regularizations, if none is given."""
    scores, codes, weights = held_out.scores(kernel), held_out.codes, held_out.weights

    def attempt(value: float) -> Candidate:
        found = scores(value)
        return Candidate(kernel, value, losses(found, codes, weights), found, codes, weights)

    if regularization is not None:
        return attempt(regularization)
    start = _FIRST_POWER if near is None else round(2 * np.log10(near.regularization))
    return _walk(lambda k: attempt(10.0 ** (k / 2)), start, *_POWERS, stride)


def _walk(
    attempt: Callable[[int], Candidate], start: int, lowest: int, highest: int, stride: int = 1
) -> Candidate:
    """Walk from a place along whole numbers while it goes downhill."""
    best = attempt(start)
    for direction in (stride, -stride):
        k = start + direction
        while lowest <= k <= highest and (trial := attempt(k)).mean_loss < best.mean_loss:
            best, k = trial, k + direction
        if k != start + direction:
            break
    return best


def is_significantly_lower(old: Array, new: Array, weights: Array) -> bool:
    """Say whether new losses of the same samples are lower by more than one standard error."""
    gains = old - new
    mean = float(np.average(gains, weights=weights))
    variance = float(np.average((gains - mean) ** 2, weights=weights))
    return mean > float(np.sqrt(variance / len(gains)))
