"""Lazy rows: computed when indexed, for matrices that are too large to hold whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array, IntArray


class LazyRows:
    """A matrix whose rows are computed from their indices when it is indexed.

    The transformers of this library map it lazily, and the classifier indexes the rows of one class
    at a time, when it clusters that class. The numbers are trusted to be finite.
    """

    def __init__(
        self,
        make: Callable[[IntArray], npt.NDArray[Any]],
        shape: tuple[int, int],
        dtype: npt.DTypeLike,
    ) -> None:
        self._make = make
        self.shape = shape
        self.dtype = np.dtype(dtype)
        self.ndim = 2

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: slice | npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the rows that a slice, a mask or an array of indices selects."""
        return self._make(np.arange(len(self))[rows])

    def __array__(
        self, dtype: npt.DTypeLike | None = None, copy: bool | None = None
    ) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("these rows are made when they are asked for; a copy is needed")
        return np.asarray(self[:], dtype=dtype)

    def map(
        self, function: Callable[[npt.NDArray[Any]], Array], n_features: int, dtype: npt.DTypeLike
    ) -> LazyRows:
        """Return lazy rows that apply a function to blocks of these rows."""
        return LazyRows(lambda rows: function(self._make(rows)), (len(self), n_features), dtype)


def takes_lazy_rows(estimator: Any) -> bool:
    """Return whether an estimator, or every step of a pipeline, accepts `LazyRows`.

    The class attribute `_takes_lazy_rows` says so; other estimators get an array.
    """
    steps = [step for _, step in getattr(estimator, "steps", [("", estimator)])]
    return all(getattr(step, "_takes_lazy_rows", False) for step in steps)
