"""The unit sphere: where K-means clusters and every kernel is a function of the cosine."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.blocking import Array, cached_row_blocks
from kmeans_kernel.core.arrays.sparse import (
    Matrix,
    append_column,
    is_sparse,
    largest_entries,
    scale_columns,
    scale_rows,
    squared_lengths,
)

# A sum of squares outside this range is too near overflow or underflow to be trusted.
_SMALLEST_SQUARE, _LARGEST_SQUARE = 1e-280, 1e280


def unit_rows(
    X: Matrix,
    lift: float = 0.0,
    dtype: npt.DTypeLike = np.float32,
    scales: Array | None = None,
) -> Matrix:
    """Put finite rows, trusted to be so, on the unit sphere: x ↦ [x, lift] / ‖[x, lift]‖.

    Without a lift (0, the paper's setting) the length of a row is forgotten and the result has
    the shape of `X`; with one, the length survives as the angle to the appended last axis.
    A row that is all zero has no direction: without a lift it stays zero, so its cosine with
    everything is 0.

    Parameters
    ----------
    X : (n, d) numbers, dense or sparse
    lift : at least 0
    dtype : of the result; lengths are computed in float64 in any case
    scales : (d,) what each feature is multiplied by first, or None for ones

    Returns
    -------
    (n, d) rows, or (n, d + 1) with a lift, sparse if `X` is; never a view of `X`
    """
    if is_sparse(X):
        return _sparse_unit_rows(X, lift, dtype, scales)
    n, d = X.shape
    out = np.empty((n, d + 1 if lift > 0 else d), dtype=dtype)
    for rows in cached_row_blocks(n, d):
        block = X[rows].astype(np.float64)
        lifts = np.full(len(block), lift)
        if scales is not None:  # of at most one, so that no number grows too large
            block *= scales / scales.max()
            lifts /= scales.max()
        lengths = _bring_into_range(block, lifts)
        np.divide(block, lengths[:, np.newaxis], out=out[rows, :d], casting="same_kind")
        if lift > 0:
            out[rows, d] = lifts / lengths
    return out


def _sparse_unit_rows(X: Matrix, lift: float, dtype: npt.DTypeLike, scales: Array | None) -> Matrix:
    """Put sparse rows on the unit sphere; the largest entry of a row is brought near one first."""
    X = scale_columns(X, scales) if scales is not None else X
    largest = np.maximum(largest_entries(X), lift)
    largest[largest == 0] = 1.0
    X = scale_rows(X, 1.0 / largest, np.float64)
    lifts = lift / largest
    lengths = np.sqrt(squared_lengths(X) + lifts**2)
    lengths[lengths == 0] = 1.0
    X = scale_rows(X, 1.0 / lengths, dtype)
    return append_column(X, lifts / lengths) if lift > 0 else X


def unlift(directions: Array, lift: float) -> Array:
    """Return the points that `unit_rows` with this lift sends to `directions`.

    Directions are (m, d + 1) with a lift and (m, d) without; without one they are themselves the
    answer, since any length would do. A direction whose lifted axis was too small to be kept
    stands for a point that is very far out; it is given a large, finite length.
    """
    if lift > 0:
        height = np.maximum(directions[:, -1:], np.finfo(directions.dtype).tiny)
        return directions[:, :-1] * (lift / height)
    return directions


def _bring_into_range(block: Array, lifts: Array) -> Array:
    """Return the lengths of the rows [block, lifts], first rescaling in place those too extreme."""
    with np.errstate(over="ignore", under="ignore"):
        squares = _squared_lengths(block, lifts)
    extreme = ~((squares > _SMALLEST_SQUARE) & (squares < _LARGEST_SQUARE))
    if extreme.any():
        scales = np.maximum(np.abs(block[extreme]).max(axis=1, initial=0.0), lifts[extreme])
        scales[scales == 0] = 1.0
        block[extreme] /= scales[:, np.newaxis]
        lifts[extreme] /= scales
        with np.errstate(under="ignore"):
            squares[extreme] = _squared_lengths(block[extreme], lifts[extreme])
    lengths = np.sqrt(squares)
    lengths[lengths == 0] = 1.0
    return lengths


def _squared_lengths(block: Array, lifts: Array) -> Array:
    squares: Array = np.einsum("ij,ij->i", block, block) + lifts**2
    return squares
