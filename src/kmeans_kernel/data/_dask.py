"""Row blocks of Dask arrays and frames, processed by the workers that hold them.

A pass is a sum over the partitions. The function is sent once to every worker and its values are
added in a tree; the client gathers only the few rows that K-means and the search start from. Any
scheduler runs it: threads, processes or a cluster.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial, reduce
from operator import add
from typing import Any

import dask
import dask.array as da
import numpy as np
import numpy.typing as npt
from dask.delayed import Delayed, delayed
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from kmeans_kernel.core.arrays.execution import Executor
from kmeans_kernel.core.arrays.stream import BlockFunction, RowSource, T
from kmeans_kernel.data._blocks import BlockCheck
from kmeans_kernel.utils.threads import one_blas_thread

# Fan-in of the tree of additions: values that one task adds up.
_FAN_IN = 8

# Functions with arrays of more than this many bytes are scattered, not embedded in the graph.
_LARGE = 1 << 20

# Exceptions that mean a worker died.
_WORKER_DIED = {"KilledWorker", "CancelledError", "FutureCancelledError", "FuturesCancelledError"}

# The most attempts of a pass when workers die.
_TRIES = 4


@dataclass(frozen=True, eq=False)
class DaskSource:
    """A `RowSource` of the partitions of Dask collections.

    Attributes
    ----------
    blocks : delayed (X, y) or (X, y, sample_weight) of each partition; or (frame,)
    check : validates a block
    columns : for frames, the names of the label column and of the weight column
    """

    blocks: Sequence[tuple[Delayed, ...]]
    check: BlockCheck
    columns: tuple[str, str | None] | None = None

    def sum(self, part: BlockFunction[T], only: frozenset[int] | None = None) -> T | None:
        """Return the sum over the partitions, or over those in `only`, in their order."""
        chosen = [(k, one) for k, one in enumerate(self.blocks) if only is None or k in only]
        if not chosen:
            return None
        for _ in range(_TRIES - 1):
            try:
                return self._pass(part, chosen)
            except Exception as error:
                if (
                    type(error).__name__ not in _WORKER_DIED
                ):  # else a worker died, and others may do
                    raise
        return self._pass(part, chosen)

    def _pass(
        self, part: BlockFunction[T], chosen: list[tuple[int, tuple[Delayed, ...]]]
    ) -> T | None:
        with one_blas_thread(wanted=True):
            sent = _send(part)
            value, add_up = delayed(_value, pure=False), delayed(_add_up, pure=False)
            found = [
                value(sent, self.check, self.columns, number, *block) for number, block in chosen
            ]
            while len(found) > 1:
                starts = range(0, len(found), _FAN_IN)
                found = [add_up(found[k : k + _FAN_IN]) for k in starts]
            total: T | None = dask.compute(found[0])[0]
            return total

    def run_by(self, executor: Executor) -> DaskSource:
        """Return `self`: the scheduler of Dask runs the passes."""
        del executor
        return self

    def with_progress(self, on_rows: Callable[[int], None]) -> DaskSource:
        """Return `self`: Dask has its own dashboard."""
        del on_rows
        return self

    def unchecked(self) -> DaskSource:
        """Return the source without the check for finite numbers."""
        return replace(self, check=replace(self.check, finite=False))


def _value(
    part: BlockFunction[T],
    check: BlockCheck,
    columns: tuple[str, str | None] | None,
    number: int,
    *block: Any,
) -> T | None:
    if columns is not None:
        (frame,), (target, weight) = block, columns
        others = [name for name in columns if name is not None]
        weights = () if weight is None else (frame[weight],)
        block = (frame.drop(columns=others), frame[target], *weights)
    checked = check(number, block)
    return None if checked is None else part(number, checked)


def _add_up(parts: list[T | None]) -> T | None:
    there = [part for part in parts if part is not None]
    return reduce(add, there) if there else None


def _send(part: Any) -> Any:
    """Return a handle of a function for tasks; a large one is broadcast to the workers once."""
    client = _client()
    if client is not None and _size(part) > _LARGE:
        return client.scatter(part, broadcast=True, hash=False)
    return delayed(part, traverse=False, pure=False)


def _client() -> Any:
    """Return the client of the active distributed scheduler; None if another is active."""
    try:
        from distributed import default_client
    except ImportError:
        return None
    try:
        client = default_client()
    except ValueError:
        return None
    scheduler = dask.config.get("scheduler", None)
    return client if scheduler in (None, "dask.distributed", "distributed") else None


def _size(part: Any) -> int:
    """Return the bytes of the arrays in a function: a dataclass, a partial or a part of one."""
    if isinstance(part, np.ndarray):
        return part.nbytes
    if isinstance(part, dict):
        return sum(map(_size, part.values()))
    if isinstance(part, partial):
        return sum(map(_size, [*part.args, *part.keywords.values()]))
    return sum(_size(getattr(part, one.name)) for one in fields(part)) if is_dataclass(part) else 0


def open_source(X: Any, y: Any, sample_weight: Any, check: BlockCheck) -> RowSource:
    """Return the source of row blocks of a Dask array or frame.

    `y` and `sample_weight` may be arrays, series, or names of columns of the frame X.
    """
    _check_collection("X", X)
    if isinstance(y, str):
        for name in (y, sample_weight):
            if isinstance(name, str) and name not in getattr(X, "columns", ()):
                raise ValueError(f"{name!r} must be a column of X, or labels or weights.")
        if sample_weight is None or isinstance(sample_weight, str):
            # Whole partitions, split into X, y and weights in the task, are read once.
            blocks = [(part,) for part in _partitions(X)]
            return DaskSource(blocks, check, (y, sample_weight))
        X, y = X.drop(columns=y), X[y]
    if y is None:
        raise ValueError(
            f"{check.owner} requires y to be passed, but the target y is None: labels as a Dask "
            "array or series, or the name of a column of the frame."
        )
    if isinstance(X, da.Array) and X.ndim != 2:
        raise ValueError(f"X must have two dimensions, rows and features, got {X.ndim}.")
    columns = [_partitions(X)]
    for name, values in (("y", y), ("sample_weight", sample_weight)):
        if values is not None:
            columns.append(_aligned(name, values, X, len(columns[0])))
    return DaskSource(list(zip(*columns, strict=True)), check)


def _check_collection(name: str, X: Any) -> None:
    if isinstance(X, Delayed) or not (isinstance(X, da.Array) or hasattr(X, "columns")):
        raise ValueError(
            f"{name} must be a Dask array or frame, got {type(X).__name__}: make one of it, with "
            "dask.array.from_delayed for instance."
        )


def type_of(X: Any) -> npt.DTypeLike:
    """Return the common dtype of the numbers of a collection."""
    _check_collection("X", X)
    kinds = [X.dtype] if isinstance(X, da.Array) else X.dtypes.tolist()
    return np.result_type(*(kind if isinstance(kind, np.dtype) else np.float64 for kind in kinds))


def _of_partition(function: Any, example: npt.NDArray[Any], part: Any) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = function(part) if len(part) else example[:0]
    return found


def apply(function: Any, X: Any, example: npt.NDArray[Any]) -> da.Array:
    """Return a lazy Dask array of a function of all rows; `example` is its result for one row."""
    sizes = X.chunks[0] if isinstance(X, da.Array) else (math.nan,) * X.npartitions
    call = delayed(partial(_of_partition, function, example), traverse=False, pure=False)
    parts = [
        da.from_delayed(call(part), (size, *example.shape[1:]), dtype=example.dtype)
        for part, size in zip(_partitions(X), sizes, strict=True)
    ]
    return da.concatenate(parts, allow_unknown_chunksizes=True)


def _partitions(X: Any) -> list[Delayed]:
    """Return the delayed partitions; graph optimisation is off, since it may fuse some of them."""
    if isinstance(X, da.Array) and X.ndim == 2 and X.numblocks[1] > 1:
        X = X.rechunk({1: -1})
    return list(np.ravel(X.to_delayed(optimize_graph=False)))


def _aligned(name: str, values: Any, X: Any, n_blocks: int) -> list[Delayed]:
    """Return the delayed labels or weights of each partition of X, rechunked to match X."""
    sizes = X.chunks[0] if isinstance(X, da.Array) else (math.nan,)
    known = not any(map(math.isnan, sizes))
    if not hasattr(values, "to_delayed"):
        if not known:
            raise ValueError(
                f"{name} is in memory, and how many rows each block of X has is not known. Give "
                f"{name} as a Dask array or series too, or call X.compute_chunk_sizes() first."
            )
        values = np.asarray(values)
        if len(values) != sum(sizes):
            raise ValueError(f"X has {sum(sizes)} rows, {name} has {len(values)}.")
        values = da.from_array(values, chunks=(sizes,))
    elif isinstance(values, da.Array):
        values = values.ravel() if values.ndim == 2 and values.shape[1] == 1 else values
        theirs = values.chunks[0]
        if known and not any(map(math.isnan, theirs)) and theirs != sizes:
            if sum(theirs) != sum(sizes):
                raise ValueError(f"X has {sum(sizes)} rows, {name} has {sum(theirs)}.")
            values = values.rechunk((sizes,))
    found = _partitions(values)
    if len(found) != n_blocks:
        raise ValueError(
            f"X has {n_blocks} blocks of rows and {name} has {len(found)}, and how long they are "
            f"is not known. Make both from one frame, or call compute_chunk_sizes() of both first."
        )
    return found


def fit_scaled_pipeline(pipeline: Pipeline, X: Any, y: str, **options: Any) -> Pipeline:
    """Fit a pipeline of StandardScaler and KMeansKernelClassifier to a Dask frame.

    Parameters
    ----------
    pipeline : a StandardScaler with default parameters, then the classifier
    X, y : the frame, and the name of its label column
    """
    steps = [step for _, step in pipeline.steps]
    usual = StandardScaler().get_params()
    if len(steps) != 2 or type(steps[0]) is not StandardScaler or steps[0].get_params() != usual:
        raise ValueError(
            "the pipeline must be a StandardScaler with its usual settings and a "
            "KMeansKernelClassifier; scale the rows of Dask yourself for anything else."
        )
    scaler, classifier = steps
    rows, labels = X.drop(columns=y), X[y]
    words = [name for name, kind in rows.dtypes.items() if not _is_number(kind)]
    if words:
        raise ValueError(f"columns that are no numbers: {', '.join(words[:5])}. Encode them.")
    mean, deviation = (np.asarray(one) for one in dask.compute(rows.mean(), rows.std(ddof=0)))
    counts = np.asarray(rows.count().compute())
    missing = [name for name, n in zip(rows.columns, counts, strict=True) if n < counts.max()]
    if missing or not np.isfinite(mean).all():
        missing += [n for n, m in zip(rows.columns, mean, strict=True) if not np.isfinite(m)]
        raise ValueError(f"missing values or infinity in column {missing[0]!r}. Fill or drop them.")
    # The scaler is fitted to two rows with the mean and standard deviation of the frame.
    two = type(rows._meta)(np.vstack([mean - deviation, mean + deviation]), columns=rows.columns)
    scaler.fit(two)
    scaled = rows.map_partitions(_scaled, scaler, meta=rows._meta.astype(np.float64))
    classifier.fit(scaled.assign(**{y: labels}), y, **options)
    # In a pipeline the scaler passes on arrays without feature names.
    classifier.__dict__.pop("feature_names_in_", None)
    return pipeline


def _scaled(rows: Any, scaler: StandardScaler) -> Any:
    found = scaler.transform(rows) if len(rows) else rows
    return type(rows)(np.asarray(found), columns=rows.columns, index=rows.index)


def _is_number(kind: Any) -> bool:
    return getattr(kind, "kind", "O") in "fiub"
