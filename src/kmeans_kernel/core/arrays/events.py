"""Events that training reports, as small records, to one callable that listens.

`fit(verbose=True)`, the progress bar of the command line and the checkpoint file are such
listeners. An event is made only if there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from kmeans_kernel.core.arrays.matrices import Array


@dataclass(frozen=True)
class KMeansIteration:
    """K-means of a class moved its centroids.

    Attributes
    ----------
    label : the class
    n_iter : the number of moves so far
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
    n_rows : rows of the class
    n_representatives : its centroids
    n_iter, deviation : at the last move
    """

    label: object
    n_rows: int
    n_representatives: int
    n_iter: int
    deviation: float


@dataclass(frozen=True, eq=False)
class CentroidsMoved:
    """The centroids of all classes moved, where rows are read out of core.

    Attributes
    ----------
    centroids : (Q, d) of each class, by its position among the classes
    """

    centroids: Mapping[int, Array]


@dataclass(frozen=True)
class RowsRead:
    """Rows of one pass over out-of-core data were read.

    Attributes
    ----------
    done, n_rows : rows read so far in this pass, and all rows
    """

    done: int
    n_rows: int


@dataclass(frozen=True)
class CandidateTried:
    """The search tried a kernel.

    Attributes
    ----------
    kernel : the kernel
    loss : the mean loss of the held-out rows, at its best regularization
    """

    kernel: object
    loss: float


@dataclass(frozen=True)
class SizeTried:
    """The search tried a number of representatives.

    Attributes
    ----------
    n_representatives : of each class
    held_out_error : the share of the held-out rows that were misclassified
    held_out_loss : the mean squared error of their probabilities
    seconds : time taken
    """

    n_representatives: int
    held_out_error: float
    held_out_loss: float
    seconds: float


@dataclass(frozen=True)
class SolveStarted:
    """The solver for the coefficients of m representatives starts."""

    m: int


Event: TypeAlias = (
    KMeansIteration
    | ClassClustered
    | CentroidsMoved
    | RowsRead
    | CandidateTried
    | SizeTried
    | SolveStarted
)
OnEvent: TypeAlias = Callable[[Event], None]
