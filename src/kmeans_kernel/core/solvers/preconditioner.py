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
    whitened_blocks,
)

# Samples used by the estimate, per representative.
_SHARE_OF_SAMPLES = 0.25

# Rows of the sample for each landmark, at least and at most. With s of them the eigenvalues of the
# preconditioned covariance are about (1 ± 1/√s)², so a step of conjugate gradients divides the error
# by √s: by 2.5 and by 4.5. More rows pay where a pass over all rows is expensive.
_LEAST_SAMPLE, _MOST_SAMPLE, _SHARE_OF_ROWS = 6, 20, 0.04

# A sample pays if it is at most this share of the rows, and all of them would take more than this
# many operations (n m²): about two seconds on two cores. Smaller problems are solved exactly.
_SMALL_SHARE, _MOST_EXACT = 0.25, 1e11


def sample_size(n: int, m: int) -> int:
    """Return the number of rows, of n, from which to estimate the covariance of m features."""
    return int(min(max(_SHARE_OF_ROWS * n, _LEAST_SAMPLE * m), _MOST_SAMPLE * m))


def sampling_pays(n: int, m: int) -> bool:
    """Return whether to estimate the covariance from a sample instead of all n rows."""
    return sample_size(n, m) <= _SMALL_SHARE * n and float(n) * m**2 > _MOST_EXACT


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
