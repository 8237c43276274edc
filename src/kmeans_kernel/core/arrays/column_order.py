"""An order of the columns of a table that depends on their values alone.

Sums over the features of a row round differently in another order, and where equal rows are merged
the order of the rows depends on that of the columns. Training on columns in this order gives the
same model for every order in which they are given.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array, IntArray

Keys = npt.NDArray[np.uint64]

# Odd factors and shifts of the 64-bit finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
_FIRST_FACTOR, _SECOND_FACTOR = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)


def order_of_columns(X: Array, codes: IntArray) -> IntArray:
    """Return the order of the columns of distinct rows, the same for any order of rows or columns.

    A column is known by the ranks of its values, so that neither its unit nor its offset matters.
    Its key is a hash of the pairs of rank and class; a second hash, in which a row is known by all
    of its columns, tells columns apart that have the same pairs. Columns alike in both keep their
    order.

    Parameters
    ----------
    X : (n, d) numbers, NaN equal to NaN
    codes : (n,) the class of each row
    """
    classes = codes.astype(np.uint64) << np.uint64(40)
    pairs = [_mixed(_ranks(column) + classes) for column in X.T]
    keys = [_mixed(pair.sum()) for pair in pairs]
    rows = sum((_mixed(pair ^ key) for pair, key in zip(pairs, keys, strict=True)), np.uint64(0))
    return np.argsort([_mixed(pair + rows).sum() for pair in pairs], kind="stable")


def _ranks(values: Array) -> Keys:
    """Return the rank of each value among the distinct ones; NaN has the last."""
    return np.unique(values, return_inverse=True)[1].reshape(-1).astype(np.uint64)


def _mixed(keys: Keys | np.uint64) -> Keys:
    """Return a bijective hash of 64-bit keys."""
    mixed = np.atleast_1d(keys)
    mixed = (mixed ^ (mixed >> _SHIFTS[0])) * _FIRST_FACTOR
    mixed = (mixed ^ (mixed >> _SHIFTS[1])) * _SECOND_FACTOR
    return np.asarray(mixed ^ (mixed >> _SHIFTS[2]))
