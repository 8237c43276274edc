"""FALKON-style preconditioners: the covariance of whitened features, estimated.

From the landmarks and their counts where samples are few for each of them; from a sample of the
rows where they are many.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from kmeans_kernel.core.arrays.execution import SERIAL, Executor
from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.rows import LabelledRows, stratified_sample
from kmeans_kernel.core.solvers.nystrom import (
    NormalEquations,
    NystromBasis,
    cosines,
    directions_for_cosines,
    sample_size,
    whitened_blocks,
)

# Samples used by the estimate, per representative.
_SHARE_OF_SAMPLES = 0.25


def sample_equations(
    basis: NystromBasis, rows: LabelledRows, executor: Executor = SERIAL
) -> NormalEquations:
    """Return the normal equations of a stratified sample of rows, the same at every call."""
    size = sample_size(len(rows), len(basis.directions))
    some = stratified_sample(rows, size, np.random.default_rng(0))
    return NormalEquations.of(whitened_blocks(basis, some, executor))


def estimate_covariance(
    basis: NystromBasis, rows: LabelledRows, counts: npt.NDArray[Any]
) -> tuple[Array, Array]:
    """Estimate the mean (m,) and the covariance (m, m) of the whitened features of the samples.

    The estimate is the between-cluster covariance of the representatives, weighted by their counts,
    whose whitened features are the rows of L; plus the within-cluster covariance of a few samples.
    It costs m³ in float32 and captures most of the spectrum, which a preconditioner needs.

    Parameters
    ----------
    counts : (m,) total weight of the samples in the cluster of each representative
    """
    factor = basis.factor.astype(np.float32, order="F")
    weights = counts / counts.sum()
    mean = weights @ basis.factor
    n, n_some = len(rows), max(1, round(_SHARE_OF_SAMPLES * len(factor)))
    some = rows.at(np.arange(0, n, -(-n // n_some)))
    values = cosines(some, directions_for_cosines(basis))
    nearest = values.argmax(axis=1)
    basis.kernel.apply(values)
    about = solve_triangular(
        factor, values.T.astype(np.float32, copy=False), lower=True, check_finite=False
    ).T
    about -= factor[nearest]
    some_weights = some.row_weights
    roots = np.sqrt(np.concatenate([weights, some_weights / some_weights.sum()]))
    scatter = np.concatenate([factor, about])
    scatter *= roots[:, None].astype(np.float32)
    covariance = (scatter.T @ scatter).astype(np.float64)
    covariance -= np.outer(mean, mean)
    return mean, covariance
