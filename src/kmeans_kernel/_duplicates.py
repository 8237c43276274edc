"""Rows that occur more than once: one row with the weight of all.

So an integer weight is the same as repeating the row, whatever is random later: both come to the
same rows, with the same weights, in the same order.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel._blocks import IntArray, row_blocks


def merge_equal_rows(
    X: npt.NDArray[Any], codes: IntArray, weights: npt.NDArray[np.float64] | None
) -> tuple[npt.NDArray[Any], IntArray, npt.NDArray[np.float64] | None]:
    """Merge rows that are equal and of one class, and leave out those without weight.

    Parameters
    ----------
    X : (n, d) floats
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
    equal = (X[first] == X[second]).all(axis=1) & (codes[first] == codes[second])
    if not equal.any() and (weights is None or (weights == 1).all()):
        return X, codes, None
    starts = np.setdiff1d(np.arange(len(X)), same[equal] + 1, assume_unique=True)
    total = np.add.reduceat((np.ones(len(X)) if weights is None else weights)[order], starts)
    return X[order[starts]], codes[order[starts]], total


def _keys(X: npt.NDArray[Any], codes: IntArray) -> npt.NDArray[np.uint64]:
    """Return a number for each row that is the same for equal rows, and hardly ever for others."""
    rng = np.random.default_rng(0)
    words = np.dtype(f"u{X.dtype.itemsize}")
    factors = rng.integers(1 << 63, size=X.shape[1], dtype=np.uint64) * 2 + 1
    keys = codes.astype(np.uint64) * (rng.integers(1 << 63, dtype=np.uint64) * 2 + 1)
    for rows in row_blocks(*X.shape):
        block = np.ascontiguousarray(X[rows]) + X.dtype.type(0)  # the two zeros are one number
        bits = block.view(words).astype(np.uint64, copy=False)
        bits ^= bits >> np.uint64(29)  # or the low bits, often all zero, would stay so
        keys[rows] += np.einsum("ij,j->i", bits, factors)
    keys ^= keys >> np.uint64(32)
    return keys
