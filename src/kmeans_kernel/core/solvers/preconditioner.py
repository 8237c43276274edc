"""A preconditioner from the representatives: an estimate of the covariance of whitened features."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.linalg import solve_triangular

from kmeans_kernel.core.arrays.matrices import Array
from kmeans_kernel.core.arrays.rows import LabelledRows
from kmeans_kernel.core.solvers.nystrom import NystromBasis, cosines, directions_for_cosines

# Samples that the estimate uses, for each representative.
_SHARE_OF_SAMPLES = 0.25


def estimate_covariance(
    basis: NystromBasis, rows: LabelledRows, counts: npt.NDArray[Any]
) -> tuple[Array, Array]:
    """Estimate the mean (m,) and the covariance (m, m) of the whitened features of the samples.

    It is the covariance of the representatives, each with the weight of its samples, whose whitened
    features are the rows of the factor; plus that of a few samples about their representatives.
    It costs m³ in float32 and knows most of the spectrum: enough for a preconditioner.

    Parameters
    ----------
    counts : (m,) the weight of the samples that each representative stands for
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
