"""Sources of row blocks for `fit`: detects memory maps, iterables of blocks and Dask."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse

from kmeans_kernel.core.arrays.lazy import LazyRows
from kmeans_kernel.core.arrays.stream import BlockSummary, RowSource, RowStream, SummarizeBlock
from kmeans_kernel.data._blocks import (
    READ_WHOLE_UP_TO,
    ArrayBlocks,
    BlockCheck,
    LocalSource,
    is_mapped,
    refuse_one_shot,
)
from kmeans_kernel.utils.validation import class_factors


class Engine(Protocol):
    """A module that handles the collections of another library, such as Dask."""

    def open_source(self, X: Any, y: Any, sample_weight: Any, check: BlockCheck) -> RowSource:
        """Return the source of the row blocks of a collection."""

    def type_of(self, X: Any) -> npt.DTypeLike:
        """Return the common dtype of the numbers of a collection."""

    def apply(self, function: Any, X: Any, example: npt.NDArray[Any]) -> Any:
        """Return a function of all rows, lazily; `example` is the result for one row."""


def engine_of(X: Any) -> Engine | None:
    """Return the engine of the library of X; None for rows in this process.

    The engine is imported only for a collection of its library, which is an optional dependency.
    """
    if is_dask(X):
        from kmeans_kernel.data import _dask

        return _dask
    return None


def is_dask(X: Any) -> bool:
    """Return whether X is a Dask collection, without importing Dask."""
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr")


def open_source(owner: str, X: Any, y: Any, sample_weight: Any) -> RowSource | None:
    """Return the source of row blocks for the arguments of `fit`; None for rows in memory."""
    engine = engine_of(X)
    if engine is not None:
        return engine.open_source(X, y, sample_weight, BlockCheck(owner))
    if isinstance(X, str | PathLike):
        raise ValueError(
            f"X is a path, {str(X)!r}. For Parquet files: "
            "fit(kmeans_kernel.data.ParquetBlocks(path, target))."
        )
    if isinstance(X, np.memmap) and is_mapped(X) and X.nbytes > READ_WHOLE_UP_TO and X.ndim == 2:
        return LocalSource(ArrayBlocks(X, y, sample_weight), BlockCheck(owner))
    if not _gives_blocks(X):
        return None
    refuse_one_shot(owner, X)
    if y is not None or sample_weight is not None:
        raise ValueError(
            f"{type(X).__name__} is taken for blocks of (X, y) or (X, y, sample_weight), so y and "
            "sample_weight must be in these: call fit(blocks)."
        )
    return LocalSource(X, BlockCheck(owner))


def _gives_blocks(X: Any) -> bool:
    """Return whether X is an iterable of blocks rather than a matrix, frame or list of rows."""
    if isinstance(X, LazyRows | dict) or issparse(X) or hasattr(X, "__array__"):
        return False
    if hasattr(X, "__dataframe__") or hasattr(X, "shape") or not isinstance(X, Iterable):
        return False
    if isinstance(X, list | tuple):  # may be a list of rows
        return bool(X) and all(isinstance(one, tuple | list) and _is_block(one) for one in X)
    return True


def _is_block(one: Sequence[Any]) -> bool:
    return len(one) in (2, 3) and len(getattr(one[0], "shape", ())) == 2


def open_stream(owner: str, source: RowSource, class_weight: Any) -> RowStream:
    """Return the labelled rows of a source, after a first pass that summarizes its blocks.

    Raises ValueError if the blocks are inconsistent.
    """
    summaries: list[BlockSummary] = source.sum(SummarizeBlock()) or []
    if not summaries:
        raise ValueError(f"{owner} found no rows: every block is empty.")
    _check_alike(summaries)
    try:
        classes = np.unique(np.concatenate([one.labels for one in summaries]))
    except TypeError as error:
        raise ValueError(
            "the labels of the blocks are of different types; convert them to one."
        ) from error
    if not len(classes):
        raise ValueError(f"{owner} found no row that has a weight above 0.")
    if len(classes) < 2:
        raise ValueError(
            f"{owner} needs at least two classes in y, got one class: {classes.tolist()[0]!r}. "
            "Check that the labels were read as intended."
        )
    stream = RowStream(source.unchecked(), summaries, classes)
    factors = class_factors(owner, class_weight, classes, stream.class_weights)
    if factors is not None and not factors.all():
        raise ValueError(
            "a class_weight of 0 needs rows in memory; leave the rows of that class out of the "
            "blocks."
        )
    return replace(stream, factors=factors)


def _check_alike(summaries: list[BlockSummary]) -> None:
    first = summaries[0]
    for one in summaries:
        if one.n_features != first.n_features:
            raise ValueError(
                f"Blocks must have the same features: block {first.number} has "
                f"{first.n_features}, block {one.number} has {one.n_features}."
            )
        if one.sparse != first.sparse:
            raise ValueError(
                f"Blocks must be all dense or all sparse: block {first.number} and block "
                f"{one.number} differ."
            )
        if one.names != first.names:
            raise ValueError(
                f"Blocks must have the same columns, in the same order: those of block "
                f"{first.number} and block {one.number} differ."
            )
        if len(one.labels) and (one.labels.dtype.kind in "OUS") != (
            first.labels.dtype.kind in "OUS"
        ):
            raise ValueError(
                f"Labels must be of one type: block {first.number} has {first.labels.dtype}, "
                f"block {one.number} has {one.labels.dtype}."
            )
