"""Search for kernel, γ and regularization by the loss of held-out predictions; held-out rows.

The loss is taken to be unimodal in log γ and in the log of the regularization, so each is found by
a walk downhill on a grid.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, cast

import numpy as np

from kmeans_kernel.core.arrays.events import CandidateTried, OnEvent
from kmeans_kernel.core.arrays.matrices import Array, IntArray
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.kernels.kernels import Kernel
from kmeans_kernel.core.training.cross_validation import HeldOut

# First grid point and range of k, for 2γ = 2ᵏ and for the regularization 10^(k/2).
_FIRST_WIDTH, _WIDTHS = 2, (-3, 10)
_FIRST_POWER, _POWERS = -8, (-16, 2)

# A function that returns the (n,) losses, given scores (n, K), positions of the classes (n,) and
# weights (n,).
Losses: TypeAlias = Callable[[Array, IntArray, Array], Array]


def squared_losses(scores: Array, codes: IntArray, weights: Array) -> Array:  # noqa: ARG001
    """Return the (n,) squared errors of scores against one-hot targets."""
    off = scores.copy()
    off[np.arange(len(codes)), codes] -= 1.0
    return np.asarray((off**2).sum(axis=1))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A kernel and a regularization, with the held-out predictions.

    Attributes
    ----------
    kernel, regularization : the hyperparameters
    losses : (n,) losses of the held-out samples
    scores : (n, K) scores of the held-out samples
    codes : (n,) positions of their classes
    weights : (n,) their weights
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
        """The weighted misclassification rate of the held-out samples."""
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
    """Return the candidate with the least mean loss of the held-out samples.

    Parameters
    ----------
    kernel : the kernel; or a tuple of kernels whose γ is searched over 2γ = 2ᵏ
    regularization : the regularization; None to search it over 10^(k/2)
    near : the best candidate of a similar problem: the walks start at its γ and regularization, and
        only its kernel family is searched
    stride : step of the walk over the regularization, in units of k
    losses : the loss
    """
    if not isinstance(kernel, tuple):
        return _search_regularization(
            held_out, kernel, regularization, near, on_event, stride, losses
        )
    start, families = _FIRST_WIDTH, kernel
    gamma = None if near is None else getattr(near.kernel, "gamma", None)
    if near is not None and gamma is not None:
        start, families = round(np.log2(2.0 * gamma)), (near.kernel,)
    found: list[Candidate] = []
    for family in families:
        last, walk = near, downhill(start, *_WIDTHS)
        k = next(walk)
        while k is not None:
            tried: Any = replace(cast(Any, family), gamma=2.0 ** (k - 1))
            # The walk over the regularization starts from the best of the last γ.
            last = _search_regularization(
                held_out, tried, regularization, last, on_event, stride, losses
            )
            found.append(last)
            k = walk.send(last.mean_loss)
    return min(found, key=lambda candidate: candidate.mean_loss)


def _search_regularization(
    held_out: HeldOut,
    kernel: Kernel,
    regularization: float | None,
    near: Candidate | None,
    on_event: OnEvent | None,
    stride: int,
    losses: Losses,
) -> Candidate:
    """Return the best candidate of one kernel, by a walk over the regularization if it is open."""
    scores, codes, weights = held_out.scores(kernel), held_out.codes, held_out.weights
    start = _FIRST_POWER
    if near is not None and regularization is None:
        start = round(2 * np.log10(near.regularization))
    walk, found = downhill(start, *_POWERS, stride), list[Candidate]()
    k = next(walk)
    while k is not None:
        value = 10.0 ** (k / 2) if regularization is None else regularization
        predicted = scores(value)
        lost = losses(predicted, codes, weights)
        found.append(Candidate(kernel, value, lost, predicted, codes, weights))
        k = walk.send(found[-1].mean_loss) if regularization is None else None
    best = min(found, key=lambda candidate: candidate.mean_loss)
    if on_event is not None:
        on_event(CandidateTried(kernel, best.error))
    return best


def downhill(
    start: int, lowest: int, highest: int, stride: int = 1
) -> Generator[int | None, float, None]:
    """Yield grid points to try, while the losses that are sent back fall; then None.

    The walk goes up from `start`, and down only if the first step up does not lower the loss.
    """
    best = yield start
    for step in (stride, -stride):
        k = start + step
        while lowest <= k <= highest:
            loss = yield k
            if not loss < best:
                break
            best, k = loss, k + step
        if k != start + step:
            break
    yield None


def is_significantly_lower(old: Array, new: Array, weights: Array, errors: float = 1.0) -> bool:
    """Return whether paired losses of the same samples fall by more than some standard errors."""
    gains = old - new
    mean = float(np.average(gains, weights=weights))
    variance = float(np.average((gains - mean) ** 2, weights=weights))
    return mean > errors * float(np.sqrt(variance / len(gains)))


def deal_folds(codes: IntArray, n_folds: int, rng: np.random.Generator) -> Iterator[IntArray]:
    """Yield the sorted positions of the samples in each of `n_folds` stratified folds."""
    fold = np.empty(len(codes), dtype=np.intp)
    dealt = 0
    for code in np.unique(codes):
        members = rng.permutation(np.flatnonzero(codes == code))
        fold[members] = (dealt + np.arange(len(members))) % n_folds
        dealt += len(members)
    for k in range(n_folds):
        positions = np.flatnonzero(fold == k)
        if 0 < len(positions) < len(codes):
            yield positions


def hold_out(
    rows: LabelledRows, n_folds: int, rng: np.random.Generator
) -> Iterator[tuple[LabelledRows, LabelledRows]]:
    """Yield the training rows and the held-out rows of each stratified fold.

    The copies of a merged row are dealt one by one. Otherwise a fold of a table with few distinct
    values would hold out combinations that no other fold has.
    """
    positions_of_copies = np.repeat(np.arange(len(rows)), rows.copies)
    for positions in deal_folds(rows.codes[positions_of_copies], n_folds, rng):
        held = np.bincount(positions_of_copies[positions], minlength=len(rows))
        yield rows.with_copies(rows.copies - held), rows.with_copies(held)
