"""Events of a fit: the records that `fit(X, y, callback=...)` passes to the callback."""

from kmeans_kernel.core.arrays.events import (
    CandidateTried,
    CentroidsMoved,
    ClassClustered,
    FitProgress,
    KMeansIteration,
    RowsRead,
    SizeTried,
    SolveStarted,
)

__all__ = [
    "CandidateTried",
    "CentroidsMoved",
    "ClassClustered",
    "FitProgress",
    "KMeansIteration",
    "RowsRead",
    "SizeTried",
    "SolveStarted",
]
