"""Progress events: small records that training passes to a listener, a callable.

The printer of `fit(verbose=True)`, the progress bar of the command line and the writer of the
checkpoint file are listeners. Without a listener no event is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kmeans_kernel.core.arrays.matrices import Array


@dataclass(frozen=True)
class KMeansIteration:
    """One Lloyd iteration of the K-means of a class ended.

    Attributes
    ----------
    label : the class
    n_iter : iterations so far
    deviation : δ, the mean of 1 − cosine between old and new centroids
    """

    label: object
    n_iter: int
    deviation: float


@dataclass(frozen=True)
class ClassClustered:
    """K-means of a class ended.

    Attributes
    ----------
    label : the class
    n_rows : number of rows of the class
    n_representatives : number of its centroids
    n_iter, deviation : as in `KMeansIteration`, at the last iteration
    """

    label: object
    n_rows: int
    n_representatives: int
    n_iter: int
    deviation: float


@dataclass(frozen=True, eq=False)
class CentroidsMoved:
    """The centroids of all classes moved: one Lloyd iteration of out-of-core K-means.

    Attributes
    ----------
    centroids : (Q, d) centroids of each class; the keys are positions among the classes
    """

    centroids: Mapping[int, Array]


@dataclass(frozen=True)
class RowsRead:
    """Further rows were read in a pass over out-of-core data.

    Attributes
    ----------
    done : number of rows read so far in this pass
    n_rows : number of all rows
    """

    done: int
    n_rows: int


@dataclass(frozen=True)
class CandidateTried:
    """The search tried a kernel.

    Attributes
    ----------
    kernel : the kernel
    error : misclassification rate of the held-out rows at the best regularization for this kernel
    """

    kernel: object
    error: float


@dataclass(frozen=True)
class SizeTried:
    """The search tried a number of representatives.

    Attributes
    ----------
    n_representatives : Q, the representatives of each class
    held_out_error : share of the held-out rows that were misclassified
    held_out_loss : mean Brier score of the held-out rows
    seconds : duration of the trial
    """

    n_representatives: int
    held_out_error: float
    held_out_loss: float
    seconds: float


@dataclass(frozen=True)
class FitProgress:
    """A part of the whole fit is done.

    Attributes
    ----------
    stage : what runs now: "search", "clustering" or "solving"
    fraction : estimated share of the whole fit that is done, from 0 to 1; it never falls
    """

    stage: str
    fraction: float


@dataclass(frozen=True)
class SolveStarted:
    """The solve for the coefficients of m representatives starts."""

    m: int


Event: TypeAlias = (
    KMeansIteration
    | ClassClustered
    | CentroidsMoved
    | RowsRead
    | CandidateTried
    | SizeTried
    | SolveStarted
    | FitProgress
)
OnEvent: TypeAlias = Callable[[Event], None]
