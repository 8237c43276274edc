"""Rows that are made when they are asked for, for what is too large to hold whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from kmeans_kernel.core.arrays.matrices import Array, IntArray


class LazyRows:
    """A matrix whose rows are made from their indices.

    Our own transformers pass it on, and our classifier asks for a class when it clusters it. Its
    numbers are trusted to be finite.
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
        """Make the rows that a slice, a mask or an array of indices selects."""
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
        """Return the rows as a function of rows, made when they are asked for."""
        return LazyRows(lambda rows: function(self._make(rows)), (len(self), n_features), dtype)


def takes_lazy_rows(estimator: Any) -> bool:
    """Say whether an estimator, or every step of a pipeline, knows what to do with `LazyRows`.

    Those that do say so; others want an array.
    """
    steps = [step for _, step in getattr(estimator, "steps", [("", estimator)])]
    return all(getattr(step, "_takes_lazy_rows", False) for step in steps)
