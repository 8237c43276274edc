"""Choosing the kernel and the regularisation by predictions of what was held out.

The loss of what is held out has one valley over the width of a kernel and one over the
regularisation, so that walks downhill find the best.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from kmeans_kernel.core.arrays.blocking import Array, IntArray
from kmeans_kernel.core.kernels.kernels import Gaussian, Kernel, Laplacian
from kmeans_kernel.core.training.cross_validation import HeldOut

# Where the walks start, and how far they go: 2γ = 2ᵏ and λ = 10^(k/2).
_FIRST_WIDTH, _WIDTHS = 2, (-3, 10)
_FIRST_POWER, _POWERS = -8, (-16, 2)

# A kernel for each inverse width γ.
Family: TypeAlias = type[Gaussian] | type[Laplacian]

# The (n,) losses of samples: of (n, K) scores, (n,) columns of the classes, (n,) weights.
Losses: TypeAlias = Callable[[Array, IntArray, Array], Array]


def squared_losses(scores: Array, codes: IntArray, weights: Array) -> Array:  # noqa: ARG001
    """Return the (n,) squared errors of scores that should be one for the class, else zero."""
    off = scores.copy()
    off[np.arange(len(codes)), codes] -= 1.0
    return np.asarray((off**2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Choice:
    """What predicts best.

    Attributes
    ----------
    kernel, regularization : the best
    losses : (n,) of each held-out sample
    scores : (n, K) of each
    codes : (n,) the columns of their classes
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


def choose(
    held_out: HeldOut,
    kernels: Kernel | Sequence[Family],
    regularization: float | None,
    near: Choice | None = None,
    on_trial: Callable[[Kernel, float], None] | None = None,
    stride: int = 1,
    losses: Losses = squared_losses,
) -> Choice:
    """Return the kernel and the regularisation with the least loss of the held out.

    Kernels of a family are tried at 2γ = 2ᵏ, and regularisations, if None is given, `stride` roots
    of ten apart. Walks start at `near`, if that is known, and stay in its family.
    """
    search = _Search(held_out, losses, regularization, stride, on_trial)
    if not isinstance(kernels, Sequence):
        return search.of_kernel(kernels, near)
    start, families = _FIRST_WIDTH, kernels
    if near is not None and isinstance(near.kernel, Gaussian | Laplacian):
        start, families = round(np.log2(2.0 * near.kernel.gamma)), [type(near.kernel)]
    found = [search.of_family(family, start, near) for family in families]
    return min(found, key=lambda choice: choice.mean_loss)


@dataclass(frozen=True, eq=False)
class _Search:
    """What the trials of `choose` have in common."""

    held_out: HeldOut
    losses: Losses
    regularization: float | None
    stride: int
    on_trial: Callable[[Kernel, float], None] | None

    def of_family(self, family: Family, start: int, near: Choice | None) -> Choice:
        """Walk over the widths; each trial starts from the λ of the one before."""
        last = near

        def attempt(k: int) -> Choice:
            nonlocal last
            last = self.of_kernel(family(2.0 ** (k - 1)), last)
            return last

        return _walk(attempt, start, *_WIDTHS)

    def of_kernel(self, kernel: Kernel, near: Choice | None) -> Choice:
        """Walk over the regularisations, if none is given."""
        held_out, scores = self.held_out, self.held_out.scores(kernel)

        def attempt(value: float) -> Choice:
            found = scores(value)
            losses = self.losses(found, held_out.codes, held_out.weights)
            return Choice(kernel, value, losses, found, held_out.codes, held_out.weights)

        if self.regularization is None:
            start = _FIRST_POWER if near is None else round(2 * np.log10(near.regularization))
            best = _walk(lambda k: attempt(10.0 ** (k / 2)), start, *_POWERS, self.stride)
        else:
            best = attempt(self.regularization)
        if self.on_trial is not None:
            self.on_trial(kernel, best.mean_loss)
        return best


def _walk(
    attempt: Callable[[int], Choice], start: int, lowest: int, highest: int, stride: int = 1
) -> Choice:
    """Walk from a place along whole numbers while it goes downhill."""
    best = attempt(start)
    for direction in (stride, -stride):
        k = start + direction
        while lowest <= k <= highest and (trial := attempt(k)).mean_loss < best.mean_loss:
            best, k = trial, k + direction
        if k != start + direction:
            break
    return best


def falls(old: Array, new: Array, weights: Array) -> bool:
    """Say whether the new losses of the same samples are lower by more than noise."""
    gains = old - new
    mean = float(np.average(gains, weights=weights))
    variance = float(np.average((gains - mean) ** 2, weights=weights))
    return mean > float(np.sqrt(variance / len(gains)))
