"""Rows that occur more than once: one row with the weight of all.

So an integer weight is the same as repeating the row, whatever is random later: both come to the
same rows, with the same weights, in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_array

from kmeans_kernel.core.arrays.blocking import IntArray, row_blocks
from kmeans_kernel.core.arrays.sparse import Matrix, is_sparse, n_rows


def merge_equal_rows(
    X: Matrix, codes: IntArray, weights: npt.NDArray[np.float64] | None
) -> tuple[Matrix, IntArray, npt.NDArray[np.float64] | None]:
    """Merge rows that are equal and of one class, and leave out those without weight.

    Parameters
    ----------
    X : (n, d) floats; sparse ones without stored zeros and with their indices in order
    codes : (n,) the class of each row
    weights : (n,) at least 0, or None for ones

    Returns
    -------
    the rows, their classes and their weights. If every weight is one at the end they come as they
    were, and the weights are None; else they are in an order that depends on the rows alone.
    """
    if weights is not None and not weights.all():
        kept = np.flatnonzero(weights)
        X, codes, weights = X[kept], codes[kept], weights[kept]
    keys = _keys(X, codes)
    order = np.argsort(keys, kind="stable")
    same = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    first, second = order[same], order[same + 1]
    equal = _equal_rows(X, first, second) & (codes[first] == codes[second])
    if not equal.any() and (weights is None or (weights == 1).all()):
        return X, codes, None
    starts = np.setdiff1d(np.arange(n_rows(X)), same[equal] + 1, assume_unique=True)
    total = np.add.reduceat((np.ones(n_rows(X)) if weights is None else weights)[order], starts)
    return X[order[starts]], codes[order[starts]], total


def _equal_rows(X: Matrix, first: IntArray, second: IntArray) -> npt.NDArray[np.bool_]:
    if is_sparse(X):
        different = csr_array(X[first] != X[second])
        return np.asarray(np.diff(different.indptr) == 0)
    return np.asarray((X[first] == X[second]).all(axis=1))


def _keys(X: Matrix, codes: IntArray) -> npt.NDArray[np.uint64]:
    """Return a number for each row that is the same for equal rows, and hardly ever for others."""
    rng = np.random.default_rng(0)
    factors = rng.integers(1 << 63, size=X.shape[1], dtype=np.uint64) * 2 + 1
    keys = codes.astype(np.uint64) * (rng.integers(1 << 63, dtype=np.uint64) * 2 + 1)
    if is_sparse(X):
        filled = np.flatnonzero(np.diff(X.indptr))
        if len(filled):
            keys[filled] += np.add.reduceat(_bits(X.data) * factors[X.indices], X.indptr[filled])
    else:
        for rows in row_blocks(*X.shape):
            keys[rows] += np.einsum("ij,j->i", _bits(X[rows]), factors)
    keys ^= keys >> np.uint64(32)
    return keys


def _bits(numbers: npt.NDArray[Any]) -> npt.NDArray[np.uint64]:
    """Return whole numbers that are equal where floats are, well mixed."""
    numbers = np.ascontiguousarray(numbers) + numbers.dtype.type(0)  # the two zeros are one number
    bits = numbers.view(f"u{numbers.dtype.itemsize}").astype(np.uint64, copy=False)
    bits ^= bits >> np.uint64(29)  # or the low bits, often all zero, would stay so
    return bits
